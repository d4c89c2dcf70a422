"""``featurewatch features`` beside the tool's texts: asking first, unknown outcomes, bad input."""

import io
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from featurewatch.cli.config.client_config import read_client_config, read_properties
from featurewatch.cli.errors import UsageError
from featurewatch.cli.kafka_tools.features import parse_level
from featurewatch.common.private_files import write_private
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse, UpdateResponse
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from tests.admin.scripted import Node, ScriptedCluster
from tests.cli.commands import environment
from tests.conformance.kafka_tools import OurCommand
from tests.paths import ROOT

RAISE = ("upgrade", "--feature", "metadata.version=21")


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """The command, in this process."""
    return OurCommand(monkeypatch, capsys)


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def by(cluster: ScriptedCluster) -> tuple[str, str]:
    """How the cluster is reached."""
    return "--bootstrap-server", str(cluster.address())


@pytest.mark.parametrize("answer", ["y\n", "YES\n", " yes \n"])
def test_a_change_is_confirmed_at_a_terminal(
    answer: str, ours: OurCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal: stderr shows the old and new levels, what they bring and the way back; then
    the change is made and reported on stdout."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), *RAISE)
        assert len(cluster.nodes[1].updates) == 1
    assert (result.code, result.out) == (0, "metadata.version was upgraded to 21.\n")
    lines = result.err.splitlines()
    assert lines[0] == "metadata.version: 20 (3.8-IV0) -> 21 (3.9-IV0)"
    assert any(line.startswith("  21 (3.9-IV0) comes: ") for line in lines)
    assert "  the way back: a downgrade to 20 (3.8-IV0), without loss" in lines
    assert any(line.startswith("afterwards: ") and "3.8 can start again" in line for line in lines)
    assert lines[-1].startswith("Go on? [y/N]")


@pytest.mark.parametrize("answer", ["n\n", "\n", "yess\n", ""])
def test_any_other_answer_sends_nothing(
    answer: str, ours: OurCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No, an empty line, a slip, the end of the input: exit code 1, and the cluster was sent
    nothing."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), *RAISE)
        assert cluster.nodes[1].updates == []
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith("featurewatch: nothing was sent, nothing is changed\n")


class Interrupting(Terminal):
    """Somebody who presses Ctrl-C first, and then types."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as StringIO itself
        """The signal, and what is typed if it did not end the command."""
        signal.raise_signal(signal.SIGINT)
        return super().readline(size)


@pytest.mark.parametrize(
    "arguments", [RAISE, ("delete", "--dialect", "late", "--features", "a")], ids=str
)
def test_ctrl_c_at_the_question_sends_nothing(
    arguments: tuple[str, ...], ours: OurCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends as interrupted commands do, and says that nothing is changed; a signal is then
    handled as before."""
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "stdin", Interrupting("y\n"))
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), *arguments)
        assert cluster.nodes[1].updates == []
    assert (result.code, result.out) == (130, "")
    assert result.err.endswith("] \nfeaturewatch: nothing was sent, nothing is changed\n")
    assert signal.getsignal(signal.SIGINT) is before


