"""Real changes, each made by ``kafka-features`` and by ours on one cluster, and refused logins."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from tests.conformance.kafka_tools import (
    COMPAT,
    FEATURES,
    KafkaTool,
    KafkaTools,
    OurCommand,
)
from tests.guarded import JAAS, guarded_node
from tests.waiting import eventually

pytestmark = pytest.mark.stack

UP_AND_DOWN = {
    "3.9.1": (
        ("downgrade", "--metadata", "3.8"),
        ("upgrade", "--feature", "metadata.version=21"),
        ("downgrade", "--feature", "metadata.version=19", "--feature", "unheard=0"),
        ("upgrade", "--metadata", "3.9"),
        ("upgrade", "--feature", "metadata.version=21"),
    ),
    "4.3.0": (
        ("downgrade", "--feature", "transaction.version=1", "--feature", "group.version=0"),
        ("disable", "--feature", "streams.version", "--feature", "share.version"),
        ("upgrade", "--feature", "transaction.version=2", "--feature", "group.version=9"),
        ("upgrade", "--release-version", "4.3"),
        ("upgrade", "--release-version", "4.3"),
    ),
}


@pytest.fixture(scope="module", params=["3.9.1", "4.3.0"])
def scene(
    request: pytest.FixtureRequest,
    stack_cache: Cache,
    tmp_path_factory: pytest.TempPathFactory,
    tools_of: Callable[[str], KafkaTools],
) -> Iterator[tuple[Cluster, str, KafkaTool]]:
    """A cluster of one node, its listener with logins, and the release's own tool."""
    directory = tmp_path_factory.mktemp("changed") / "cluster"
    users = {"guest": "may-not"}
    with guarded_node(directory, stack_cache, users, request.param) as node:
        yield node.cluster, node.broker, tools_of(request.param).tool(FEATURES)


def levels(ours: OurCommand, cluster: Cluster) -> dict[str, int]:
    """The finalized levels as the controller has them."""
    result = ours("describe", "--json", "--bootstrap-controller", cluster.controllers)
    features = json.loads(result.out)["finalized_features"]
    return {name: level["version_level"] for name, level in features.items() if name != "epoch"}


@pytest.mark.form("released")
def test_changes_are_printed_as_by_the_tool(
    scene: tuple[Cluster, str, KafkaTool], ours: OurCommand
) -> None:
    """The same steps by either lead to the same levels, by way of brokers and of controllers, with
    the same texts and exit codes, also where the controller refuses a part (F-48, F-79,
    M-21 as released, M-23 as released, M-24)."""
    cluster, _, tool = scene
    reached: list[tuple[list[object], dict[str, int]]] = []
    compat = ("--compat", COMPAT[tool.release])
    for by, address in (
        ("--bootstrap-server", cluster.bootstrap_servers),
        ("--bootstrap-controller", cluster.controllers),
    ):
        for command in (tool, lambda *given: ours(*compat, *given)):
            results: list[object] = [
                command(by, address, *step) for step in UP_AND_DOWN[tool.release]
            ]
            reached.append((results, levels(ours, cluster)))
    assert all(outcome == reached[0] for outcome in reached), reached
    assert any("was" in str(result) for result in reached[0][0])


@pytest.mark.form("released")
def test_a_change_as_json_is_what_is_finalized_then(
    scene: tuple[Cluster, str, KafkaTool], ours: OurCommand
) -> None:
    """The document has the result, the new level, and an epoch that is higher than before; a
    release's name serves as a level of metadata.version; a dry run changes nothing (F-73 as
    released, F-86 as released, M-08 as released, M-30 as released)."""
    cluster, _, tool = scene
    by = ("--json", "--bootstrap-controller", cluster.controllers)
    feature, level, name = (
        ("metadata.version", 20, "metadata.version=3.8")
        if tool.release == "3.9.1"
        else ("transaction.version", 1, "transaction.version=1")
    )
    before = json.loads(ours("describe", *by).out)["finalized_features"]
    ours("downgrade", "--feature", name, "--dry-run", *by)
    assert json.loads(ours("describe", *by).out)["finalized_features"] == before
    result = ours("downgrade", "--feature", name, *by)
    document = json.loads(result.out)
    assert (result.code, result.err, document["status"]) == (0, "", "OK")
    assert document["results"] == [
        {"feature": feature, "level": level, "error": None, "message": None}
    ]
    assert document["finalized_features"][feature] == {"version_level": level}
    assert document["finalized_features"]["epoch"] > before["epoch"]
    assert ours("enable-latest", *by[1:]).code == 0
    # Another controller may lag behind the one that has changed it.
    assert eventually(lambda: levels(ours, cluster)[feature] == before[feature]["version_level"])


def test_enable_latest_on_a_real_cluster(
    scene: tuple[Cluster, str, KafkaTool], ours: OurCommand
) -> None:
    """Every feature goes to the highest level of all nodes; then there is nothing left to do."""
    cluster, _, _ = scene
    by = ("--bootstrap-server", cluster.bootstrap_servers)
    assert ours("enable-latest", *by).code == 0
    result = ours("enable-latest", *by)
    assert (result.code, result.out) == (
        0,
        "Every feature is at the highest level that all nodes support.\n",
    )


def test_a_login_without_rights_is_refused_as_by_the_tool(
    scene: tuple[Cluster, str, KafkaTool], ours: OurCommand, tmp_path: Path
) -> None:
    """With the properties file that Kafka's tool takes, a login without rights is refused in the
    same words, and describe needs none; nothing is changed."""
    cluster, guarded, tool = scene
    config = tmp_path / "client.properties"
    write_private(
        config,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={JAAS} \\\n  username="guest" password="may-not";\n',
    )
    before = levels(ours, cluster)
    by = ("--bootstrap-server", guarded, "--command-config", str(config))
    step = ("downgrade", "--feature", "metadata.version=20")
    compat = ("--compat", COMPAT[tool.release])
    result, expected = ours(*compat, *by, *step), tool(*by, *step)
    assert result.code == expected.code == 1
    # Kafka names the request with its connection and the like, which is another for each.
    shown = [re.sub(r"Request\(.*\)", "Request(…)", output.out) for output in (result, expected)]
    assert shown[0] == shown[1]
    assert shown[0].startswith("Could not downgrade metadata.version to 20. Request Request(…)")
    assert "featurewatch: this login may not change features: grant it ALTER" in result.err
    assert levels(ours, cluster) == before
    described = [output.out for output in (ours(*compat, *by, "describe"), tool(*by, "describe"))]
    assert len({re.sub(r"Epoch: \d+", "", text) for text in described}) == 1, described


def test_a_failed_login_is_one_line(
    scene: tuple[Cluster, str, KafkaTool], ours: OurCommand, tmp_path: Path
) -> None:
    """A wrong password, and none where one is wanted: one line, exit code 1, no password in it."""
    _, guarded, _ = scene
    config = tmp_path / "client.properties"
    write_private(
        config,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.username=guest\nsasl.password=guessed\n",
    )
    by = ("--bootstrap-server", guarded)
    step = ("upgrade", "--feature", "metadata.version=21")
    for arguments in ((*by, "--command-config", str(config)), by):
        result = ours(*arguments, *step)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1), result
        assert "sasl" in result.err
        assert "guessed" not in result.err
