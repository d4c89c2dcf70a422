"""The worker's periodic work, with clock readings as arguments."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from featurewatch.agents import timers
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.timers import Watchdog, publish_states, silent_statuses
from featurewatch.controller.monitor import MonitorState, step
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import decode_snapshot
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.outputs import Severity
from featurewatch.streams.topics import Topic
from tests.agents.events import CLUSTER, following, levels, registration, status

BUS = BusSettings("127.0.0.1:9092")


def _state(*events: Any) -> MonitorState:
    state = MonitorState.of(CLUSTER)
    for event in events:
        state = step(state, event).state
    return state


def test_a_silent_source_gets_a_silent_status() -> None:
    """Each silent source gets a status of its own, whose detail has the seconds."""
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


async def test_each_source_is_silent_by_itself() -> None:
    """An active source of a cluster does not hide that another one is silent."""
    znodes = replace(following(3), source="zookeeper")
    processor = SimpleNamespace(
        states={CLUSTER: _state(following(3), znodes)},
        last_seen={(CLUSTER, "metadata-log"): 100.0, (CLUSTER, "zookeeper"): 70.0},
    )
    published: list[tuple[str, str]] = []

    async def publish(topic: Topic, event: SourceStatus) -> None:
        published.append((topic.short_name, event.source))

    publisher = cast("Publisher", SimpleNamespace(publish=publish))
    detector = timers.SilenceDetector(
        cast("EventProcessor", processor), publisher, silent_after_s=20
    )
    await detector.check(now_s=101.0, now_ms=5)
    assert published == [("zookeeper", "zookeeper")]


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One item for each time that the process was to exit."""
    exits: list[str] = []
    monkeypatch.setattr(timers, "exit_now", lambda: exits.append("stopped"))
    return exits


def test_the_watchdog_ends_a_worker_that_reads_and_never_commits(stops: list[str]) -> None:
    """It ends the process only after ``stuck_after_s``."""
    watchdog = Watchdog(lambda: {"p": 3}, stuck_after_s=60)
    watchdog.check({"p": 10}, now_s=0)
    watchdog.check({"p": 12}, now_s=60)
    assert stops == []
    watchdog.check({"p": 12}, now_s=61)
    assert stops == ["stopped"]


def test_the_watchdog_counts_from_the_last_commit(stops: list[str]) -> None:
    """Each commit, however small, restarts the time."""
    committed = {"p": 0}
    watchdog = Watchdog(lambda: committed, stuck_after_s=60)
    for second in range(0, 500, 50):
        committed["p"] += 1
        watchdog.check({"p": 1000}, now_s=second)
    assert stops == []


@pytest.mark.parametrize("read", [{"p": 2}, {"p": None}, {}])
def test_the_watchdog_leaves_an_idle_worker_alone(
    stops: list[str], read: dict[str, int | None]
) -> None:
    """A partition that is committed to its end, or was never read, never ends the process."""
    watchdog = Watchdog(lambda: {"p": 3}, stuck_after_s=60)
    for second in (0, 100, 1000, 10_000):
        watchdog.check(read, now_s=second)
    assert stops == []


class _Recorder:
    def __init__(self) -> None:
        self.sent: list[tuple[str, Message]] = []

    async def send(self, topic: str, message: Message) -> None:
        self.sent.append((topic, message))


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
