"""The worker's periodic work, with clock readings as arguments."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from featurewatch.agents import timers
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.timers import StuckCommitsError, Watchdog, publish_states, silent_statuses
from featurewatch.monitor.input_messages import InputMessage
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import decode_snapshot
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.outputs import Severity
from featurewatch.streams.topics import METADATA_LOG, Topic
from tests.agents.events import CLUSTER, following, levels, registration, status

BUS = BusSettings("127.0.0.1:9092")


def _state(*events: Any) -> MonitorState:
    state = MonitorState.of(CLUSTER)
    for event in events:
        state = step(state, event).state
    return state


def test_a_silent_source_gets_a_silent_status() -> None:
    """Each silent source gets a separate status, whose detail has the seconds."""
    state = _state(following(3))
    (silent,) = silent_statuses(state, {"kraft": 21.4}, now_ms=5)
    assert (silent.cluster, silent.source, silent.state) == (CLUSTER, "kraft", SourceState.SILENT)
    assert silent.seen_ms == 5
    assert "21 s" in silent.detail


def test_silence_is_published_once() -> None:
    """A silent source gets no second SILENT status until its next event, but one that makes its
    alert critical."""
    silent_event = status(SourceState.SILENT, -1)
    silent, since_ms = _state(following(3), silent_event), silent_event.seen_ms
    assert silent_statuses(silent, {"kraft": 60}, now_ms=since_ms + 59_999) == []
    (again,) = silent_statuses(silent, {"kraft": 80}, now_ms=since_ms + 60_000)
    critical = step(silent, again)
    assert [alert.severity for alert in critical.alerts] == [Severity.CRITICAL]
    assert silent_statuses(critical.state, {"kraft": 999}, now_ms=since_ms + 999_000) == []
    state = _state(following(3), silent_event, following(4))
    assert len(silent_statuses(state, {"kraft": 60}, now_ms=5)) == 1


class _Silence:
    """A detector over one cluster with a log and znodes; ``published`` has what it published."""

    def __init__(self, log_seen_s: float, znodes_seen_s: float) -> None:
        znodes = replace(following(3), source="zookeeper")
        last_seen = {
            (CLUSTER, "metadata-log"): log_seen_s,
            (CLUSTER, "zookeeper"): znodes_seen_s,
        }
        self.last_seen = last_seen
        self.unread: set[tuple[str, int]] = set()
        self.published: list[tuple[str, str]] = []
        self.states = {CLUSTER: _state(following(3), znodes)}
        processor = SimpleNamespace(
            states=self.states,
            last_seen=last_seen,
            partition=lambda topic, _: (topic.short_name, 0),
        )
        self._detector = timers.SilenceDetector(
            cast("EventProcessor", processor),
            cast("Publisher", SimpleNamespace(publish=self._publish)),
            silent_after_s=20,
            unread=lambda: self.unread,
        )

    async def _publish(self, topic: Topic, event: SourceStatus) -> None:
        self.published.append((topic.short_name, event.source))

    async def check(self, now_s: float) -> None:
        await self._detector.check(now_s, now_ms=5)


async def test_each_source_is_silent_on_its_own() -> None:
    """An active source of a cluster does not hide that another one is silent."""
    silence = _Silence(log_seen_s=100, znodes_seen_s=70)
    await silence.check(now_s=101)
    assert silence.published == [("zookeeper", "zookeeper")]


async def test_a_source_is_not_silent_while_its_topic_cannot_be_read() -> None:
    """The bus is down for ten minutes: the silence begins when the topic can be read again."""
    silence = _Silence(log_seen_s=100, znodes_seen_s=100)
    silence.unread = {("metadata-log", 0), ("zookeeper", 0)}
    for second in range(100, 700, 2):
        await silence.check(second)
    silence.unread = set()
    await silence.check(717)
    assert silence.published == []
    await silence.check(719)
    assert sorted(silence.published) == [("metadata-log", "kraft"), ("zookeeper", "zookeeper")]


async def test_a_silence_is_published_once_however_late_the_status_comes_back() -> None:
    """The status is not on the topic yet, and is not published a second time."""
    silence = _Silence(log_seen_s=100, znodes_seen_s=70)
    for second in range(101, 119, 2):
        await silence.check(second)
    assert silence.published == [("zookeeper", "zookeeper")]


async def test_a_cluster_that_left_is_forgotten() -> None:
    """Its silence would be remembered for as long as the worker runs."""
    silence = _Silence(log_seen_s=0, znodes_seen_s=0)
    await silence.check(now_s=100)
    assert len(silence._detector._pending) == 2
    silence.states.clear()
    await silence.check(now_s=102)
    assert silence._detector._pending == {}


def _watchdog(committed: Mapping[str, int], is_bus_away: Callable[[], bool]) -> Watchdog:
    return Watchdog(lambda: committed, is_bus_away, stuck_after_s=60)


def test_the_watchdog_finds_a_worker_that_reads_and_never_commits() -> None:
    """It raises only after ``stuck_after_s``."""
    watchdog = _watchdog({"p": 3}, lambda: False)
    watchdog.check({"p": 10}, now_s=0)
    watchdog.check({"p": 12}, now_s=60)
    with pytest.raises(StuckCommitsError, match="read to 12 and is committed to 3 for 61 s"):
        watchdog.check({"p": 12}, now_s=61)


def test_the_watchdog_counts_no_time_while_the_bus_is_unavailable() -> None:
    """Nothing can be committed for ten minutes; the time begins when the bus can be reached."""
    is_away = True
    watchdog = _watchdog({"p": 3}, lambda: is_away)
    for second in range(0, 601, 2):
        watchdog.check({"p": 10}, now_s=second)
    is_away = False
    watchdog.check({"p": 10}, now_s=660)
    with pytest.raises(StuckCommitsError):
        watchdog.check({"p": 10}, now_s=661)


def test_the_watchdog_counts_from_the_last_commit() -> None:
    """Each commit, however small, restarts the time."""
    committed = {"p": 0}
    watchdog = _watchdog(committed, lambda: False)
    for second in range(0, 500, 50):
        committed["p"] += 1
        watchdog.check({"p": 1000}, now_s=second)


@pytest.mark.parametrize("read", [{"p": 2}, {"p": None}, {}])
def test_the_watchdog_leaves_an_idle_worker_alone(read: dict[str, int | None]) -> None:
    """A partition that is committed to its end, or was never read, is not stuck."""
    watchdog = _watchdog({"p": 3}, lambda: False)
    for second in (0, 100, 1000, 10_000):
        watchdog.check(read, now_s=second)


class _Recorder:
    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []

    async def send(self, topic: str, message: Message) -> Awaitable[None]:
        self.sent.append((topic, message))
        delivered = asyncio.get_running_loop().create_future()
        delivered.set_result(None)
        return delivered


async def test_the_newest_state_is_published_once_for_many_events() -> None:
    """A cluster that changed gets one snapshot, of its current state."""
    state = _state(registration(1, 1, (1, 30)), levels(2, {"metadata.version": 21}), following(2))
    processor = SimpleNamespace(dirty={CLUSTER}, states={CLUSTER: state})
    bus = _Recorder()
    for _ in range(2):
        await publish_states(cast("EventProcessor", processor), BUS, cast("Publisher", bus), 7)
    ((topic, message),) = bus.sent
    assert topic == "featurewatch.state"
    snapshot = decode_snapshot(message.value)
    assert (snapshot.revision, dict(snapshot.finalized)) == (1, {"metadata.version": 21})


async def test_a_state_that_is_too_large_is_logged_ten_times_at_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever changes in the cluster: a line at each change would fill the log."""
    monkeypatch.setattr(timers, "MAX_EVENT_BYTES", 10)
    state = _state(registration(1, 1, (1, 30)))
    for _ in range(50):
        processor = SimpleNamespace(dirty={CLUSTER}, states={CLUSTER: state})
        await publish_states(cast("EventProcessor", processor), BUS, cast("Publisher", None), 7)
    assert len(caplog.records) == 10
    assert "too large for the bus" in caplog.text


