"""The alert about lost outputs ends automatically; no other alert about losses does. Pure steps."""

from dataclasses import replace

import pytest

from featurewatch.agents.topic_changes import changed_topics, split_rows
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS
from featurewatch.monitor.rows import rows_of_state, states_of_rows
from featurewatch.monitor.step import MonitorState, step, step_lost, step_lost_outputs
from featurewatch.streams.events import SourceStatus
from featurewatch.streams.outputs import AlertState, Severity
from featurewatch.streams.topics import FEATURE_CHANGES, METADATA_LOG
from featurewatch.tables.image.sources import MessagePosition
from tests.agents.events import CLUSTER, following, levels

CAUSE = Cause("a cause", 1000)
HOUR_MS = DEFAULT_LIMITS.quiet_ms


def heartbeat(at_ms: int) -> tuple[SourceStatus, MessagePosition]:
    """A heartbeat that the bus received at a time."""
    position = MessagePosition(METADATA_LOG.short_name, at_ms, at_ms)
    return replace(following(1), seen_ms=at_ms), position


def test_lost_outputs_are_a_warning_that_ends_after_an_hour() -> None:
    """It names the topic, leaves the cluster ready, and survives a restart."""
    state = MonitorState.of(CLUSTER)
    for event in (levels(1, {"metadata.version": 20}), following(1)):
        state = step(state, event).state
    lost = step_lost_outputs(state, FEATURE_CHANGES.short_name, "deleted", CAUSE)
    (alert,) = lost.alerts
    assert (alert.rule, alert.severity) == ("outputs-lost", Severity.WARNING)
    assert alert.evidence["topic"] == "feature-changes" and "feature-changes" in alert.summary
    assert lost.state.image.ready
    (restored,) = states_of_rows(
        (key, value) for key, value in rows_of_state(lost.state).items()
    ).values()
    still = step(restored, *heartbeat(CAUSE.at_ms + HOUR_MS - 1))
    assert not still.alerts
    ended = step(still.state, *heartbeat(CAUSE.at_ms + HOUR_MS))
    (alert,) = ended.alerts
    assert alert.state is AlertState.RESOLVED
    assert ended.state.image.sources.unreadable == state.image.sources.unreadable


def test_lost_outputs_and_lost_messages_are_apart() -> None:
    """The end of the one leaves the other."""
    state = step_lost(MonitorState.of(CLUSTER), METADATA_LOG.short_name, "r", CAUSE).state
    state = step_lost_outputs(state, FEATURE_CHANGES.short_name, "r", CAUSE).state
    after = step(state, *heartbeat(CAUSE.at_ms + HOUR_MS)).state
    assert {alert.rule for alerts in after.firing.values() for alert in alerts} == {"messages-lost"}


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"a": "1"}, {"a": "1"}, []),
        ({"a": "1"}, {"a": "2", "b": "3"}, ["a"]),
        ({}, {"a": "2"}, []),
        ({"a": "1"}, {}, []),
        ({"a": ""}, {"a": "2"}, []),
        ({"a": "1"}, {"a": ""}, []),
    ],
)
def test_a_topic_counts_as_recreated_if_both_ids_are_known(
    before: dict[str, str], after: dict[str, str], changed: list[str]
) -> None:
    """A bus without ids, a topic that is missing now, and one that is new are no change."""
    assert changed_topics(before, after) == changed


def test_rows_of_ids_are_apart_from_those_of_clusters() -> None:
    """No cluster has such a key: rows of clusters have a bar in their key."""
    rows = [(b"topic-ids/3", b'{"a":"1"}'), (b"topic-ids/3|cluster", b"{}"), (b"c|cluster", b"{}")]
    assert split_rows(rows) == (rows[1:], {3: {"a": "1"}})
