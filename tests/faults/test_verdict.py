"""Each check of the harness fails on a planted bug."""

from dataclasses import replace
from typing import Any

import pytest

from tests.faults.ensemble import changes_between, levels_in, missed_versions
from tests.faults.verdict import Level, Outputs, Value, compare

TRUTH: list[Level] = [("metadata.version", 30), ("group.version", 1), ("group.version", 0)]


def change(feature: str, before: int, after: int, revision: int, **fields: Any) -> Value:
    """A message on featurewatch.feature-changes."""
    value = {"cluster": "c", "feature": feature, "before": before, "after": after}
    return {**value, "epoch": revision * 10, "revision": revision, "seen_ms": 1, **fields}


def epoch(revision: int, **finalized: int) -> Value:
    """A message on featurewatch.epochs."""
    return {"revision": revision, "epoch": revision * 10, "finalized": finalized}


def alert(rule: str, state: str, cause: str = "1", **fields: Any) -> Value:
    """A message on featurewatch.alerts."""
    value = {"id": f"c/{rule}", "rule": rule, "state": state, "cause": cause, "at_ms": 0}
    return {**value, "severity": "critical", "summary": "s", "evidence": {}, **fields}


CHANGES = (
    change("metadata.version", 0, 30, 1),
    change("group.version", 0, 1, 2),
    change("group.version", 1, 0, 3),
)
EPOCHS = (epoch(1), epoch(2), epoch(3))
STATE = {"finalized": {"metadata.version": 30}}
WHOLE = Outputs(CHANGES, EPOCHS, (), STATE)


def failures(outputs: Outputs, **more: Any) -> tuple[str, ...]:
    """The checks that fail."""
    return compare(TRUTH, outputs, **more).failures


def test_whole_outputs_hold() -> None:
    """Nothing fails; nor does it if messages are published again with equal content."""
    assert failures(WHOLE) == ()
    again = [{**CHANGES[0], "seen_ms": 99}]
    assert failures(replace(WHOLE, changes=[*CHANGES, *again], epochs=[*EPOCHS, EPOCHS[0]])) == ()


def test_a_missing_change_is_lost() -> None:
    """Also where a hole in the revisions alone shows it, or a snapshot is missing."""
    assert compare(TRUTH, replace(WHOLE, changes=CHANGES[:2])).lost == 1
    assert compare(TRUTH[:2], replace(WHOLE, changes=(CHANGES[0], CHANGES[2]))).lost > 0
    assert failures(replace(WHOLE, epochs=EPOCHS[1:])) == ("lost",)


def test_a_fault_that_nobody_is_told_of_fails() -> None:
    """A rule that must fire, may; one that may stay is not stuck."""
    more: dict[str, Any] = {"may_fire": ("a",), "must_fire": ("a",)}
    assert compare(TRUTH, WHOLE, **more).notes == ("a did not fire",)
    fired = replace(WHOLE, alerts=[alert("a", "firing")])
    assert failures(fired, **more) == ("stuck_alerts",)
    assert failures(fired, **more, may_stay=("a",)) == ()
    # It fires since before the fault; or it fired then, and users see nothing of this one.
    assert failures(fired, **more, may_stay=("a",), first_alert=1) == ()
    ended = replace(WHOLE, alerts=[alert("a", "firing"), alert("a", "resolved", "2")])
    assert compare(TRUTH, ended, **more, first_alert=2).notes == ("a did not fire",)


def test_texts_that_differ_within_a_minute_are_repeats() -> None:
    """Not where state or severity changed, a minute has passed, or the message is the same."""
    first = alert("a", "firing")
    for other, is_repeat in (
        (alert("a", "firing", "2", at_ms=59_999, summary="t"), True),
        (alert("a", "firing", "2", at_ms=60_000, summary="t"), False),
        (alert("a", "firing", "2", at_ms=1, severity="warning"), False),
        (alert("a", "resolved", "2", at_ms=1), False),
        (first, False),
    ):
        outputs = replace(WHOLE, alerts=[first, other, alert("a", "resolved", "3", at_ms=10**6)])
        notes = ("a was repeated within a minute",) if is_repeat else ()
        assert compare(TRUTH, outputs, may_fire=("a",)).notes == notes


def test_a_change_that_cannot_be_had_again_must_be_reported() -> None:
    """And the revisions have no hole."""
    lost, reported = replace(WHOLE, changes=CHANGES[:2], epochs=EPOCHS[:2]), "messages-lost"
    fired = replace(lost, alerts=[alert(reported, "firing"), alert(reported, "resolved", "2")])
    more: dict[str, Any] = {"may_fire": (reported,), "may_lose": True}
    assert compare(TRUTH, fired, **more).lost == 0
    assert compare(TRUTH, lost, **more).lost == 1
    hole = replace(fired, changes=(CHANGES[0], CHANGES[2]))
    assert compare(TRUTH, hole, **more).lost == 1


