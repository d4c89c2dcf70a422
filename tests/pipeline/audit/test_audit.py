"""The audit compares the live outputs with what the lake recomputes."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.cli.commands.pipeline import audit as command
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.runtime import lake as lake_runtime
from featurewatch.pipeline.audit.audit import audit
from featurewatch.pipeline.audit.report import (
    DIFFERENT,
    EQUAL,
    EXTRA,
    MISSING,
    PENDING,
    REORDERED,
    UNKNOWN,
    VERDICTS,
    AuditReport,
    TableCounts,
)
from featurewatch.pipeline.gold.tables import ALERTS, AUDIT, EPOCHS, FEATURE_CHANGES, OPERATIONS
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import GAPS
from featurewatch.streams.codec.outputs import Output
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS as ALERTS_TOPIC
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import FeatureLevel
from tests.pipeline.audit.lakes import (
    START_MS,
    Topics,
    heartbeat,
    history,
    in_another_order,
    work,
)
from tests.pipeline.filling import EPOCH, rows
from tests.pipeline.gold.parity import fill_tables

LATER_MS = START_MS + 100_000


class Course(Event):
    """The steps between one audit and the next; it is set when no step is left."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Callable[[], None]] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Runs the next step."""
        if self.steps:
            self.steps.pop(0)()
        else:
            self.set()
        return True


