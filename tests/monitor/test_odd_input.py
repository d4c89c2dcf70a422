"""Odd messages on the input topics add no cluster, no wrong time, and no permanent alert."""

from dataclasses import replace

import pytest

from featurewatch.monitor.input_messages import InputMessage, ProcessResult, process
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.rules import RULES
from featurewatch.monitor.step import MAX_AHEAD_MS, MonitorState
from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Acknowledgement, Event, LogCommit, RecordJson, SourceState
from featurewatch.streams.outputs import Alert, AlertState, Severity
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from featurewatch.tables.fold.acknowledgements import ACKNOWLEDGED
from tests.simulation import records as r

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TOPIC = METADATA_LOG.name()


def commit(last: int, *records: RecordJson, seen_ms: int) -> LogCommit:
    """A commit that a controller appended and a source read at one time."""
    return replace(r.commit(last, *records), append_ms=seen_ms, seen_ms=seen_ms)


class Input:
    """The messages of the metadata log's topic, applied to the states of all their clusters."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.states: dict[ClusterId, MonitorState] = {}
        self._limits = limits
        self._offset = 0

    def send(
        self,
        value: bytes | None,
        key: bytes | None,
        time_ms: int,
        place: tuple[int, int] | None = None,
    ) -> ProcessResult:
        """A message, which the bus received at ``time_ms``.

        ``place`` is its partition and offset; None: the next offset of partition 0.
        """
        if place is None:
            place = (0, self._offset)
            self._offset += 1
        message = InputMessage(TOPIC, *place, time_ms, key, value)
        result = process(
            message,
            lambda cluster: self.states.get(cluster) or MonitorState.of(cluster),
            self._limits,
        )
        if result.step.state is not result.before:
            self.states[result.step.state.image.cluster] = result.step.state
        return result

    def event(self, event: Event, time_ms: int) -> tuple[Alert, ...]:
        """An event, as a source publishes it; the alerts that began, changed or ended."""
        message = encode(METADATA_LOG, event)
        result = self.send(message.value, message.key, time_ms)
        assert result.dead_letter is None
        return result.step.alerts

    def firing(self) -> dict[str, Severity]:
        """The rules that fire for `r.CLUSTER`, with their severities."""
        state = self.states.get(r.CLUSTER)
        alerts = [alert for alerts in state.firing.values() for alert in alerts] if state else []
        return {alert.rule: alert.severity for alert in alerts}


def known(limits: Limits = DEFAULT_LIMITS) -> Input:
    """The input with one cluster, whose source follows its log."""
    topic = Input(limits)
    topic.event(commit(1, r.level("metadata.version", 21), seen_ms=START_MS), START_MS)
    topic.event(r.following(1, seen_ms=START_MS), START_MS)
    return topic


def heartbeat(topic: Input, after_ms: int, seen_ms: int = -1) -> tuple[Alert, ...]:
    """The source's next status."""
    time_ms = START_MS + after_ms
    return topic.event(r.following(1, seen_ms=time_ms if seen_ms < 0 else seen_ms), time_ms)