def test_a_change_under_two_ids_is_doubled() -> None:
    """A change that is published again under another revision, and one that never happened."""
    again = [*CHANGES, change("group.version", 1, 0, 4)]
    assert failures(replace(WHOLE, changes=again, epochs=[*EPOCHS, epoch(4)])) == ("doubled",)
    invented = [*CHANGES, change("share.version", 0, 1, 4)]
    assert "doubled" in failures(replace(WHOLE, changes=invented, epochs=[*EPOCHS, epoch(4)]))


@pytest.mark.parametrize(
    "outputs",
    [
        replace(WHOLE, changes=[*CHANGES, {**CHANGES[2], "before": 7}]),
        replace(WHOLE, epochs=[*EPOCHS, epoch(3, other=1)]),
        replace(
            WHOLE,
            alerts=[
                alert("a", "firing"),
                alert("a", "firing", summary="another"),
                alert("a", "resolved", "2"),
            ],
        ),
    ],
)
def test_a_key_with_other_content_is_contradicted(outputs: Outputs) -> None:
    """On each of the topics."""
    assert failures(outputs, may_fire=["a"]) == ("contradicted",)


def test_the_last_state_must_be_the_truth() -> None:
    """Other levels, or no state at all."""
    assert failures(replace(WHOLE, state={"finalized": {"metadata.version": 29}})) == (
        "state_wrong",
    )
    assert failures(replace(WHOLE, state=None)) == ("state_wrong",)


def test_an_alert_without_a_reason_is_false() -> None:
    """Even if it has ended; one with a reason, or from before the fault, is not."""
    alerts = [alert("ghost", "firing"), alert("ghost", "resolved", "2")]
    assert failures(replace(WHOLE, alerts=alerts)) == ("false_alerts",)
    assert failures(replace(WHOLE, alerts=alerts), may_fire=["ghost"]) == ()
    assert failures(replace(WHOLE, alerts=alerts), first_alert=2) == ()


def test_a_source_that_flaps_is_not_stuck() -> None:
    """Several outages within ten minutes are one alert, which ends ten minutes after the last."""
    flaps = alert("source-stalled", "firing", evidence={"state": "flapping"})
    assert failures(replace(WHOLE, alerts=[flaps]), may_fire=["source-stalled"]) == ()
    stalls = alert("source-stalled", "firing", evidence={"state": "stalled"})
    stuck = failures(replace(WHOLE, alerts=[stalls]), may_fire=["source-stalled"])
    assert stuck == ("stuck_alerts",)


def test_an_alert_that_still_fires_is_stuck() -> None:
    """Even if it had a reason; one that fires again after its end is stuck too."""
    fires = alert("source-stalled", "firing")
    ends = alert("source-stalled", "resolved", "2")
    stuck = failures(replace(WHOLE, alerts=[fires]), may_fire=["source-stalled"])
    assert stuck == ("stuck_alerts",)
    assert failures(replace(WHOLE, alerts=[fires, ends]), may_fire=["source-stalled"]) == ()
    again = [fires, ends, alert("source-stalled", "firing", "3")]
    assert failures(replace(WHOLE, alerts=again), may_fire=["source-stalled"]) == ("stuck_alerts",)


def test_recovery_has_a_limit() -> None:
    """Later than the limit fails, and so does never."""
    assert failures(WHOLE, recovered_s=5.0, limit_s=5.0) == ()
    assert failures(WHOLE, recovered_s=5.1, limit_s=5.0) == ("recovered_s",)
    assert failures(WHOLE, recovered_s=None) == ("recovered_s",)


def test_a_process_that_ended_fails_the_row() -> None:
    """Whatever else was right."""
    assert failures(WHOLE, notes=["worker ended with 70"]) == ("notes",)


def test_the_truth_of_zookeeper_leaves_out_what_was_reported_as_missed() -> None:
    """Each write of the features znode is a state; the alert names the versions."""
    of_a = '{"version":2,"features":{"a":{"max_version_level":LEVEL}}}'
    first, second = (
        f"setData /faults/feature,{of_a.replace('LEVEL', level)},3" for level in ("1", "2")
    )
    multi = (
        "multi check:\0\0\0\x09/faults/c\0\0\0\2;setData:\0\0\0\x0f/faults/feature\0\0\0{"
        '{"version":2,"features":{}}\0\0'
    )
    other = "create /faults/features,{},[31,s{'world,'anyone}"
    states = dict(enumerate(levels_in("\n".join([first, other, second, multi]))))
    assert states == {0: {"a": 1}, 1: {"a": 2}, 2: {}}
    assert changes_between(states, ()) == [("a", 1), ("a", 2), ("a", 0)]
    missed = alert(
        "znode-missed",
        "firing",
        evidence={"version": 2, "missed": 1},
        subject={"znode": "/feature"},
    )
    assert changes_between(states, missed_versions([missed])) == [("a", 1), ("a", 0)]
