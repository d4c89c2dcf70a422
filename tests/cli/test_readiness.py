"""``featurewatch readiness`` as it is called and shown, without a cluster."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.cli.commands.readiness import assess
from featurewatch.cli.commands.readiness.rendering import view
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.rendering import console
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError
from featurewatch.controller.kraft import release_of
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.events import Event
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.rows import changelog_topic
from tests.monitor.readiness.clusters import cluster, controllers, image, nodes, ranges
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import CLUSTER
from tests.streams.bus.mock_bus import MockBus

AT = ("--bootstrap-controller", "kafka:9093")
MIXED = (
    *controllers("4.3", "3.9", "3.9"),
    r.register_controller(9, ranges("3.7")),
    *nodes("4.3", "3.9", "3.9"),
    r.register(7, ranges("3.8")),
)
DONE = (*controllers(*["4.3"] * 3), *nodes("4.3", "4.3"))


@pytest.fixture
def run_readiness(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command on an image, or with what reading it raises; the image is of just now."""
    monkeypatch.setattr(time, "time", lambda: 1.0)

    def run(*arguments: str, seen: ClusterImage | Exception | None = None) -> Result:
        def read(_: ClusterSection, **__: object) -> ClusterImage:
            if isinstance(seen, Exception):
                raise seen
            return seen or image(*MIXED, level=19)

        monkeypatch.setattr(assess, "read_image", read)
        return CliRunner().invoke(app, ["readiness", *arguments])

    return run


def test_the_verdict_comes_first_and_then_the_blockers(
    run_readiness: Callable[..., Result],
) -> None:
    """Verdict, Kafka's first refusal, all nodes by what is to be done, levels, the way back."""
    result = run_readiness(*AT, "--target", "4.3")
    assert result.exit_code == 3
    lines = [line.rstrip() for line in result.output.splitlines()]
    assert lines[0].startswith(f"NOT READY for Kafka 4.3  cluster {CLUSTER}, mixed")
    assert "Controller 1 (Kafka 4.3) would refuse" in lines[1]
    at = [lines.index(title) for title in ("In the way", "Levels", "The way back")]
    assert at == sorted(at)
    block = lines[at[0] : at[1]]
    assert "  ✗ brokers 2-3  Kafka 3.9  metadata.version 1-21 only, and lacks 5 more" in block
    assert "      → start them on Kafka 4.3 to 4.4" in block
    assert any("controller 9  Kafka 3.7, ghost" in line for line in block)
    assert any("unregister-broker --bootstrap-server HOST:PORT --id 7" in line for line in block)
    assert any("now 3.7 to 4.4, afterwards 4.3 to 4.4" in line for line in lines)
    assert any(line.startswith("  ! min.insync.replicas of single brokers") for line in lines)


def test_the_exit_code_is_the_verdict(run_readiness: Callable[..., Result]) -> None:
    """0 ready, 3 not, 4 unknown; without a target it is the newest release that runs."""
    ready = run_readiness(*AT, seen=image(*DONE))
    assert (ready.exit_code, ready.output.splitlines()[0][:20]) == (0, "READY for Kafka 4.3 ")
    assert (
        run_readiness(*AT, seen=image(*controllers("4.3"), *nodes("4.3"), level=14)).exit_code == 4
    )
    unseen = run_readiness(*AT, seen=ClusterNotReadError("kafka:9093 does not answer"))
    assert (unseen.exit_code, unseen.stdout) == (4, "")
    assert "does not answer" in unseen.stderr


def test_json_is_one_document_with_every_node(run_readiness: Callable[..., Result]) -> None:
    """Verdict, features, blockers with ranges and remedies, Kafka's words."""
    report = json.loads(run_readiness(*AT, "-t", "4.3.0", "--json").stdout)
    assert (report["verdict"], report["target"], report["cluster"]) == ("no", "4.3", CLUSTER)
    assert {(blocker["role"], blocker["node_id"]) for blocker in report["blockers"]} == {
        *(("broker", node) for node in (2, 3, 7)),
        *(("controller", node) for node in (2, 3, 9)),
    }
    assert report["controller_response"]["accepted"] is False
    assert report["downgrade_path"]["lossless"] is False
    assert {feature["feature"]: feature["target"] for feature in report["features"]}[
        "metadata.version"
    ] == 30


