"""Messages that the bus lost are an alert, and never silently passed over."""

from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.step import MonitorState, StepResult, step, step_lost
from featurewatch.streams.outputs import Severity
from featurewatch.tables.image.sources import MessagePosition
from tests.agents.events import CLUSTER, levels

TOPIC = "metadata-log"


def _at(bus_offset: int, time_ms: int) -> MessagePosition:
    return MessagePosition(TOPIC, bus_offset, time_ms)


def _rules(result: StepResult) -> list[tuple[str, Severity]]:
    return [(alert.rule, alert.severity) for alert in result.alerts]


def test_a_reversal_is_distinguished_from_a_message_that_comes_again() -> None:
    """After a crash the bus delivers messages again: same offset and same time. A recreated topic
    has older offsets with newer messages, which count."""
    first = step(MonitorState.of(CLUSTER), levels(1, {"metadata.version": 20}), _at(500, 1000))
    sources = first.state.image.sources
    assert not sources.goes_back(_at(500, 1000))
    assert not sources.goes_back(_at(501, 900))
    assert sources.goes_back(_at(500, 2000))
    assert sources.goes_back(_at(0, 2000))
    again = step(first.state, levels(1, {"metadata.version": 20}), _at(500, 1000))
    assert again.state is first.state
    second = step(first.state, levels(2, {"metadata.version": 21}), _at(0, 2000))
    assert dict(second.state.image.features.levels) == {"metadata.version": 21}
    assert not second.state.image.sources.goes_back(_at(1, 3000))


def test_messages_that_expired_are_an_alert() -> None:
    """The worker counts them in each cluster of the partition."""
    reason = "the messages since offset 7 expired"
    lost = step_lost(MonitorState.of(CLUSTER), TOPIC, reason, Cause("x", 1))
    assert _rules(lost) == [("messages-lost", Severity.CRITICAL)]
    assert "since offset 7 expired" in lost.alerts[0].summary
    assert "metadata-log" in lost.alerts[0].summary