class Commands:
    """Runs the command on a lake, in this process's session."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.course = Course()

    def run(self, *flags: str) -> tuple[int, list[dict[str, Any]]]:
        """Returns the exit code and the printed documents."""
        command = ["pipeline", "audit", "--lake", self.lake.root, "--json", *flags]
        result = CliRunner().invoke(app, command)
        return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]

    def opened(self, root: str, _: str) -> contextlib.AbstractContextManager[Lake]:
        """Returns the lake instead of opening it again."""
        assert root == self.lake.root
        return contextlib.nullcontext(self.lake)


@pytest.fixture
def commands(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """The command on an empty lake."""
    commands_ = Commands(lake)
    monkeypatch.setattr(lake_runtime, "open_lake", commands_.opened)
    monkeypatch.setattr(lake_runtime, "stop_at_signal", lambda: commands_.course)
    return commands_


def fault(output: Output, at_ms: int, first: set[str]) -> Iterator[tuple[Output, int]]:
    """The outputs that are published instead of one; each cluster has a known fault."""
    key = f"{output.cluster}/{type(output).__name__}"
    is_first = key not in first
    first.add(key)
    match output.cluster, output:
        case "cluster-1", FeatureChange() if is_first:
            return
        case "cluster-2", Alert() if is_first:
            yield output, at_ms
            yield replace(output, cause="nothing that there is"), at_ms
        case "cluster-4", FeatureChange() if is_first:
            yield replace(output, after=FeatureLevel(output.after + 1), epoch=77), at_ms
        case "cluster-6", Snapshot() if is_first:
            yield output, at_ms + 30_000
        case "cluster-10", FeatureChange() if is_first:
            yield output, at_ms
            yield output, at_ms + 5
        case _:
            yield output, at_ms


def without_compacted(outputs: list[tuple[Output, int]]) -> list[tuple[Output | None, int]]:
    """The outputs that remain after compaction: None in place of the firings of alerts that were
    resolved later."""
    ended = {o.id for o, _ in outputs if isinstance(o, Alert) and o.state is AlertState.RESOLVED}
    return [
        (None if isinstance(o, Alert) and o.state is AlertState.FIRING and o.id in ended else o, at)
        for o, at in outputs
    ]


@pytest.mark.stack
def test_each_kind_of_difference_is_found(commands: Commands) -> None:
    """A missing change, an extra alert, a change with another level, a late snapshot and a
    duplicate change are told apart, and nothing else differs.

    Outputs of a worker that processed a cluster's topics in another order are right, too. Outputs
    that were compacted away are unknown, and replayed clusters are left out. Outputs that gold has
    not folded yet are not extra, and outputs within their time limit are not missing.
    """
    lake, topics, first = commands.lake, Topics(), set[str]()
    planted: list[tuple[Output | None, int]] = []
    for seed in (1, 2, 4, 6, 10):
        reads = topics.publish(history(seed))
        planted += [
            published for output, at in work(reads) for published in fault(output, at, first)
        ]
    for seed in (11, 13, 17, 19):
        planted += [*work(in_another_order(topics.publish(history(seed)), seed))]
    planted += without_compacted([*work(topics.publish(history(30)))])
    gone = sum(output is None for output, _ in planted)
    topics.publish(history(29, start_ms=LATER_MS * 2), prefix="replay.cluster-29")
    late_outputs = [*work(topics.publish(history(27, start_ms=LATER_MS)))]
    last = late_outputs[-1][1]
    pending_count = sum(at_ms == last for _, at_ms in late_outputs)
    planted += [output for output in late_outputs if output[1] < last]
    for output, at_ms in sorted(planted, key=lambda published: published[1]):
        if output is None:
            topics.skip(ALERTS_TOPIC)
        else:
            topics.publish_output(output, at_ms)
    topics.into(lake)
    lose(lake, METADATA_LOG.name("replay.cluster-29"))
    fill_tables(lake)

    code, documents = commands.run("--limit", "2", "--save")
    assert code == ExitCode.NO
    *tables, one, other, whole = documents
    found = {table["table"]: {k: v for k, v in table["verdicts"].items() if v} for table in tables}
    differ = {
        name: {k: v for k, v in verdicts.items() if k in (MISSING, EXTRA, DIFFERENT)}
        for name, verdicts in found.items()
    }
    assert differ == {
        FEATURE_CHANGES.name: {MISSING: 1, DIFFERENT: 1},
        ALERTS.name: {EXTRA: 1},
        EPOCHS.name: {},
        OPERATIONS.name: {},
    }
    assert found.pop(OPERATIONS.name) == {}  # these logs have none
    assert all(verdicts[EQUAL] > 20 for verdicts in found.values())
    assert whole["verdicts"][REORDERED] > 5
    assert whole["verdicts"][PENDING] == pending_count
    assert whole["verdicts"][UNKNOWN] == found[ALERTS.name][UNKNOWN] == gone
    assert gone > 0
    assert whole["unknown_reasons"] == [
        "messages of alerts partition 0 were deleted before they were read"
    ]
    assert whole["replayed"] == 1
    assert [one["cluster"], other["cluster"]] == ["cluster-1", "cluster-2"]
    assert [
        row
        for row in rows(lake, AUDIT, "cluster", "table", "verdict", "fields")
        if row[2] != UNKNOWN
    ] == [
        ("cluster-1", FEATURE_CHANGES.name, MISSING, None),
        ("cluster-2", ALERTS.name, EXTRA, None),
        ("cluster-4", FEATURE_CHANGES.name, DIFFERENT, ["after", "epoch"]),
    ]
    assert [(table["late"], table["late_ms"]) for table in tables] == [
        *[(0, 0), (0, 0), (1, 30_001), (0, 0)]
    ]
    assert [table["duplicates"] for table in tables] == [1, 0, 0, 0]


@pytest.mark.stack
@pytest.mark.nightly
def test_an_audit_follows_what_is_added(commands: Commands) -> None:
    """Without messages nothing is known. An output that was not published is pending, then missing;
    what gold has not folded yet is pending; a lost input makes its clusters unknown."""
    lake, topics = commands.lake, Topics()
    assert not audit(lake).is_conclusive
    late_outputs = [*work(topics.publish(history(27, start_ms=LATER_MS)))]
    last = late_outputs[-1][1]
    pending_count = sum(at_ms == last for _, at_ms in late_outputs)
    for output, at_ms in late_outputs:
        if at_ms < last:
            topics.publish_output(output, at_ms)
    topics.into(lake)
    fill_tables(lake)
    report = audit(lake)
    assert (report.count(PENDING), report.count(MISSING)) == (pending_count, 0)
    assert pending_count > 0

    news = [*work(topics.publish([*history(31), heartbeat(LATER_MS + 100_000)]))]
    for output, at_ms in news:
        topics.publish_output(output, at_ms)
    topics.into(lake)
    commands.course.steps = [lambda: None, lambda: lose(lake, METADATA_LOG.name())]
    code, looks = commands.run("--follow")
    assert code == ExitCode.NO
    late, lost = looks
    assert late["verdicts"][MISSING] == pending_count
    assert late["verdicts"][PENDING] == len(news)
    assert (lost["has_differences"], lost["is_conclusive"]) == (False, False)
    assert any(
        "metadata-log partition 0 (between offsets 3 and 8)" in why
        for why in lost["unknown_reasons"]
    )


def lose(lake: Lake, topic: str) -> None:
    """Adds a gap in a topic."""
    lake.append(GAPS, lake.session.createDataFrame([(topic, 0, 3, 8, EPOCH)], GAPS.ddl))


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ({EQUAL: 5}, ExitCode.GOOD),
        ({REORDERED: 1, PENDING: 1}, ExitCode.GOOD),
        ({EQUAL: 5, UNKNOWN: 1}, ExitCode.UNKNOWN),
        ({PENDING: 5}, ExitCode.UNKNOWN),
        ({EQUAL: 5, UNKNOWN: 1, MISSING: 1}, ExitCode.NO),
        ({EXTRA: 1}, ExitCode.NO),
        ({DIFFERENT: 1}, ExitCode.NO),
    ],
)
def test_the_exit_code_says_what_was_found(verdicts: dict[str, int], code: ExitCode) -> None:
    """It is 0 only if something was compared, nothing differs, and nothing is unknown."""
    counts = TableCounts(ALERTS.name, dict.fromkeys(VERDICTS, 0) | verdicts, 0, 0, 0)
    report = AuditReport(1, (counts,))
    assert command._code(report, report.has_differences) is code


def test_replayed_clusters_are_reported_of(capsys: pytest.CaptureFixture[str]) -> None:
    """The report shows how many clusters were left out."""
    command._show(AuditReport(1, replayed=2), as_json=False)
    assert "left out: 2 replayed" in capsys.readouterr().out


def test_ended_searches_are_reported_of(capsys: pytest.CaptureFixture[str]) -> None:
    """The report shows for how many clusters it is not known whether the order explains them."""
    command._show(AuditReport(1, searches_ended=3), as_json=False)
    assert "search ended: 3 with too many orders" in capsys.readouterr().out
    command._show(AuditReport(1, searches_ended=3), as_json=True)
    assert json.loads(capsys.readouterr().out)["searches_ended"] == 3
