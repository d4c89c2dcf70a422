"""A worker that judges by something else than the one before ends what no longer holds."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from featurewatch.agents import topic_changes
from featurewatch.agents.published_outputs import PublishedState
from featurewatch.agents.topic_changes import StoredIds, TopicChanges, judges, split_rows
from featurewatch.kafka import releases
from featurewatch.kafka.releases import ReleaseFile
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.outputs import AlertState
from featurewatch.tables.rows import Row
from tests.agents.events import CLUSTER, following, levels, registration
from tests.learned_releases import made_up

BUS = BusSettings("127.0.0.1:9092", partitions=1)
IDS = {"featurewatch.alerts": "1"}


class _Changelog:
    """The states and rows of one partition, in place of a processor."""

    def __init__(self, state: MonitorState) -> None:
        self.states = {CLUSTER: state}
        self.rows: dict[str, bytes | None] = {}

    def partition_of_cluster(self, _: str) -> int:
        """There is one."""
        return 0

    async def write_rows(self, _: int, rows: Iterable[Row]) -> None:
        """Writes rows of states."""
        self.rows.update(rows)

    async def write_stamp(self, _: int, row: Row) -> None:
        """Writes the row of the topics."""
        self.rows.update([row])

    async def commit_rows(self) -> None:
        """Commits at once."""

    def stored(self) -> StoredIds:
        """What the next worker finds of the topics."""
        rows = ((name.encode(), value) for name, value in self.rows.items() if value is not None)
        return split_rows(rows)[1]


class _Whole:
    """Inputs of which nothing is lost."""

    async def restart(self, topic: str, number: int) -> None:
        """Is not called."""
        raise AssertionError(topic, number)

    async def expired(self, partitions: Iterable[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """None."""
        del partitions
        return ()


async def _start(changelog: _Changelog, stored: StoredIds, judged_by: str) -> None:
    """A worker starts with the rows of ``changelog``."""
    changes = TopicChanges(
        BUS, cast("Any", changelog), IDS, _Whole(), lambda: 1, "changelog", judged_by=judged_by
    )
    await changes.apply([], stored, [0], {})


@pytest.mark.parametrize("is_other", [True, False])
async def test_an_alert_that_was_published_and_not_persisted_ends(
    monkeypatch: pytest.MonkeyPatch, *, is_other: bool
) -> None:
    """The message is read again, and by the other tables it has no such alert.

    Without other tables, the message has the same alert again, and nothing has to be read.
    """
    before = MonitorState.of(CLUSTER)
    for event in (levels(1, {"metadata.version": 10}), following(1)):
        before = step(before, event).state
    published = step(before, registration(2, 1, (1, 5))).state
    assert published.firing
    reads = []

    def read(*_: Any) -> list[PublishedState]:
        reads.append(1)
        return [PublishedState(published, ["kraft"])]

    monkeypatch.setattr(topic_changes, "read_published_states", read)
    changelog = _Changelog(before)
    await _start(changelog, {0: {**IDS, "judged by": "one"}}, "one")
    assert not reads
    await _start(changelog, changelog.stored(), "another" if is_other else "one")
    assert len(reads) == is_other
    # As if the other tables said that the node fits.
    again = step(changelog.states[CLUSTER], registration(2, 1, (1, 21)))
    ended = [alert.id for alert in again.alerts if alert.state is AlertState.RESOLVED]
    fired = [alert.id for alerts in published.firing.values() for alert in alerts]
    assert sorted(ended) == (sorted(fired) if is_other else [])
    assert not again.state.firing
    await _start(changelog, changelog.stored(), "another" if is_other else "one")
    assert len(reads) == is_other


def test_limits_and_learned_tables_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest differs with each of them, and not from process to process."""
    limits = Limits()
    plain = judges(limits)
    assert judges(Limits()) == plain
    assert judges(replace(limits, ghost_ms=1)) != plain
    file = ReleaseFile("9.1", made_up(), "somewhere")
    monkeypatch.setattr(topic_changes, "record_files", lambda: (*releases.record_files(), file))
    assert judges(limits) != plain
