"""Settings: flag over environment over file, and one line for what is wrong with them."""

import re
from dataclasses import replace
from pathlib import Path

import click
import pytest
import yaml

from featurewatch.agents.settings import WorkerSettings
from featurewatch.cli.commands.watch import watch
from featurewatch.cli.config.client_config import read_properties
from featurewatch.cli.config.reference_config import render
from featurewatch.cli.config.settings import ClusterSection, Settings, WebSection, load
from featurewatch.cli.config.source_settings import (
    api_versions_settings,
    kraft_settings,
    node_logins,
    zookeeper_settings,
)
from featurewatch.cli.errors import UsageError
from featurewatch.common.private_files import write_private
from featurewatch.kafka.address import Address
from featurewatch.kafka.security import PLAINTEXT
from featurewatch.monitor.readiness import DEFAULT_LIMITS, Limits
from featurewatch.streams.apiversions.settings import ControllerAddress
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.kraft.source import KraftSettings
from featurewatch.streams.types import ClusterId, NodeId
from featurewatch.streams.zookeeper.settings import ZookeeperLogin, ZookeeperSettings
from featurewatch.web.settings import PageSettings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting comes from where the tests run."""
    for name in ("CONFIG", "CLUSTERS", "BUS__PREFIX", "BUS__BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(f"FEATUREWATCH_{name}", raising=False)


def _file(directory: Path, text: str) -> Path:
    file = directory / "featurewatch.yaml"
    file.write_text(text)
    return file


def test_flag_over_environment_over_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting is taken from the first of the three that has it, one by one."""
    file = _file(tmp_path, "bus: {bootstrap_servers: 'f:1', prefix: f, partitions: 3}")
    monkeypatch.setenv("FEATUREWATCH_BUS__PREFIX", "e")
    monkeypatch.setenv("FEATUREWATCH_BUS__BOOTSTRAP_SERVERS", "e:1")
    bus = load(file, bus={"bootstrap_servers": "flag:1"}).bus
    assert (bus.bootstrap_servers, bus.prefix, bus.partitions) == ("flag:1", "e", 3)


def test_the_environment_may_give_the_path_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FEATUREWATCH_CONFIG names the file where no flag does."""
    monkeypatch.setenv("FEATUREWATCH_CONFIG", str(_file(tmp_path, "web: {source_port: 1234}")))
    assert load(None).web.source_port == 1234


def test_many_clusters_in_one_file(tmp_path: Path) -> None:
    """Clusters are a list; one that is given by flags takes its place."""
    file = _file(tmp_path, "clusters: [{controllers: 'a:1'}, {servers: 'b:1, c:1'}]")
    assert [cluster.controllers or cluster.servers for cluster in load(file).clusters] == [
        "a:1",
        "b:1,c:1",
    ]
    assert len(load(file, clusters=[{"servers": "d:1"}]).clusters) == 1


WRONG = (
    ("bus: {bootstrap_server: 'a:1'}", r"no setting bus\.bootstrap_server .*bootstrap_servers\?"),
    ("buss: {}", r"no setting buss .*did you mean bus\?"),
    ("clusters: [{controller: 'a:1'}]", r"clusters\.0\.controller .*did you mean controllers\?"),
    ("bus: {partitions: many}", r"bus\.partitions .*wrong: .*integer"),
    ("readiness: {ghost_after_s: .inf}", r"readiness\.ghost_after_s .*finite"),
    ("bus: {partitions: 0}", r"bus\.partitions .*greater than or equal to 1"),
    ("bus: {bootstrap_servers: nonsense}", r"bus\.bootstrap_servers .*write host:port"),
    ("bus: {prefix: 'a b'}", r"bus\.prefix "),
    ("clusters: [{servers: 'a:0'}]", r"clusters\.0\.servers .*no port between"),
    ("clusters: 5", r"clusters .*list"),
    ("worker: {store: paper}", r"worker\.store .*'memory' or 'rocksdb'"),
    ("web: {worker_port: 70000}", r"web\.worker_port .*65535"),
    ("bus: [", r"not YAML in line \d"),
    ("hello", r"sections on its first level: bus, clusters"),
    ("1: 2", r"sections on its first level"),
)


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_an_invalid_file_is_one_line_with_the_field(tmp_path: Path, text: str, says: str) -> None:
    """A mistake in the file is reported with its field, its file, and the expected value."""
    file = _file(tmp_path, text)
    with pytest.raises(UsageError, match=says) as caught:
        load(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_invalid_environment_variable_is_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from the environment is told with the variable's name."""
    monkeypatch.setenv("FEATUREWATCH_BUS__PREFIX", "a b")
    with pytest.raises(UsageError, match=r"bus\.prefix \(environment variable FEATUREWATCH_BUS__"):
        load(None)
    monkeypatch.setenv("FEATUREWATCH_CLUSTERS", "no JSON")
    with pytest.raises(UsageError, match=r'"clusters".*write JSON'):
        load(None)


