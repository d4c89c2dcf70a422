"""``featurewatch storage``: what a log directory was formatted with, and Kafka's own format."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.cli.commands.storage import info as storage_info
from featurewatch.cli.commands.storage.command import passed_on
from featurewatch.cli.errors import UsageError
from featurewatch.common.private_files import write_private
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.server_properties import Addresses, format_properties, node_properties
from featurewatch.stack.kafka.specs import NEWEST_TESTED, ClusterSpec, NodeSpec, Roles
from tests.conftest import MakeCluster
from tests.plugins.nightly import nightly_but
from tests.streams.kraft.directory.log_directory import LogDirectory, leader_change
from tests.streams.kraft.encoding import data_batch, record_of, snapshot_batches

CLUSTER = "k3nkSGPhQsiT8EDDBw8qVg"
META = f"#Mon Nov 21\nversion=1\ncluster.id={CLUSTER}\nnode.id=7\ndirectory.id=AbC\\=\n"
LATEST_PRODUCTION = {"3.9.1": 21, "4.3.0": 30, "4.4.0": 33}


def level(value: int, name: str = "metadata.version") -> bytes:
    """A record that finalizes a level."""
    return record_of("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": value})


@pytest.fixture
def formatted(tmp_path: Path) -> Path:
    """A directory as the storage tool leaves it, at 19 with transaction.version 2."""
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "meta.properties").write_text(META)
    content = snapshot_batches([level(19), level(2, "transaction.version")])
    (directory / "bootstrap.checkpoint").write_bytes(b"".join(content))
    return directory


def info(*arguments: str) -> Result:
    """What the command says."""
    return CliRunner().invoke(app, ["storage", "info", *arguments])


def test_a_directory_that_was_never_started(formatted: Path) -> None:
    """Whose it is, the levels at format, which releases start; --json is the same as a document."""
    result = info(str(formatted))
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"directory   {formatted}",
        f"belongs to  cluster {CLUSTER}, node 7, directory id AbC= (KRaft)",
        "formatted   metadata.version 19 (3.7-IV4), transaction.version 2",
        "now         there is no metadata log yet: the node was never started",
        "starts with 4.0, 4.1, 4.2, 4.3, 4.4",
        "not with    3.3 to 3.9: Tried to apply FeatureLevelRecord FeatureLevelRecord(name="
        "'transaction.version', featureLevel=2), but this controller only supports versions 0",
    ]
    document = json.loads(info(str(formatted), "--json").output)
    assert document["meta"] == {"version": 1, "cluster": CLUSTER, "node": 7, "directory_id": "AbC="}
    assert document["formatted"]["levels"] == {"metadata.version": 19, "transaction.version": 2}
    assert (document["committed"], document["releases"]["4.3"]) == (None, None)


@pytest.mark.form("document")
def test_the_first_level_in_meta_properties(formatted: Path) -> None:
    """KIP-778 as written keeps the level of format there, without a bootstrap.checkpoint, and a
    controller writes it into a log that has none (M-27, M-39)."""
    (formatted / "bootstrap.checkpoint").unlink()
    (formatted / "meta.properties").write_text(f"{META}metadata.version=17\n")
    lines = info(str(formatted)).output.splitlines()
    assert lines[2] == "formatted   metadata.version 17 (3.7-IV2)"
    assert lines[4] == (
        "first       KIP-778's controller writes metadata.version 17 (3.7-IV2), as the log has no "
        "level"
    )
    document = json.loads(info(str(formatted), "--json").output)
    assert document["formatted"]["levels"] == {"metadata.version": 17}


@pytest.mark.form("document")
@pytest.mark.parametrize("has_log", [False, True])
def test_the_directory_of_a_preview_cluster(
    formatted: Path, monkeypatch: pytest.MonkeyPatch, has_log: bool
) -> None:
    """It has no level anywhere: KIP-778's controller takes level 1 (M-40)."""
    monkeypatch.setattr(storage_info, "_FILES_S", 0.5)
    (formatted / "bootstrap.checkpoint").unlink()
    if has_log:
        (formatted / "__cluster_metadata-0").mkdir()
        (formatted / "__cluster_metadata-0" / f"{0:020}.log").touch()
    lines = info(str(formatted)).output.splitlines()
    assert lines[2] == "formatted   it has no snapshot of a format, so no initial levels"
    assert lines[4] == (
        "first       KIP-778's controller writes metadata.version 1 (3.0-IV1), as the log has no "
        "level"
    )


def test_a_directory_of_zookeeper_mode_has_no_first_level(formatted: Path) -> None:
    """metadata.version is a feature of KRaft alone."""
    (formatted / "bootstrap.checkpoint").unlink()
    (formatted / "meta.properties").write_text(f"version=0\nbroker.id=7\ncluster.id={CLUSTER}\n")
    assert "first " not in info(str(formatted)).output


