"""The audit: what was said live against what the lake recomputes."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import cli.audit
from cli.errors import Exit
from cli.main import app
from pipeline.audit import AUDIT, audit, follow
from pipeline.audit_compare import DIFFERENT, EQUAL, EXTRA, MISSING, REORDERED, UNDER_WAY, UNKNOWN
from pipeline.gold_tables import ALERTS, EPOCHS, FEATURE_CHANGES
from pipeline.lake import Lake
from pipeline.registry import GAPS
from streams.output_codec import Output
from streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from streams.topics import ALERTS as ALERTS_TOPIC
from streams.topics import METADATA_LOG
from tests.pipeline.audit_filling import (
    START_MS,
    Topics,
    fold_gold,
    heartbeat,
    history,
    in_another_order,
    work,
)
from tests.pipeline.filling import EPOCH, rows

LATER_MS = START_MS + 100_000


class AtOnce(Event):
    """Set as soon as it is waited for."""

    def wait(self, timeout: float | None = None) -> bool:
        """Sets it."""
        self.set()
        return True


@pytest.fixture
def command(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command on the lake, in this process' session."""

    def run(*flags: str) -> Result:
        command = ["pipeline", "audit", "--lake", lake.root, *flags]
        return CliRunner().invoke(app, command)

    def opened(root: str, _: str) -> contextlib.AbstractContextManager[Lake]:
        assert root == lake.root
        return contextlib.nullcontext(lake)

    monkeypatch.setattr(cli.audit, "_lake", opened)
    monkeypatch.setattr(cli.audit, "_stop_at_signal", AtOnce)
    return run


def fault(output: Output, at_ms: int, first: set[str]) -> Iterator[tuple[Output, int]]:
    """What becomes of an output of a cluster of which one fault is known."""
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
            yield replace(output, after=output.after + 1, epoch=77), at_ms
        case "cluster-6", Snapshot() if is_first:
            yield output, at_ms + 30_000
        case "cluster-10", FeatureChange() if is_first:
            yield output, at_ms
            yield output, at_ms + 5
        case _:
            yield output, at_ms


@pytest.mark.stack
def test_each_kind_of_difference_is_found(lake: Lake, command: Any) -> None:
    """A change that was not said, an alert out of nothing, a change with another level, a snapshot
    that came late and a change that was said twice are told apart, and nothing else differs. What
    a worker said that took the topics of a cluster in another order than that of their times is
    right, too."""
    topics, first = Topics(), set[str]()
    planted = []
    for seed in (1, 2, 4, 6, 10):
        reads = topics.publish(history(seed))
        planted += [said for output, at in work(reads) for said in fault(output, at, first)]
    for seed in (11, 13, 17, 19, 20, 22):
        planted += [*work(in_another_order(topics.publish(history(seed)), seed))]
    topics.publish([heartbeat(LATER_MS)])
    for output, at_ms in sorted(planted, key=lambda said: said[1]):
        topics.say(output, at_ms)
    topics.into(lake)
    fold_gold(lake)
    result = command("--limit", "2", "--save", "--json")
    assert result.exit_code == Exit.NO
    *tables, one, other, whole = [json.loads(line) for line in result.stdout.splitlines()]
    found = {table["table"]: {k: v for k, v in table["verdicts"].items() if v} for table in tables}
    differ = {
        name: {k: v for k, v in verdicts.items() if k not in (EQUAL, REORDERED)}
        for name, verdicts in found.items()
    }
    assert differ == {
        FEATURE_CHANGES.name: {MISSING: 1, DIFFERENT: 1},
        ALERTS.name: {EXTRA: 1},
        EPOCHS.name: {},
    }
    assert all(verdicts[EQUAL] > 20 for verdicts in found.values())
    assert whole["verdicts"][REORDERED] > 5
    assert [one["cluster"], other["cluster"]] == ["cluster-1", "cluster-2"]
    assert rows(lake, AUDIT, "cluster", "table", "verdict", "fields") == [
        ("cluster-1", FEATURE_CHANGES.name, MISSING, None),
        ("cluster-2", ALERTS.name, EXTRA, None),
        ("cluster-4", FEATURE_CHANGES.name, DIFFERENT, ["after", "epoch"]),
    ]
    assert [(table["late"], table["late_ms"]) for table in tables] == [(0, 0), (0, 0), (1, 30_001)]
    assert [table["twice"] for table in tables] == [1, 0, 0]


@pytest.mark.stack
def test_what_is_under_way_is_no_difference(lake: Lake) -> None:
    """What gold has not folded yet is not extra, and what is still to be said is not missing, until
    its time is over."""
    assert not audit(lake).known
    topics = Topics()
    said = [*work(topics.publish(history(27)))]
    last = said[-1][1]
    unsaid = sum(at_ms == last for _, at_ms in said)
    for output, at_ms in said:
        if at_ms < last:
            topics.say(output, at_ms)
    topics.into(lake)
    fold_gold(lake)
    stop = Event()
    looks = follow(lake, 0.1, stop, late_s=20.0)
    report = next(looks)
    assert (report.differ, report.known, report.count(UNDER_WAY)) == (False, True, unsaid)
    news = [*work(topics.publish([*history(29), heartbeat(LATER_MS)]))]
    for output, at_ms in news:
        topics.say(output, at_ms)
    topics.into(lake)
    report = next(looks)
    assert (report.count(MISSING), report.count(EXTRA, DIFFERENT)) == (unsaid, 0)
    assert report.count(UNDER_WAY) == len(news)
    stop.set()
    assert [*looks] == []


@pytest.mark.stack
def test_what_was_lost_proves_nothing(lake: Lake, command: Any) -> None:
    """Where compaction took alerts away it is unknown whether they were said; where a part of an
    input is gone, whether what was said is right."""
    topics = Topics()
    said = [*work(topics.publish([*history(30), heartbeat(LATER_MS)]))]
    resolved = {o.id for o, _ in said if isinstance(o, Alert) and o.state is AlertState.RESOLVED}
    gone = 0
    for output, at_ms in said:
        if (
            isinstance(output, Alert)
            and output.state is AlertState.FIRING
            and output.id in resolved
        ):
            topics.skip(ALERTS_TOPIC)
            gone += 1
        elif isinstance(output, Alert) or output.revision > 1:
            topics.say(output, at_ms)
    topics.into(lake)
    fold_gold(lake)
    report = audit(lake)
    assert gone > 0
    assert report.count(UNKNOWN) == gone
    assert report.unknown == ("messages of alerts partition 0 were gone before they were read",)
    assert {each.verdict for each in report.differences} == {MISSING}
    gap = [(METADATA_LOG.name(), 0, 3, 8, EPOCH)]
    lake.append(GAPS, lake.session.createDataFrame(gap, GAPS.ddl))
    result = command("--follow")
    assert result.exit_code == Exit.UNKNOWN
    assert len(result.stdout.splitlines()) == 1
    assert "metadata-log partition 0 (between offsets 3 and 8)" in result.stdout