def test_an_unreadable_file_is_in_the_error(tmp_path: Path) -> None:
    """A missing file, a directory and bytes that are not text are reported, not raised."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name in ("missing", ".", "bytes"):
        with pytest.raises(UsageError, match=re.escape(str(tmp_path / name))):
            load(tmp_path / name)


def test_a_bus_is_required(tmp_path: Path) -> None:
    """Without a named bus and without an embedded one it is said how to get one."""
    settings = load(None, worker={"data_directory": tmp_path})
    with pytest.raises(UsageError, match="pass --bus"):
        settings.bus_settings()


def test_the_limits_of_readiness_reach_the_worker(tmp_path: Path) -> None:
    """Seconds of the file are milliseconds of the rules, for the worker and whoever judges so."""
    file = _file(tmp_path, "readiness: {ghost_after_s: 90, upgrade_after_s: 0.5}")
    settings = load(file, bus={"bootstrap_servers": "a:1"}, worker={"node_series": 7})
    assert settings.limits() == Limits(ghost_ms=90_000, upgrade_ms=500, refusal_ms=60_000)
    assert settings.worker_settings().limits == replace(settings.limits(), partitions=8)
    assert settings.with_operations().limits() == replace(settings.limits(), operations=True)
    assert settings.worker_settings().node_series == 7


OTHER_VALUES = {
    "bootstrap_servers": "b:1",
    "command_config": "client.properties",
    "prefix": "other",
    "id": "2",
    "store": "rocksdb",
    "data_directory": "/elsewhere",
    "accepted_clusters": ["c"],
    "operations": True,
}
"""Values of settings other than numbers, none of which is the default."""


@pytest.mark.parametrize(
    ("section", "name"),
    [
        (section, name)
        for section in ("bus", "worker", "readiness")
        for name in Settings.model_fields[section].annotation.model_fields  # type: ignore[union-attr]
    ],
)
def test_each_setting_of_the_worker_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: str, name: str
) -> None:
    """Another value of any setting of these sections gives the worker other settings."""
    monkeypatch.chdir(tmp_path)
    write_private(tmp_path / "client.properties", "security.protocol=SSL\n")
    sections: dict[str, dict[str, object]] = {"bus": {"bootstrap_servers": "a:1"}}
    default = load(None, **sections)
    value = OTHER_VALUES.get(name) or getattr(getattr(default, section), name) + 2
    changed = load(None, **{**sections, section: {**sections.get(section, {}), name: value}})
    assert changed.worker_settings() != default.worker_settings(), (
        f"{section}.{name} does not reach the worker: give WorkerSettings or BusSettings a field "
        "of this name, or pass it on in Settings.worker_settings, bus_settings or limits"
    )


ENTRY = {
    "cluster_id": "c",
    "controllers": "a:1",
    "servers": "b:1",
    "zookeeper": "z:1",
    "command_config": "client.properties",
}
OTHER_VALUES_OF_CLUSTER = {
    "cluster_id": "d",
    "controllers": "a:2",
    "servers": "b:2",
    "polled_controllers": "1@a:1",
    "log_directory": "log",
    "zookeeper": "z:2",
    "command_config": "other.properties",
    "controllers_config": "other.properties",
    "zookeeper_config": "zookeeper.properties",
    "records": "all",
    "operations": True,
}
"""Values of a cluster's settings other than numbers, none of which is that of `ENTRY`."""


@pytest.mark.parametrize("name", sorted(ClusterSection.model_fields.keys() - {"name"}))
def test_each_setting_of_a_cluster_reaches_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another value gives some source other settings; the name is passed on with its reports."""
    monkeypatch.chdir(tmp_path)
    write_private(tmp_path / "client.properties", "security.protocol=PLAINTEXT\n")
    write_private(tmp_path / "other.properties", "security.protocol=SSL\n")
    write_private(tmp_path / "zookeeper.properties", "security.protocol=SSL\n")

    def sources(**given: object) -> tuple[object, ...]:
        (cluster,) = load(None, clusters=[{**ENTRY, **given}]).clusters
        cluster_id, logins = ClusterId(cluster.cluster_id), node_logins(cluster)
        return (
            kraft_settings(cluster, cluster_id, logins.controllers),
            api_versions_settings(cluster, cluster_id, logins),
            zookeeper_settings(cluster),
        )

    value = OTHER_VALUES_OF_CLUSTER.get(name)
    if value is None:
        value = ClusterSection.model_fields[name].default + 2
    assert sources(**{name: value}) != sources(), (
        f"clusters.{name} reaches no source: pass it on in cli/config/source_settings.py"
    )


def test_the_default_limits_are_those_of_the_rules() -> None:
    """The settings' defaults are those of the rules, of the worker and of the page."""
    settings = load(None, bus={"bootstrap_servers": "a:1"})
    assert settings.limits() == DEFAULT_LIMITS
    expected = WorkerSettings(
        BusSettings("a:1"), worker_id="", limits=replace(DEFAULT_LIMITS, partitions=8)
    )
    assert settings.worker_settings() == expected
    access = settings.web.access()
    assert settings.page_settings() == PageSettings(access=access)


