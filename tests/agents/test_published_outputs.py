"""Outputs that are read back if a worker's own tables are lost. Pure."""

import contextlib
from dataclasses import replace

import pytest

from featurewatch.agents.published_outputs import PublishedOutputs
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, StepResult, step
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, STATE
from featurewatch.tables.image.provenance import NO_PROVENANCE
from tests.agents.events import CLUSTER, following, levels, registration

EVENTS = (
    registration(1, 1, (1, 5)),
    following(1),
    levels(2, {"metadata.version": 10}),
    levels(3, {"metadata.version": 11, "transaction.version": 1}),
    levels(5, {"transaction.version": 0}),
)

COUNTS: tuple[object, ...] = ("many", -1, [[]], None)
"""What is not a number of records."""


def applied() -> list[StepResult]:
    """The steps of a worker."""
    state, steps = MonitorState.of(CLUSTER), []
    for event in EVENTS:
        steps.append(step(state, event))
        state = steps[-1].state
    return steps


def published(*without: object) -> PublishedOutputs:
    """The outputs of those steps, without some topics."""
    outputs, steps = PublishedOutputs(), applied()
    messages = [(topic_of(each), encode_output(each).value) for it in steps for each in it.outputs]
    for topic in (EPOCHS, FEATURE_CHANGES, ALERTS):
        for where, value in messages:
            if where is topic and topic not in without:
                outputs.add(topic, value)
    return outputs


def firing(state: MonitorState) -> dict[str, Alert]:
    """The firing alerts of a state, by id."""
    return {alert.id: alert for alerts in state.firing.values() for alert in alerts}


def messages() -> dict[str, Alert]:
    """The newest message of each alert that fires: a text that is held is in none."""
    newest = {alert.id: alert for outcome in applied() for alert in outcome.alerts}
    return {id_: it for id_, it in newest.items() if it.state is AlertState.FIRING}


@pytest.mark.parametrize("without", [(), (EPOCHS,), (FEATURE_CHANGES,)])
def test_levels_revision_and_alerts_are_those_that_were_published(
    without: tuple[object, ...],
) -> None:
    """Whichever of the topics that have them is left."""
    before, after = applied()[-1].state, published(*without).state(CLUSTER)
    assert after.image.features == before.image.features
    assert firing(after) == messages()
    assert {*after.firing} == {*before.firing}
    assert not after.image.ready


def test_a_change_that_is_newer_than_the_newest_snapshot_counts() -> None:
    """A worker may end after it has published a change and before the snapshot."""
    outputs, state = PublishedOutputs(), applied()[2].state
    outputs.add(STATE, encode_output(snapshot(state.image, 1)).value)
    for change in applied()[3].changes:
        outputs.add(FEATURE_CHANGES, encode_output(change).value)
    assert outputs.state(CLUSTER).image.features == applied()[3].state.image.features


def test_an_older_snapshot_changes_nothing() -> None:
    """``state`` and ``epochs`` may repeat older ones after a crash."""
    outputs = published()
    old = snapshot(applied()[2].state.image, 10**12)
    outputs.add(EPOCHS, encode_output(old).value)
    assert outputs.state(CLUSTER).image.features == applied()[-1].state.image.features


@pytest.mark.parametrize("topic", [STATE, EPOCHS, FEATURE_CHANGES, ALERTS])
@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b'{"cluster": 3}', b"[" * 100_000])
def test_what_cannot_be_read_is_passed_over(topic: object, value: bytes | None) -> None:
    """Nobody but the worker should write outputs, and whatever is there ends nothing."""
    outputs = published()
    with contextlib.suppress(MalformedEventError):
        outputs.add(topic, value)  # type: ignore[arg-type]
    assert outputs.state(CLUSTER).image.features.revision == 3


@pytest.mark.parametrize(
    "provenance", [{"offset": "x", "leader_epoch": 1, "append_ms": 1}, {"offset": [[]]}, {}]
)
def test_fields_that_this_version_cannot_use_end_nothing(provenance: dict[str, object]) -> None:
    """A worker that could not be rebuilt would begin again for ever: the levels count, and only
    what cannot be used is left out."""
    outputs, state = published(), applied()[-1].state
    newest = replace(snapshot(state.image, 10**12), revision=9, provenance=provenance)
    outputs.add(STATE, encode_output(newest).value)
    firing = next(iter(state.firing.values()))[0]
    for count in COUNTS:
        odd = replace(
            firing, id=f"unreadable-{count}", subject={"record": "7"}, evidence={"count": count}
        )
        outputs.add(ALERTS, encode_output(odd).value)
    rebuilt = outputs.state(CLUSTER).image
    assert (rebuilt.features.revision, rebuilt.features.provenance) == (9, NO_PROVENANCE)
    assert rebuilt.features.levels == state.image.features.levels
    assert rebuilt.sources.unreadable["7"].count == 1


def test_an_alert_of_an_unknown_rule_or_subject_is_left_alone() -> None:
    """A newer version may have published it."""
    outputs = published()
    alert = next(each for each in messages().values() if "node" in each.subject)
    for other in (
        replace(alert, id="a", rule="of-another-version"),
        replace(alert, id="b", subject={"role": "x", "node": 1}),
        replace(alert, id="c", subject={"role": "broker", "node": "x"}),
        replace(alert, id="d", rule="level-above-support", subject={}),
    ):
        outputs.add(ALERTS, encode_output(other).value)
    assert firing(outputs.state(CLUSTER)) == messages()


def test_events_that_are_read_again_change_nothing() -> None:
    """Where rows are lost, the last messages are read again whose outputs were published."""
    state = published().state(CLUSTER)
    for event in EVENTS:
        result = step(state, event)
        assert not result.changes
        state = result.state
    assert step(state, levels(6, {"metadata.version": 12})).changes