@pytest.mark.form("released")
def test_bootstrap_checkpoint_counts_before_meta_properties(formatted: Path) -> None:
    """Released Kafka reads that file alone (M-27 as released)."""
    (formatted / "meta.properties").write_text(f"{META}metadata.version=17\n")
    document = json.loads(info(str(formatted), "--json").output)
    assert document["formatted"]["levels"]["metadata.version"] == 19


@pytest.mark.parametrize("level", ["0", "-1", "32768", "3.7", ""])
def test_an_invalid_level_in_meta_properties(formatted: Path, level: str) -> None:
    """It is in the error, with the file."""
    (formatted / "meta.properties").write_text(f"{META}metadata.version={level}\n")
    result = info(str(formatted))
    assert result.exit_code == 1
    assert f"meta.properties is damaged: '{level}' is not a metadata.version" in result.stderr


def test_what_is_at_the_end_of_a_log_may_not_be_committed(formatted: Path) -> None:
    """Of three voters the last records are not known to be: both levels are told."""
    log = LogDirectory(formatted / "other")
    at_ms = 1_700_000_000_000
    log.append(
        0,
        leader_change(0, 1, at_ms),
        data_batch([level(20)], 1, append_ms=at_ms),
        data_batch([level(21)], 2, append_ms=at_ms + 60_000),
    )
    log.log.rename(formatted / "__cluster_metadata-0")
    lines = info(str(formatted / "__cluster_metadata-0")).output.splitlines()
    assert lines[3] == "now         metadata.version 20 (3.8-IV0), at offset 1"
    assert lines[4] == "after that  metadata.version 21 (3.9-IV0): perhaps not committed"
    assert lines[5] == "starts with 3.9, 4.0, 4.1, 4.2, 4.3, 4.4"
    document = json.loads(info(str(formatted), "--json").output)
    assert document["uncommitted"] == {"metadata.version": 21}