OWN_READERS = {"source_port", "worker_port", "notify_port", "host"}
"""Settings of ``web`` that the processes read themselves, when they open a port."""


@pytest.mark.parametrize("name", sorted(WebSection.model_fields.keys() - OWN_READERS))
def test_each_setting_of_the_page_reaches_it(tmp_path: Path, name: str) -> None:
    """Another value gives the page other settings; a page for others needs a login."""
    write_private(tmp_path / "web.yaml", "{}")
    write_private(tmp_path / "tokens", "a-token-of-sufficient-length-0123456789\n")
    values: dict[str, object] = {
        "config_file": tmp_path / "web.yaml",
        "token_file": tmp_path / "tokens",
        "proxies": ["10.0.0.1"],
        "page_host": "10.0.0.1",
        "external_url": "https://ops/",
    }
    given = values[name] if name in values else WebSection.model_fields[name].default + 1
    base: dict[str, object] = {}
    if name == "page_host":
        base = {"token_file": tmp_path / "tokens"}
    elif name == "page_without_login":
        base, given = {"page_host": "10.0.0.1", "token_file": tmp_path / "tokens"}, True
    default, changed = load(None, web=base), load(None, web={**base, name: given})
    assert changed.page_settings() != default.page_settings(), (
        f"web.{name} does not reach the page: give PageSettings or AccessSettings a field of this "
        "name, or list it in OWN_READERS"
    )


def test_the_reference_uncommented_is_the_defaults(tmp_path: Path) -> None:
    """The reference has every setting with its default value."""
    text = re.sub(r"^#(?=  |[ ]\w+:$)", "", render(), flags=re.MULTILINE)
    content = yaml.safe_load(re.sub(r"^[ ](?=\S)", "", text, flags=re.MULTILINE))
    assert content["worker"].pop("data_directory") is None  # it depends on the user
    assert content["releases"].pop("directory") is None
    assert load(_file(tmp_path, yaml.safe_dump(content))) == load(
        None, clusters=[{"records": "features"}]
    )
    for section, model in Settings.model_fields.items():
        given = content[section][0] if section == "clusters" else content[section]
        fields = set(type((load(None, clusters=[{"servers": "a:1"}]).clusters)[0]).model_fields)
        if section != "clusters":
            fields = set(type(getattr(load(None), section)).model_fields)
            fields -= {"data_directory"} if section == "worker" else set()
            fields -= {"directory"} if section == "releases" else set()
        assert set(given) == fields, model


PROPERTIES = """\
# a comment
! another
security.protocol=SASL_SSL
sasl.mechanism : PLAIN
ssl.ca.location   /etc/ca.pem
sasl.jaas.config=a.b.Plain required \\
    username="u" \\
    password="p=q";
empty=
"""


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    """Comments, all three separators, continued lines, and values with the same characters."""
    file = tmp_path / "client.properties"
    write_private(file, PROPERTIES)
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.ca.location": "/etc/ca.pem",
        "sasl.jaas.config": 'a.b.Plain required username="u" password="p=q";',
        "empty": "",
    }


def test_an_invalid_properties_file_is_in_the_error(tmp_path: Path) -> None:
    """The file and the line are named; a missing file is, too."""
    file = tmp_path / "client.properties"
    write_private(file, "a=b\nnonsense\n")
    with pytest.raises(UsageError, match=r"client\.properties line 2 is not a property"):
        read_properties(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_properties(tmp_path / "missing")


@pytest.mark.parametrize(
    ("clusters", "both"),
    [
        ("{cluster_id: A, controllers: 'a:1'}, {servers: 'b:1'}, {cluster_id: A}", "cluster_id A"),
        ("{servers: 'a:1,b:1'}, {servers: 'b:1,c:1'}", "servers b:1"),
        ("{controllers: 'a:1'}, {controllers: 'a:1'}", "controllers a:1"),
        ("{zookeeper: 'z:1/c'}, {zookeeper: 'z:1/c'}", "zookeeper z:1/c"),
        ("{log_directory: /l}, {log_directory: /l}", "log_directory /l"),
    ],
)
def test_two_entries_of_one_cluster_are_refused(tmp_path: Path, clusters: str, both: str) -> None:
    """The line has their numbers and what they have in common."""
    with pytest.raises(UsageError, match=f"entries 1 and [23] both have {both}: write one entry"):
        load(_file(tmp_path, f"clusters: [{clusters}]"))


def test_clusters_may_share_an_ensemble(tmp_path: Path) -> None:
    """Below different chroots they are different clusters."""
    file = _file(tmp_path, "clusters: [{zookeeper: 'z:1/a'}, {zookeeper: 'z:1/b'}]")
    assert len(load(file).clusters) == 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [("a:1", "has no id: write id@host:port"), ("x@a:1", "has no id"), ("1@a", "host:port")],
)
def test_a_polled_controller_needs_its_id(tmp_path: Path, value: str, reason: str) -> None:
    """A response does not name its node."""
    with pytest.raises(UsageError, match=reason):
        load(_file(tmp_path, f"clusters: [{{polled_controllers: '{value}'}}]"))