def test_one_ctrl_c_at_a_terminal_is_enough(tmp_path: Path) -> None:
    """The command waits for a real terminal's line; the signal that Ctrl-C sends ends it."""
    ours, its = pty.openpty()
    with ScriptedCluster(Node()) as cluster:
        process = subprocess.Popen(
            [sys.executable, "-m", "featurewatch", "features", *by(cluster), *RAISE],
            cwd=ROOT,
            env=environment(tmp_path),
            stdin=its,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            assert process.stderr is not None
            printed = b""
            while not printed.endswith(b"Go on? [y/N] "):
                printed += (byte := process.stderr.read(1))
                assert byte, printed
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
            os.close(ours)
            os.close(its)
        assert cluster.nodes[1].updates == []
    assert (process.returncode, out) == (130, b"")
    assert err == b"\nfeaturewatch: nothing was sent, nothing is changed\n"


@pytest.mark.form("released")
def test_yes_and_dry_run_need_no_confirmation(
    ours: OurCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--yes, --dry-run, and no terminal: as Kafka's tool, without a question (F-82 as released,
    F-83 as released)."""
    with ScriptedCluster(Node()) as cluster:
        monkeypatch.setattr(sys, "stdin", Terminal(""))
        assert ours(*by(cluster), *RAISE, "--yes").err == ""
        assert ours(*by(cluster), *RAISE, "--dry-run").err == ""
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        assert ours(*by(cluster), *RAISE).err == ""
        assert [call.body.validate_only for call in cluster.nodes[1].updates] == [
            False,
            True,
            False,
        ]


@pytest.mark.parametrize(
    ("feature", "now", "wanted", "way_back"),
    [
        ("metadata.version", 21, 30, "none: 21 (3.9-IV0) cannot hold what 30 (4.3-IV0) writes"),
        ("metadata.version", 21, 25, "to 23 (4.0-IV1) at the lowest; 21 (3.9-IV0) is out of reach"),
        ("metadata.version", 21, 77, "unknown: the level is newer than 4.4"),
        ("transaction.version", 1, 2, "a downgrade to 1"),
        ("kraft.version", 0, 1, "none: Kafka refuses a downgrade of it"),
    ],
)
def test_the_downgrade_path_is_shown_before_the_confirmation(
    feature: str,
    now: int,
    wanted: int,
    way_back: str,
    ours: OurCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What can be undone, how far, and what cannot."""
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    features = FeaturesResponse({feature: (0, 99)}, {feature: now} if now else {}, 3)
    with ScriptedCluster(Node(features=features)) as cluster:
        result = ours(*by(cluster), "upgrade", "--feature", f"{feature}={wanted}")
    assert way_back in result.err


def test_deletion_explains_its_purpose_first(
    ours: OurCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage collection: said before anything is asked or sent (F-52)."""
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), "delete", "--features", "metadata.version")
        assert cluster.nodes[1].updates == []
        assert result.err.startswith("featurewatch: deletion is for garbage collection")
        assert result.err.index("garbage") < result.err.index("Go on?")
        done = ours(*by(cluster), "delete", "--feature", "metadata.version", "--yes")
        assert done.out == "metadata.version was deleted.\n"


def test_an_unknown_outcome_is_exit_code_4(ours: OurCommand) -> None:
    """The connection breaks after the change was sent: it is said that nobody knows, and by which
    command it is found out (F-45)."""
    with ScriptedCluster(Node(script=lambda _: None)) as cluster:
        result = ours(*by(cluster), *RAISE)
        address = cluster.address()
    assert (result.code, result.out, result.err.count("\n")) == (4, "", 1)
    assert "whether the change was applied is unknown" in result.err
    assert f"featurewatch features describe --bootstrap-server {address}" in result.err


def test_enable_latest_takes_what_all_nodes_support(ours: OurCommand) -> None:
    """One node has less than the others: its maximum is the level, whoever is asked first."""
    wider = FeaturesResponse({"metadata.version": (7, 30)}, {"metadata.version": 20}, 7)
    with ScriptedCluster(Node(features=wider), Node(), Node(features=wider)) as cluster:
        result = ours(*by(cluster), "enable-latest", "--dry-run")
        (call,) = cluster.nodes[1].updates
    (update,) = call.body.feature_updates
    assert (update.feature, update.max_version_level) == ("metadata.version", 21)
    assert result.code == 0
    assert "the controllers were not asked" in result.err


def test_enable_latest_sends_nothing_where_a_node_is_silent(ours: OurCommand) -> None:
    """What it supports is unknown: exit code 4, the node is named, the cluster is unchanged."""
    with ScriptedCluster(Node(), Node()) as cluster:
        cluster.stop(2)
        result = ours(*by(cluster), "enable-latest")
        assert cluster.nodes[1].updates == []
    assert (result.code, result.out) == (4, "")
    assert "the features of broker 2 are unknown: nobody listens at" in result.err
    assert "nothing was sent, nothing is changed" in result.err


@pytest.mark.form("document")
def test_options_come_before_the_command_or_after_it(ours: OurCommand) -> None:
    """As Kafka's tool takes them, and as KIP-584 writes them; the nearer one counts (M-18)."""
    with ScriptedCluster(Node()) as cluster:
        before = ours(*by(cluster), "describe")
        assert before.code == 0
        assert ours("describe", *by(cluster)) == before
        assert ours("--bootstrap-server", "127.0.0.1:1", "describe", *by(cluster)) == before


@pytest.mark.form("document")
def test_every_command_has_help(ours: OurCommand) -> None:
    """The commands of KIP-778, and the others, each with --help, and --dry-run on all that can
    change something but describe (M-17, M-19)."""
    listed = ours("--help").out
    assert listed == ours("-h").out
    for command in ("describe", "upgrade", "downgrade", "disable", "delete", "enable-latest"):
        assert command in listed
        result = ours(command, "--help")
        assert result == ours(command, "-h")
        assert result.code == 0
        assert "--bootstrap-server" in result.out
        assert ("--dry-run" in result.out) is (command != "describe")


WRONG = (
    (("describe",), "pass --bootstrap-server or --bootstrap-controller"),
    (("describe", "--bootstrap-server", "nonsense"), "write host:port"),
    (("describe", "--bootstrap-server", ","), "the address is empty"),
    (("describe", "--bootstrap-server", "a:1", "--bootstrap-controller", "b:1"), "not both"),
    (("describe", "--bootstrap-server", "a:1", "--compat", "2.8"), "--compat"),
    (("describe", "--bootstrap-server", "a:1", "--command-config", "none"), "none cannot be read"),
    (("describe", "--bootstrap-server", "a:1", "--node-id", "x"), "--node-id"),
    (("describe", "--bootstrap-server", "a:1", "--timeout", "inf"), "--timeout"),
    (("update", "--upgrade", "a:1", "--bootstrap-server", "a:1"), "pass --dialect early or late"),
    (("update", "--dialect", "late", "--upgrade", "a"), "write name:level"),
    (("update", "--dialect", "late", "--upgrade", "a:1,a:2"), "named more than once"),
    (("update", "--dialect", "late", "--feature-upgrade", "a:1"), "the early draft's flags"),
    (("update", "--dialect", "early", "--upgrade", "a:1"), "the later draft's flags"),
    (("upgrade", "--dialect", "late", "--feature", "a=1"), "have no upgrade: use update"),
    (("disable", "--dialect", "late", "--features", "a"), "use delete --features"),
    (("delete", "--dialect", "late"), "name the features to delete"),
    (("delete", "--dialect", "late", "--features", "a", "--dry-run"), "no dry run"),
    (("enable-latest", "--dialect", "early"), "no enable-latest"),
)


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=str)
def test_wrong_usage_is_reported_before_any_request(
    arguments: tuple[str, ...], says: str, ours: OurCommand
) -> None:
    """Exit code 2, nothing on stdout, and what to give."""
    result = ours(*arguments)
    assert (result.code, result.out) == (2, "")
    assert says in result.err


def test_a_number_that_is_too_long_is_no_short(ours: OurCommand) -> None:
    """However long: Java's words, and nothing is sent; zeros before it do not count."""
    with ScriptedCluster(Node()) as cluster:
        result = ours("upgrade", *by(cluster), "--feature", f"f={'9' * 5000}")
        assert (result.code, "as a short" in result.err) == (1, True)
        assert cluster.nodes[1].request_count == 0
    assert parse_level(f"f={'0' * 5000}7") == ("f", 7)


def test_an_unreachable_cluster_is_one_line_and_exit_code_1(ours: OurCommand) -> None:
    """The address and the reason, in one line; exit code 1."""
    with ScriptedCluster(Node()) as cluster:
        address = cluster.address()
        cluster.stop(1)
        for step in (("describe",), RAISE):
            result = ours("--bootstrap-server", str(address), *step)
            assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
            assert f"nobody listens at {address}" in result.err


def test_a_node_that_does_not_respond_is_one_line_and_exit_code_1(ours: OurCommand) -> None:
    """It accepts connections and does not answer: one line when the time is up, exit code 1."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for step in (("describe",), RAISE):
            result = ours("--bootstrap-server", address, "--timeout", "0.2", *step)
            assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
            assert f"{address} did not answer for 0.2 s" in result.err


def test_an_interrupted_change_says_how_to_check_its_outcome(ours: OurCommand) -> None:
    """Ctrl-C while the answer is awaited: whether it is applied is not known, and where to look is
    said; it ends as interrupted commands do (F-45)."""

    def interrupt(_: Any) -> UpdateResponse | None:
        signal.raise_signal(signal.SIGINT)
        return None

    with ScriptedCluster(Node(script=interrupt)) as cluster:
        result = ours(*by(cluster), *RAISE)
    assert (result.code, result.out) == (130, "")
    assert "check whether anything was changed: featurewatch features describe" in result.err


@pytest.mark.parametrize("dialect", ["early", "late"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("describe", "--json", "--controller"),
        ("delete", "--features", "metadata.version", "--yes"),
    ],
    ids=str,
)
def test_a_draft_sends_no_request_to_released_kafka(
    dialect: str, arguments: tuple[str, ...], ours: OurCommand
) -> None:
    """It would seem to have no features, and take a deletion for client quotas: one line with the
    option to give, exit code 1."""
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), *arguments, "--dialect", dialect)
        assert cluster.nodes[1].updates == []
        address = cluster.address()
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines()[-1] == (
        f"featurewatch: {address} speaks as released Kafka does, and no draft of KIP-584: "
        "pass --dialect released"
    )


@pytest.mark.parametrize(
    ("dialect", "speech"),
    [
        ("early", ApiDialect.EARLY_DRAFT),
        ("early", ApiDialect.EARLY_DRAFT_STRUCK),
        ("late", ApiDialect.LATER_DRAFT),
    ],
)
def test_a_drafts_node_without_features_is_one(
    dialect: str, speech: ApiDialect, ours: OurCommand
) -> None:
    """It supports nothing and nothing is finalized: that is the answer."""
    with ScriptedCluster(Node(features=FeaturesResponse({}, {}, -1)), speech=speech) as cluster:
        result = ours(*by(cluster), "describe", "--dialect", dialect)
    document = json.loads(result.out)
    assert (result.code, result.err) == (0, "")
    assert (document["supported_features"], document["finalized_features"]) == ({}, {"epoch": None})


def test_a_refusal_as_json(ours: OurCommand) -> None:
    """The document says FAILED, with the controller's number and text for each feature, and what
    is finalized all the same."""
    refuse = UpdateResponse(message="no", error=95)  # type: ignore[arg-type]
    with ScriptedCluster(Node(script=lambda _: refuse)) as cluster:
        result = ours(*by(cluster), "--json", *RAISE)
    document: dict[str, Any] = json.loads(result.out)
    assert (result.code, result.err, document["status"]) == (1, "", "FAILED")
    assert document["results"] == [
        {"feature": "metadata.version", "level": 21, "error": 95, "message": "no"}
    ]
    assert document["finalized_features"]["metadata.version"] == {"version_level": 20}


PROPERTIES = r"""
security.protocol = PLAINTEXT
default.api.timeout.ms: 1500
client.id=me
retries 3
"""


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    r"""Escapes, ``\u`` ones too, a backslash that is itself escaped, continued lines."""
    file = tmp_path / "client.properties"
    write_private(
        file,
        r"""a\:b = x\ty\u00e9\\
c=1\
   2
d = C:\\dir
""",
    )
    assert read_properties(file) == {"a:b": "x\tyé\\", "c": "12", "d": r"C:\dir"}
    write_private(file, PROPERTIES)
    config = read_client_config(file)
    assert (config.network.api_timeout_s, config.security.tls) == (1.5, None)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("securty.protocol=SSL", "no setting securty.protocol: did you mean security.protocol?"),
        ("sasl.nonsense=1", "no setting sasl.nonsense"),
        ("security.protocol=TLS", "security.protocol=TLS is unknown"),
        ("security.protocol=SASL_SSL", "sasl.mechanism=(none) is not supported"),
        ("default.api.timeout.ms=soon", "default.api.timeout.ms=soon is not a number"),
        (
            "default.api.timeout.ms=2147483648",
            "is not a number of milliseconds from 1 to 2147483647",
        ),
        ("default.api.timeout.ms=" + "9" * 5000, "is not a number of milliseconds"),
        ("security.protocol=SSL\nssl.ca.location=/nowhere", "the TLS certificates cannot be read"),
    ],
)
def test_an_invalid_key_or_value_is_in_the_error(
    line: str, says: str, tmp_path: Path, ours: OurCommand
) -> None:
    """With its file, before anything is asked: a misspelt login would go unnoticed."""
    file = tmp_path / "client.properties"
    write_private(file, line + "\n")
    with pytest.raises(UsageError) as raised:
        read_client_config(file)
    assert says in str(raised.value)
    assert str(raised.value).startswith(str(file))
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), "--command-config", str(file), *RAISE)
        assert cluster.nodes[1].request_count == 0
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_a_harmless_key_of_kafka_is_ignored_and_one_for_java_alone_is_refused(
    tmp_path: Path, ours: OurCommand
) -> None:
    """One file serves several programs: a consumer's settings need no line; a Java class does."""
    file = tmp_path / "client.properties"
    write_private(file, "group.id=g\nssl.protocol=TLSv1.3\nschema.registry.url=http://r\n")
    with ScriptedCluster(Node()) as cluster:
        result = ours(*by(cluster), "--command-config", str(file), "describe")
    assert (result.code, result.err) == (0, "")
    assert result.out.count("Feature: ") == 2
    write_private(file, "group.id=g\nssl.engine.factory.class=a.B\n")
    with pytest.raises(UsageError, match=r"line 2: ssl\.engine\.factory\.class names a Java class"):
        read_client_config(file)