def test_a_log_of_which_nothing_is_committed(
    formatted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after the first start of three voters: what is there is told, and that it may go."""
    monkeypatch.setattr(storage_info, "_FILES_S", 0.5)
    log = LogDirectory(formatted / "other")
    log.append(0, leader_change(0, 1, 1_700_000_000_000), data_batch([level(20)], 1))
    log.log.rename(formatted / "__cluster_metadata-0")
    lines = info(str(formatted)).output.splitlines()
    assert lines[3] == "now         nothing in the metadata log is known to be committed"
    assert lines[4] == "after that  metadata.version 20 (3.8-IV0): perhaps not committed"


def test_a_log_without_a_record(formatted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a first start leaves it that finds no quorum: what it was formatted with counts."""
    monkeypatch.setattr(storage_info, "_FILES_S", 0.5)
    log = formatted / "__cluster_metadata-0"
    log.mkdir()
    (log / f"{0:020}.log").touch()
    shown = info(str(formatted))
    assert (shown.exit_code, shown.output.splitlines()[3]) == (
        0,
        "now         there is nothing in the metadata log yet",
    )


def test_a_directory_of_zookeeper_mode(formatted: Path) -> None:
    """Version 0 of meta.properties: no levels, and a cluster that may not be named."""
    (formatted / "meta.properties").write_text("version=0\nbroker.id=3\n")
    (formatted / "bootstrap.checkpoint").unlink()
    assert info(str(formatted)).output.splitlines()[1:] == [
        "belongs to  cluster not named, node 3 (ZooKeeper mode)",
        "formatted   it has no snapshot of a format, so no initial levels",
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("meta.properties", b"\xff\xfe", "it names no version"),
        ("meta.properties", b"", "it names no version; Kafka writes 0 or 1"),
        ("meta.properties", b"version=9\n", "its version is '9'"),
        ("meta.properties", b"version=1\nnode.id=1\n", "it has no cluster.id"),
        ("meta.properties", b"version=1\ncluster.id=c\n", "it has no node.id"),
        ("meta.properties", b"version=1\ncluster.id=c\nnode.id=x\n", "'x' is not a node id"),
        ("bootstrap.checkpoint", b"nonsense" * 20, "bootstrap.checkpoint is damaged"),
        ("bootstrap.checkpoint", b"", "it is cut off before its footer"),
        ("bootstrap.checkpoint", b"".join(snapshot_batches([level(19)]))[:-1], "it is cut off"),
        ("bootstrap.checkpoint", b"".join(snapshot_batches([b"\x01\x0c\x00\x63"])), "is damaged"),
    ],
)
def test_a_damaged_file_is_in_the_error(
    formatted: Path, name: str, content: bytes, said: str
) -> None:
    """One line says which file and why; exit code 1."""
    (formatted / name).write_bytes(content)
    result = info(str(formatted))
    assert (result.exit_code, result.stdout) == (1, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert str(formatted / name) in result.stderr


@pytest.mark.parametrize("name", ["meta.properties", "bootstrap.checkpoint"])
def test_an_unreadable_file_is_in_the_error(formatted: Path, name: str) -> None:
    """Without rights, or no file at all: what the system says of it; exit code 1."""
    (formatted / name).unlink()
    (formatted / name).mkdir()
    result = info(str(formatted))
    assert result.exit_code == 1
    assert f"{formatted / name} cannot be read: Is a directory" in result.stderr


def test_a_damaged_log_is_an_error(formatted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metadata log of which nothing can be read is no cluster without levels; exit code 1."""
    monkeypatch.setattr(storage_info, "_FILES_S", 2.5)
    log = formatted / "__cluster_metadata-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(b"\x01" * 100)
    result = info(str(formatted))
    assert result.exit_code == 1
    assert f"{log} cannot be read: record batch format 1 is not known" in result.stderr


def test_what_is_no_log_directory_is_wrong_usage(tmp_path: Path) -> None:
    """An empty directory, a file, nothing: what to give instead."""
    (tmp_path / "file").write_text("")
    for path, said in (
        ("", "is not formatted"),
        ("file", "is not a directory"),
        ("x", "is not a dir"),
    ):
        result = info(str(tmp_path / path))
        assert isinstance(result.exception, UsageError)
        assert said in str(result.exception)
        assert "give one of a node's log.dirs" in str(result.exception)


@pytest.mark.form("document", "released")
def test_the_drafts_name_of_an_option() -> None:
    """``--metadata-version`` of KIP-778 (M-25) became ``--release-version`` (M-25 as released); all
    else is passed unchanged."""
    given = ["-c", "x", "--metadata-version", "3.7", "--metadata-version=3.8", "-g", "--metadata"]
    assert passed_on(given) == [
        *("-c", "x", "--release-version", "3.7", "--release-version=3.8", "-g", "--metadata"),
    ]
    unchanged = ["--config", "x", "--cluster-id", "y", "-t", "y", "--ignore-formatted", "-h"]
    assert passed_on(unchanged) == unchanged


@pytest.mark.form("document", "released")
@pytest.mark.stack
@pytest.mark.parametrize("release", nightly_but({NEWEST_TESTED}, LATEST_PRODUCTION))
def test_format_is_kafkas_own(
    release: str, stack_cache: Cache, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its options, also by KIP-778's names (M-25, M-25 as released), its default level, which each
    release defines for itself as its newest in production (M-26), and where
    the level is kept (M-27 as released).

    What the tool says and its exit code come through.
    """
    node, data = NodeSpec(1, release, Roles.CONTROLLER), tmp_path / "data"
    addresses = {1: Addresses(broker=None, controller=9093)}
    file = tmp_path / "server.properties"
    write_private(
        file, format_properties(node_properties(ClusterSpec([node]), node, addresses, data))
    )
    cluster = random_id()

    def tool(*arguments: str) -> tuple[int, str]:
        given = ("storage", "format", "--kafka", release, *arguments)
        done = CliRunner().invoke(
            app, given, env={"FEATUREWATCH_CACHE": str(stack_cache.directory)}
        )
        out, err = capfd.readouterr()
        return done.exit_code, out + err

    code, output = tool("--config", str(file), f"--cluster-id={cluster}")
    assert (code, "Formatting" in output) == (0, True)
    document = json.loads(info(str(data), "--json").output)
    assert (document["meta"]["cluster"], document["meta"]["node"]) == (cluster, 1)
    assert document["formatted"]["levels"]["metadata.version"] == LATEST_PRODUCTION[release]
    again = ("-c", str(file), f"-t={cluster}", "--metadata-version", "3.7-IV4")
    code, output = tool(*again)
    assert (code, "already formatted" in output) == (1, True)
    (data / "meta.properties").unlink()
    assert tool(*again, "-g")[0] == 0
    assert "formatted   metadata.version 19 (3.7-IV4)" in info(str(data)).output


@pytest.mark.stack
@pytest.mark.parametrize(
    ("release", "level", "able"),
    [
        pytest.param("4.3.0", 30, ["4.3", "4.4"], marks=pytest.mark.nightly),
        ("4.4.0", 33, ["4.4"]),
    ],
)
def test_a_quorum_of_dynamic_voters(
    release: str, level: int, able: list[str], make_cluster: MakeCluster
) -> None:
    """Its voters and kraft.version are in the log's first snapshot, where 4.4 has the initial
    levels, too; the current levels are in its log."""
    node = NodeSpec(1, release, Roles.CONTROLLER)
    cluster = make_cluster(ClusterSpec([node], dynamic_voters=True))
    document = json.loads(info(str(cluster.node(1).data), "--json").output)
    assert (document["formatted"]["kraft_version"], document["formatted"]["voters"]) == (1, [1])
    assert document["formatted"]["levels"]["metadata.version"] == level
    assert document["committed"]["levels"]["kraft.version"] == 1
    assert document["committed"]["levels"]["metadata.version"] == level
    starts = [name for name, reason in document["releases"].items() if reason is None]
    assert starts == able
