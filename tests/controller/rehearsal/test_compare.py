"""Differences between a real controller and the model are detected and described."""

from dataclasses import replace

from featurewatch.controller.kraft import ControllerState, Errors, release_of
from featurewatch.controller.rehearsal.compare import (
    other_blockers,
    response_differences,
    staging_differences,
    state_differences,
)
from featurewatch.controller.rehearsal.rehearse import StepOutcome, rehearse
from featurewatch.controller.rehearsal.steps import parse
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRanges,
)
from tests.controller.rehearsal.clusters import cluster

OLD = release_of("3.9").ranges()
REFUSED = int(Errors.INVALID_UPDATE_VERSION)


def outcome(release: str, step: str, level: int = 19) -> StepOutcome:
    """The outcome of one step in a cluster of a release."""
    (outcome,) = rehearse(release, cluster(release, level), [parse(step)])
    return outcome


def test_equal_answers_have_no_difference() -> None:
    """4.3 returns one result per request, 3.9 one per feature; texts of successes are not
    compared."""
    new = outcome("4.3", "upgrade:metadata.version=99")
    assert list(response_differences(new, REFUSED, new.messages[0], {})) == []
    old = outcome("3.9", "upgrade:metadata.version=21,foo=1")
    text = dict(old.results)[FeatureName("foo")].text or ""
    features = {"metadata.version": (0, "NONE"), "foo": (REFUSED, text)}
    assert list(response_differences(old, 0, "", features)) == []


def test_each_planted_difference_is_found() -> None:
    """Another code, another text, a feature that only one side has."""
    new = outcome("4.3", "upgrade:metadata.version=99")
    assert list(response_differences(new, 0, "", {})) == [
        "the model says INVALID_UPDATE_VERSION, the real controller NONE ()"
    ]
    (text,) = response_differences(new, REFUSED, new.messages[0] + "!", {})
    assert text.startswith("the model says 'The update failed")
    old = outcome("3.9", "upgrade:metadata.version=21")
    assert list(
        response_differences(old, 0, "", {"metadata.version": (REFUSED, "no"), "foo": (0, "")})
    ) == [
        "only the real controller answers for foo",
        "metadata.version: the model says NONE, the real controller INVALID_UPDATE_VERSION (no)",
    ]
    assert list(response_differences(old, 0, "", {})) == [
        "only the model answers for metadata.version"
    ]
    assert list(response_differences(new, 77, "no", {})) == [
        "the model says INVALID_UPDATE_VERSION, the real controller error 77 (no)"
    ]


def test_another_blocker_in_the_text_is_a_remark() -> None:
    """A text that names another blocker is a remark; any other text is a difference."""
    new = outcome("4.3", "add-broker:9@4.0")
    state = replace(
        new.after.state,
        brokers=tuple(broker._replace(ranges=OLD) for broker in new.after.state.brokers[:3])
        + new.after.state.brokers[3:],
    )
    (step,) = rehearse("4.3", state, [parse("upgrade:metadata.version=30")])
    named = step.messages[0].partition("Broker ")[2][0]
    for node, span in (("1", "1-21"), ("2", "1-21"), ("3", "1-21"), ("9", "7-25")):
        text = (
            step.messages[0].partition("Broker ")[0]
            + f"Broker {node} only supports versions {span}"
        )
        assert list(response_differences(step, REFUSED, text, {})) == []
        assert bool(list(other_blockers(step, REFUSED, text, {}))) is (node != named)
    false = step.messages[0].partition("Broker ")[0] + "Broker 9 only supports versions 1-21"
    assert len(list(response_differences(step, REFUSED, false, {}))) == 1
    assert list(other_blockers(step, REFUSED, false, {})) == []


def changed(state: ControllerState) -> ControllerState:
    """The state with one difference of each kind."""
    first, second, _ = state.brokers
    return replace(
        state,
        levels={METADATA_VERSION: FeatureLevel(20)},
        brokers=(
            first._replace(fenced=True),
            second._replace(ranges=SupportedRanges({METADATA_VERSION: (1, 2)})),
        ),
        controllers=state.controllers[:2],
        kraft_version=FeatureLevel(1),
    )


def test_clusters_are_compared_by_levels_and_registrations() -> None:
    """Equal states have no differences; each difference is one sentence."""
    state = cluster("3.9", 19)
    assert list(state_differences(state, state)) == []
    lines = list(state_differences(state, changed(state)))
    assert [line.split(" in the model")[0] for line in lines] == [
        "kraft.version is 0",
        "metadata.version is 19",
        "broker 1 is fenced at the real controller alone",
        f"broker 2 supports {dict(state.local)}",
        "broker 3 is registered",
        "controller 3 is registered",
    ]


def test_missing_parts_of_the_staged_cluster_are_reported() -> None:
    """Its own software, stopped voters, and levels and registrations that it lacks."""
    live = cluster("3.9", 19)
    assert list(staging_differences(live, live)) == []
    staged = replace(changed(live), local=cluster("4.3", 19).local, quorum=(NodeId(1),))
    assert list(staging_differences(live, staged)) == [
        "controller 1 supports metadata.version 7-30; the live one supports metadata.version 1-21",
        "the voters 2, 3 do not run: a missing registration and a lost majority cannot be tried",
        "metadata.version is 20; it is 19 in the live cluster",
        "kraft.version is 1; it is not finalized in the live cluster",
        "brokers 3 could not be registered at the finalized levels",
        "controllers 3 could not be registered at this metadata.version",
    ]