class _NoChangelog:
    async def write(self, *_: Any) -> None:
        """Stores nothing."""


async def test_lines_about_messages_that_cannot_be_read_are_limited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each is a dead letter, and the log has the first of them."""
    bus, now_s = _Recorder(), 0.0
    tracker = SimpleNamespace(fail=lambda: None)
    processor = EventProcessor(
        cast("Any", SimpleNamespace(tracker=tracker)),
        BUS,
        cast("Publisher", bus),
        cast("Any", _NoChangelog()),
        cast("Any", None),
        cast("Any", None),
        lambda: now_s,
    )
    for offset in range(500):
        message = InputMessage(BUS.topic(METADATA_LOG), 0, offset, 7, b"k", b"{")
        await processor._publish(processor._step(message))
    assert len(bus.sent) >= 500
    assert sum("kept in the dead letters" in line for line in caplog.messages) == 10
    now_s = 61.0
    await processor._publish(processor._step(message))
    assert "(and 490 more since the last such line)" in caplog.messages[-1]


async def test_the_state_of_a_forgotten_cluster_is_deleted() -> None:
    """Its key on the compacted topic gets a message without a value."""
    state = _state(following(2), status(SourceState.RETIRED, -1))
    processor = SimpleNamespace(dirty={CLUSTER}, states={CLUSTER: state})
    bus = _Recorder()
    await publish_states(cast("EventProcessor", processor), BUS, cast("Publisher", bus), 7)
    ((topic, message),) = bus.sent
    assert (topic, message.key, message.value) == ("featurewatch.state", CLUSTER.encode(), None)


async def test_a_cluster_that_went_to_another_worker_is_not_published() -> None:
    """A cluster that this worker no longer owns is skipped."""
    processor = SimpleNamespace(dirty={CLUSTER}, states={})
    bus = _Recorder()
    await publish_states(cast("EventProcessor", processor), BUS, cast("Publisher", bus), 7)
    assert bus.sent == []