def test_single_levels(run_readiness: Callable[..., Result]) -> None:
    """By number, by name, by release; alone or instead of the release's."""
    for text in ("metadata.version=21", "metadata.version=3.9-IV0", "metadata.version=3.9"):
        report = json.loads(
            run_readiness(*AT, "-f", text, "--json", seen=image(*DONE, level=20)).stdout
        )
        assert {
            feature["feature"]: feature["target"]
            for feature in report["features"]
            if feature["target"]
        } == {"metadata.version": 21}
    report = json.loads(
        run_readiness(*AT, "-t", "4.3", "-f", "kraft.version=0", "--json", seen=image(*DONE)).stdout
    )
    targets = {feature["feature"]: feature["target"] for feature in report["features"]}
    assert (targets["kraft.version"], targets["metadata.version"]) == (0, 30)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target", "3.7-IV1"), "--target 3.7, or --feature metadata.version=3.7-IV1"),
        (("--target", "9.9"), "'9.9' is not in the table of levels, which has 3.3 to 4.4"),
        (("--feature", "metadata.version"), "is not NAME=LEVEL"),
        (("--feature", "group.version=x"), "'x' is not a level of group.version: write a whole"),
        (("--feature", "a=1", "--feature", "a=2"), "names a twice"),
        (("--feature", "metadata.version=99999"), "0 to 32767, or a name as in 4.0-IV3"),
    ],
)
def test_invalid_targets_are_wrong_usage(
    run_readiness: Callable[..., Result], arguments: tuple[str, ...], words: str
) -> None:
    """It is wrong usage, said in one line."""
    result = run_readiness(*AT, *arguments)
    assert isinstance(result.exception, UsageError)
    assert words in str(result.exception)


def rows_of(events: list[Event]) -> tuple[MonitorState, dict[str, bytes]]:
    """The state of a worker that took these in, and the rows that it keeps."""
    engine = Engine()
    engine.apply_all(events)
    return engine.state, engine.rows


def test_an_unreadable_metadata_file_is_in_the_error(tmp_path: Path) -> None:
    """One line names it, whoever asks for the cluster's id."""
    (tmp_path / "__cluster_metadata-0").mkdir()
    (file := tmp_path / "meta.properties").mkdir()
    for command in (("readiness",), ("watch", "--bus", "127.0.0.1:1")):
        result = CliRunner().invoke(app, [*command, "--log-directory", str(tmp_path)])
        assert isinstance(result.exception, UsageError), result.exception
        assert str(result.exception) == f"{file} cannot be read: Is a directory"


def test_from_the_rows_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its whole state with times, of all clusters; deleted rows count no more; old news is old."""
    bus = MockBus(partitions=1)
    now_ms = int(time.time() * 1000)
    events = [*cluster(*DONE), r.commit(60, r.fence(2)), r.following(60, seen_ms=now_ms)]
    state, rows = rows_of(events)
    topic = changelog_topic("featurewatch-worker")
    bus.put(topic, f"{CLUSTER}|nodes/broker/9".encode(), b"[null, []]", 0)
    for key, value in rows.items():
        bus.put(topic, key.encode(), value, 0)
    monkeypatch.setenv("FEATUREWATCH_BUS__BOOTSTRAP_SERVERS", bus.settings.bootstrap_servers)
    assert assess.states_from(bus.settings) == {CLUSTER: state}
    assert (
        NodeKey(Role.BROKER, NodeId(2)) in assess.states_from(bus.settings)[CLUSTER].times.offline
    )
    result = CliRunner().invoke(app, ["readiness", "--target", "4.3", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ghosts"] == [{"role": "broker", "node_id": 2}]
    other = CliRunner().invoke(app, ["readiness", "--cluster", "other"])
    assert (other.exit_code, "nothing is known of the cluster other" in other.stderr) == (4, True)
    bus.put(topic, f"{CLUSTER}|cluster".encode(), rows[f"{CLUSTER}|cluster"], 0)
    monkeypatch.setattr(time, "time", lambda: now_ms / 1000 + 3600)
    stale = CliRunner().invoke(app, ["readiness", "--target", "4.3"])
    assert (stale.exit_code, "Check that a worker is running" in stale.stdout) == (4, True)


def test_a_large_cluster_stays_on_one_screen() -> None:
    """Two thousand nodes in the way are a handful of lines, by release and condition."""
    many = [
        r.register(node, ranges(("3.7", "3.8", "3.9")[node % 3]), fenced=node % 7 == 0, epoch=node)
        for node in range(2000)
    ]
    report = assess_readiness(image(*controllers(*["4.3"] * 3), *many, level=19), release_of("4.3"))
    assert len(report.blockers) == 2000
    shown = console()
    with shown.capture() as captured:
        shown.print(view(report))
    lines = captured.get().splitlines()
    assert len(lines) < 80
    assert sum("✗ brokers" in line for line in lines) == 6


def test_controllers_may_have_their_own_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """--controllers-config beside --command-config, as in watch."""
    sections: list[ClusterSection] = []

    def read(section: ClusterSection, **__: object) -> ClusterImage:
        sections.append(section)
        return image(*DONE)

    monkeypatch.setattr(assess, "read_image", read)
    files = [tmp_path / name for name in ("nodes", "controllers")]
    options = ("--command-config", str(files[0]), "--controllers-config", str(files[1]))
    CliRunner().invoke(app, ["readiness", *AT, *options])
    assert [sections[0].command_config, sections[0].controllers_config] == files