@pytest.mark.parametrize(
    "value", [b"{", b"[" * 5000, b'{"kind": "news"}', b'{"a": 1' + b"0" * 5000 + b"}", None]
)
def test_the_alert_of_an_unreadable_message_ends_when_no_more_come(value: bytes | None) -> None:
    """It stays for the limit after the newest of its kind, and says that it is over."""
    topic = known()
    topic.send(value, r.CLUSTER.encode(), START_MS)
    assert topic.firing() == {"unreadable": Severity.WARNING}
    topic.send(value, r.CLUSTER.encode(), START_MS + HOUR_MS // 2)
    heartbeat(topic, HOUR_MS + 1)
    assert topic.firing() == {"unreadable": Severity.WARNING}
    (ended,) = heartbeat(topic, HOUR_MS // 2 + HOUR_MS)
    assert (ended.rule, ended.state) == ("unreadable", AlertState.RESOLVED)
    assert ended.summary.startswith("Resolved; it was: MESSAGE could not be read")
    assert not topic.firing()
    # The next one of its kind is a new alert with a new count.
    topic.send(value, r.CLUSTER.encode(), START_MS + DAY_MS)
    assert topic.firing() == {"unreadable": Severity.WARNING}


def test_an_unreadable_record_of_an_old_log_stays_for_the_limit_too() -> None:
    """The time of arrival counts, and not when the controller wrote it."""
    topic = known()
    garbage = replace(commit(2, r.unreadable(), seen_ms=START_MS), append_ms=START_MS - DAY_MS)
    topic.event(garbage, START_MS)
    heartbeat(topic, HOUR_MS - 1)
    assert topic.firing() == {"unreadable": Severity.WARNING}
    heartbeat(topic, HOUR_MS)
    assert not topic.firing()


def test_an_acknowledged_alert_ends_at_once() -> None:
    """Its end names who acknowledged it and why; another acknowledgement changes nothing."""
    topic = known()
    topic.send(b"{", r.CLUSTER.encode(), START_MS)
    event = Acknowledgement(
        r.CLUSTER, f"{r.CLUSTER}/unreadable/record/MESSAGE", "ann", "a test message", START_MS + 1
    )
    (ended,) = topic.event(event, START_MS + 1)
    assert ended.state is AlertState.RESOLVED
    assert ended.summary.startswith("Acknowledged by ann (a test message); it was: MESSAGE could")
    assert not topic.firing()
    assert topic.event(replace(event, seen_ms=START_MS + 2), START_MS + 2) == ()


@pytest.mark.parametrize("alert", ["source-stalled/source/kraft", "nothing", "", "log-gap"])
def test_what_is_not_over_cannot_be_acknowledged(alert: str) -> None:
    """An alert about a condition ends with it, whatever a message claims."""
    topic = known()
    for time_ms in (START_MS, START_MS + 4000):
        topic.event(r.status(SourceState.STALLED, 1, seen_ms=time_ms), time_ms)
    before = topic.firing()
    event = Acknowledgement(r.CLUSTER, f"{r.CLUSTER}/{alert}", "ann", "why not", time_ms)
    assert topic.event(event, time_ms) == ()
    assert topic.firing() == before == {"source-stalled": Severity.WARNING}


def test_a_log_that_went_backwards_can_be_acknowledged() -> None:
    """The highest offset ever counts from the present one on."""
    topic = known()
    topic.event(commit(9, r.level("metadata.version", 21), seen_ms=START_MS), START_MS)
    topic.event(r.gap(0, 9, reset=True), START_MS)
    assert topic.firing() == {"epoch-regression": Severity.CRITICAL, "log-gap": Severity.WARNING}
    for rule in ("epoch-regression", "log-gap"):
        event = Acknowledgement(r.CLUSTER, f"{r.CLUSTER}/{rule}/log", "ann", "rebuilt", START_MS)
        (ended,) = topic.event(event, START_MS)
        assert (ended.rule, ended.state) == (rule, AlertState.RESOLVED)
    assert not topic.firing()


def test_what_can_be_acknowledged_are_rules() -> None:
    """Each name is a rule's, and the rule has no timer."""
    assert {*ACKNOWLEDGED} <= {rule.name for rule in RULES if rule.timer is None}


def test_a_clock_that_is_ahead_moves_no_timer() -> None:
    """A day ahead in one event makes no ghost; a warning names the event and how far it is."""
    topic = known()
    topic.event(
        commit(2, r.register(7, {"metadata.version": (1, 21)}, fenced=True), seen_ms=START_MS),
        START_MS,
    )
    (warning,) = heartbeat(topic, 1000, seen_ms=START_MS + 1000 + DAY_MS)
    assert (warning.rule, warning.at_ms) == ("clock-ahead", START_MS + 1000)
    assert "by the source's clock it happened 86400 s after the bus received it" in warning.summary
    assert topic.firing() == {"clock-ahead": Severity.WARNING}
    # The timer itself runs on by the time of the bus.
    heartbeat(topic, HOUR_MS)
    assert topic.firing() == {
        "clock-ahead": Severity.WARNING,
        "ghost-registration": Severity.WARNING,
    }
    heartbeat(topic, 1000 + HOUR_MS)
    assert topic.firing() == {"ghost-registration": Severity.WARNING}


@pytest.mark.parametrize("time_ms", [0, 1])
def test_a_message_without_a_time_moves_no_timer(time_ms: int) -> None:
    """As old producers write them: the newest time of the topic counts, and no alert fires of the
    seconds since 1970."""
    topic = known()
    topic.event(
        commit(2, r.register(7, {"metadata.version": (1, 21)}, fenced=True), seen_ms=START_MS),
        time_ms,
    )
    heartbeat(topic, HOUR_MS - 1)
    assert not topic.firing()
    first = Input()
    first.event(r.following(1, seen_ms=START_MS), 0)
    assert not first.firing()


def test_clocks_may_differ_a_little() -> None:
    """Up to the allowance an event's own time counts."""
    topic = known()
    ahead_ms = START_MS + MAX_AHEAD_MS
    topic.event(commit(2, r.level("metadata.version", 21), seen_ms=ahead_ms), START_MS)
    assert not topic.firing()
    (alert,) = topic.event(
        commit(3, r.level("metadata.version", 22), seen_ms=ahead_ms + 1), START_MS
    )
    assert alert.rule == "clock-ahead"


@pytest.mark.parametrize("key", [None, b"", b"\xff\xfe", b"someone-else", b"x" * 5000])
@pytest.mark.parametrize("value", [b"{", None, b"event"])
def test_no_key_makes_a_cluster(key: bytes | None, value: bytes | None) -> None:
    """A key that is missing or not the event's is a dead letter, and changes no state."""
    topic = known()
    before = topic.states[r.CLUSTER]
    if value == b"event":
        value = encode(METADATA_LOG, r.following(2, seen_ms=START_MS)).value
    result = topic.send(value, key, START_MS)
    assert result.dead_letter is not None
    assert result.step.outputs == ()
    assert topic.states == {r.CLUSTER: before}


def test_clusters_that_are_not_accepted_are_dead_letters() -> None:
    """Readable or not: an operator's list of clusters keeps out those that somebody made up."""
    topic = known(replace(DEFAULT_LIMITS, accepted_clusters=frozenset({r.CLUSTER})))
    event = replace(r.following(2, seen_ms=START_MS), cluster=ClusterId("forged"))
    message = encode(METADATA_LOG, event)
    for value in (message.value, b"{"):
        result = topic.send(value, message.key, START_MS)
        assert result.dead_letter is not None
        assert result.dead_letter.cluster == "forged"
    assert {*topic.states} == {r.CLUSTER}
    assert topic.event(r.following(2, seen_ms=START_MS), START_MS) == ()


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("value", [b"a test message", b"event"])
def test_a_message_on_another_partition_changes_nothing(is_known: bool, value: bytes) -> None:
    """Its offset would pass for one of the cluster's own: later ones would count as read."""
    partitions = 4
    own = partition_of(r.CLUSTER.encode(), partitions)
    topic = Input(replace(DEFAULT_LIMITS, partitions=partitions))

    def publish(offset: int, event: Event) -> ProcessResult:
        message = encode(METADATA_LOG, event)
        return topic.send(message.value, message.key, START_MS + offset, (own, offset))

    events: list[Event] = [
        commit(1, r.level("metadata.version", 21), seen_ms=START_MS),
        r.following(1, seen_ms=START_MS),
        commit(2, r.level("metadata.version", 22), seen_ms=START_MS),
    ]
    if value == b"event":
        value = encode(METADATA_LOG, commit(9, seen_ms=START_MS)).value or b""
    for offset, event in enumerate(events):
        if offset == (1 if is_known else 0):
            before = {**topic.states}
            place = ((own + 1) % partitions, 500 * is_known)
            stray = topic.send(value, r.CLUSTER.encode(), START_MS + offset, place)
            assert stray.dead_letter is not None
            assert topic.states == before
        assert publish(offset, event).dead_letter is None
    image = topic.states[r.CLUSTER].image
    assert image.features.levels[METADATA_VERSION] == 22
    assert not topic.firing()


def test_a_source_that_is_unavailable_for_a_moment_is_a_warning() -> None:
    """A controller that restarts is offline for seconds; after the limit it is critical."""
    topic = known()

    def stalled(after_ms: int) -> dict[str, Severity]:
        time_ms = START_MS + after_ms
        topic.event(r.status(SourceState.STALLED, 1, seen_ms=time_ms), time_ms)
        return topic.firing()

    assert stalled(0) == stalled(3_999) == {}
    assert stalled(4_000) == {"source-stalled": Severity.WARNING}
    assert stalled(59_999) == {"source-stalled": Severity.WARNING}
    assert stalled(60_000) == {"source-stalled": Severity.CRITICAL}
    (ended,) = heartbeat(topic, 61_000)
    assert (ended.state, ended.summary.startswith("Resolved; it was: The source")) == (
        AlertState.RESOLVED,
        True,
    )
    # The next time counts from its own beginning.
    assert stalled(120_000) == {}
    assert stalled(124_000) == {"source-stalled": Severity.WARNING}