def test_controllers_may_have_their_own_login(tmp_path: Path) -> None:
    """A file for each role; without one for controllers, both have the same."""
    for name in ("brokers", "controllers"):
        write_private(
            tmp_path / name,
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f"sasl.username={name}\nsasl.password=p\n",
        )
    cluster = ClusterSection(
        polled_controllers="1@b:1",
        command_config=tmp_path / "brokers",
        controllers_config=tmp_path / "controllers",
    )
    logins = node_logins(cluster)
    assert (logins.brokers.username, logins.controllers.username) == ("brokers", "controllers")
    polled = api_versions_settings(cluster, ClusterId("c"), logins)
    assert polled.controllers_security == logins.controllers
    assert polled.bootstrap_controllers == (ControllerAddress(Address("b", 1), NodeId(1)),)
    only = ClusterSection(servers="a:1", command_config=tmp_path / "brokers")
    assert {login.username for login in node_logins(only)} == {"brokers"}


def test_the_limits_of_a_cluster_reach_its_sources(tmp_path: Path) -> None:
    """What a snapshot and a frame of ZooKeeper may have, by file; else the sources' defaults."""
    file = _file(
        tmp_path,
        "clusters: [{zookeeper: 'z:1', controllers: 'a:1', max_snapshot_bytes: 7, "
        "max_zookeeper_frame_bytes: 8}, {zookeeper: 'z:2'}]",
    )
    limited, default = load(file).clusters
    log = kraft_settings(limited, ClusterId("c"), PLAINTEXT)
    assert log.max_snapshot_bytes == 7
    assert zookeeper_settings(limited).max_frame_bytes == 8
    assert zookeeper_settings(default).max_frame_bytes == ZookeeperSettings("z:1").max_frame_bytes
    assert default.max_snapshot_bytes == KraftSettings(ClusterId("c")).max_snapshot_bytes


@pytest.mark.parametrize("name", ["max_snapshot_bytes", "max_zookeeper_frame_bytes"])
def test_the_help_names_the_limits_defaults(name: str) -> None:
    """The default in the help is the setting's."""
    default = str(ClusterSection.model_fields[name].default)
    (option,) = (option for option in watch.params if option.name == name)
    assert isinstance(option, click.Option)
    assert option.show_default == default


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("security.protocl=SSL", "did you mean security.protocol"),
        ("sasl.user=u", "there is no setting sasl.user"),
        ("sasl.jaas.config=x", "sasl.jaas.config has no effect without a login"),
        ("security.protocol=SASL_SSL\nsasl.jaas.config=x", "sasl.jaas.config is for Kerberos"),
        ("zookeeper.ssl.truststore.location=x", "did you mean ssl.truststore.location"),
        ("zookeeper.client.secure=true", "ZooKeeper takes security.protocol"),
    ],
)
def test_a_misspelt_key_towards_zookeeper_is_refused(
    tmp_path: Path, line: str, reason: str
) -> None:
    """Otherwise the connection would be plain text, or without a login, without a word."""
    config = tmp_path / "zookeeper.properties"
    write_private(config, f"{line}\n")
    with pytest.raises(UsageError, match=re.escape(reason)):
        zookeeper_settings(ClusterSection(zookeeper="z:1", zookeeper_config=config))


def test_keys_for_kafka_alone_have_no_effect_towards_zookeeper(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that serves both is taken, without a line about what concerns Kafka alone."""
    config = tmp_path / "both.properties"
    write_private(config, "default.api.timeout.ms=5\nretries=3\nsecurity.protocol=PLAINTEXT\n")
    assert zookeeper_settings(ClusterSection(zookeeper="z:1", zookeeper_config=config)).login == (
        ZookeeperLogin()
    )
    assert caplog.records == []
