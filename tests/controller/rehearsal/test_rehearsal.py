"""Rehearsals: the controller's decisions, step by step."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.controller.kraft import (
    ControllerState,
    Errors,
    releases,
)
from featurewatch.controller.rehearsal.partition_steps import StepSyntaxError
from featurewatch.controller.rehearsal.rehearse import (
    StepOutcome,
    StepVerdict,
    all_levels,
    rehearse,
)
from featurewatch.controller.rehearsal.steps import (
    GRAMMAR,
    UpdateLevels,
    parse,
    parse_document,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureName,
    NodeId,
)
from tests.controller.rehearsal.clusters import cluster


def played(release: str, state: ControllerState, *steps: str) -> list[StepOutcome]:
    """The outcomes of steps in their text form."""
    return rehearse(release, state, [parse(step) for step in steps])


def summaries(outcomes: Sequence[StepOutcome]) -> list[tuple[str, str, str]]:
    """Step, verdict, and the text of a refusal or of the first consequence."""
    return [
        (outcome.step.text, str(outcome.verdict), (outcome.messages or outcome.effects or ("",))[0])
        for outcome in outcomes
    ]


def test_a_roll_from_beginning_to_end() -> None:
    """Too early is refused; the level is accepted after the last node, and old nodes are refused
    then."""
    outcomes = played(
        "3.9",
        cluster("3.9", 19),
        "upgrade:metadata.version=4.3-IV0",
        "restart:controllers@4.3",
        "upgrade:metadata.version=4.3-IV0",
        "restart:brokers@4.3",
        "upgrade:metadata.version=4.3-IV0",
        "downgrade:metadata.version=4.2",
        "stop:broker-2",
        "register:broker-2@3.9",
        "register:controller-2@3.9",
    )
    lines = summaries(outcomes)
    assert lines[0][1:] == (
        "refused",
        "Invalid update version 30 for feature metadata.version. Local controller 1 only supports "
        "versions 1-21",
    )
    assert [words for words, _, _ in lines[1:7]] == [
        *("stop:controller-2", "register:controller-2@4.3"),
        *("stop:controller-3", "register:controller-3@4.3"),
        *("stop:controller-1", "register:controller-1@4.3"),
    ]
    assert (
        lines[5][2] == "controller 2 (Kafka 4.3) becomes active (assumed: another voter could be)"
    )
    assert lines[7][1:] == (
        "refused",
        "The update failed for all features since the following feature had an error: Invalid "
        "update version 30 for feature metadata.version. Broker 2 only supports versions 1-21",
    )
    assert {verdict for _, verdict, _ in lines[8:14]} == {"accepted"}
    assert lines[14][1:] == ("accepted", "writes metadata.version: 19 (3.7-IV4) -> 30 (4.3-IV0)")
    assert any("no way back" in note for note in outcomes[14].notes)
    assert "nodes of Kafka 3.7 to 4.2 do not start any more" in outcomes[14].notes
    assert {consequence.level for consequence in outcomes[14].consequences} == set(range(20, 31))
    assert "Unsupported metadata.version downgrade from 30 to 29." in lines[15][2]
    assert lines[17][1:] == (
        "refused",
        "Unable to register because the broker does not support finalized version 30 of "
        "metadata.version. The broker wants a version between 1 and 21, inclusive.",
    )
    assert outcomes[18].responder == "controller-2 itself (Kafka 3.9), as it reads the log"
    assert outcomes[18].answer is None
    assert lines[18][2].startswith("Tried to apply FeatureLevelRecord")


def test_a_lost_broker_counts_until_it_is_unregistered() -> None:
    """The registration blocks a level outside of its range; without it the level is accepted."""
    state = cluster("3.9", 19)
    outcomes = played(
        "3.9",
        state,
        "add-broker:9@3.7",
        "stop:broker-9",
        "upgrade:metadata.version=3.9",
        "unregister:broker-9",
        "upgrade:metadata.version=3.9",
    )
    assert [outcome.verdict for outcome in outcomes] == [
        *(StepVerdict.ACCEPTED, StepVerdict.ACCEPTED, StepVerdict.REFUSED),
        *(StepVerdict.ACCEPTED, StepVerdict.ACCEPTED),
    ]
    assert outcomes[2].messages == (
        "Invalid update version 21 for feature metadata.version. Broker 9 only supports versions "
        "1-19",
    )
    lost = outcomes[1].after.broker(NodeId(9))
    assert lost is not None
    assert lost.fenced
    assert all_levels(outcomes[-1].after.state) == {METADATA_VERSION: 21}


def test_an_id_that_is_taken_is_refused_until_the_session_ends() -> None:
    """A process with a live broker's id is a duplicate; after a loss it takes the id over."""
    outcomes = played(
        "4.3", cluster("4.3", 30), "register:broker-2", "stop:broker-2", "register:broker-2"
    )
    assert [outcome.answer.error if outcome.answer else None for outcome in outcomes] == [
        Errors.DUPLICATE_BROKER_REGISTRATION,
        None,
        Errors.NONE,
    ]
    assert outcomes[0].before == outcomes[0].after


def test_before_4_0_good_features_of_a_refused_request_are_applied() -> None:
    """3.9 applies each update separately, 4.3 all or none."""
    step = "upgrade:metadata.version=21,foo=1"
    ((old,), (new,)) = (
        played("3.9", cluster("3.9", 19), step),
        played("4.3", cluster("4.3", 19), step),
    )
    assert (old.verdict, new.verdict) == (StepVerdict.REFUSED, StepVerdict.REFUSED)
    assert all_levels(old.after.state)[METADATA_VERSION] == 21
    assert all_levels(new.after.state)[METADATA_VERSION] == 19
    assert old.effects == ("writes metadata.version: 19 (3.7-IV4) -> 21 (3.9-IV0)",)


def test_kraft_version_may_be_raised_by_a_refused_request() -> None:
    """Raft has written it before another feature is refused, permanently (4.1 and newer)."""
    (outcome,) = played("4.3", cluster("4.3", 30), "upgrade:kraft.version=1,share.version=7")
    assert outcome.verdict is StepVerdict.REFUSED
    assert all_levels(outcome.after.state)[KRAFT_VERSION] == 1
    assert outcome.effects == ("raft writes kraft.version 1, although the request is refused",)


def test_kraft_version_is_raised_when_every_voter_has_reported() -> None:
    """Voters of 4.1 and later report to each new leader; an absent one reports on its return."""
    raising = "upgrade:kraft.version=1"
    state = cluster("4.3", 30)
    verdicts = [outcome.verdict for outcome in played("4.3", state, "stop:controller-2", raising)]
    assert verdicts[-1] is StepVerdict.ACCEPTED, "the leader remembers"
    steps = ("stop:controller-1", raising, "register:controller-1", raising)
    verdicts = [outcome.verdict for outcome in played("4.3", state, *steps)]
    assert (verdicts[1], verdicts[3]) == (StepVerdict.REFUSED, StepVerdict.ACCEPTED)
    steps = ("register:controller-2@4.0", raising, "register:controller-2@4.1", raising)
    verdicts = [outcome.verdict for outcome in played("4.3", cluster("4.3", 25), *steps)]
    assert (verdicts[1], verdicts[3]) == (StepVerdict.REFUSED, StepVerdict.ACCEPTED)


def test_without_a_majority_nothing_is_answered() -> None:
    """With two of three voters lost the result is unknown, until one returns."""
    outcomes = played(
        "4.3",
        cluster("4.3", 29),
        "stop:controller-3",
        "stop:controller-1",
        "upgrade:metadata.version=30",
        "stop:broker-1",
        "register:broker-9@4.3",
        "register:controller-1",
        "upgrade:metadata.version=30",
    )
    assert [str(outcome.verdict) for outcome in outcomes] == [
        *("accepted", "accepted", "unknown", "unknown", "unknown", "accepted", "accepted"),
    ]
    assert "controller 1 (Kafka 4.3) becomes active" in outcomes[5].effects


def test_controllers_below_15_do_not_register() -> None:
    """3.7-IV0 is the first level with controller registrations: below it they are not checked."""
    outcomes = played(
        "3.9", cluster("3.9", 14), "add-controller:9@3.6", "upgrade:metadata.version=3.9"
    )
    assert [outcome.verdict for outcome in outcomes] == [StepVerdict.ACCEPTED, StepVerdict.ACCEPTED]
    assert outcomes[0].answer is None
    assert not outcomes[1].after.state.controllers


def test_an_impossible_step_is_an_error() -> None:
    """An absent node, a node of an unknown release, and an unregistration of a controller."""
    outcomes = played(
        "4.3",
        cluster("4.3", 30),
        "stop:broker-9",
        "register:broker-9",
        "register:controller-9",
        "unregister:broker-9",
        "unregister:controller-3",
        "stop:broker-3",
        "stop:broker-3",
    )
    assert [
        outcome.messages[0] if outcome.messages else outcome.effects[0] for outcome in outcomes
    ] == [
        "broker-9 is not there, and cannot be lost",
        "broker-9 has no registration: say of which release it is, register:broker-9@4.3",
        "controller-9 has not registered: say of which release it is, register:controller-9@4.3",
        "Broker ID 9 is not currently registered",
        "Kafka 4.3 cannot remove the registration of a controller (Kafka 4.4 can, from "
        "metadata.version 33 (4.4-IV2) on): start a controller 3 that supports the level",
        "fences broker 3 when its session ends",
        "broker-3 was lost before",
    ]


def test_where_not_all_registrations_are_known_nothing_is_surely_accepted() -> None:
    """With ApiVersions alone an accepted level is unknown; a refusal stays a refusal."""
    state = cluster("4.3", 29)
    steps = [parse("upgrade:metadata.version=30"), parse("upgrade:metadata.version=99")]
    outcomes = rehearse("4.3", state, steps, whole=False)
    assert [outcome.verdict for outcome in outcomes] == [StepVerdict.UNKNOWN, StepVerdict.REFUSED]


STEPS = st.sampled_from(
    [
        *(
            f"{verb}:metadata.version={level}"
            for verb in ("upgrade", "downgrade")
            for level in (19, 21, 25, 29, 30)
        ),
        *("upgrade:release=4.3", "upgrade:transaction.version=2", "disable:transaction.version"),
        *(f"add-broker:{node}@{release}" for node in (2, 7) for release in ("3.8", "4.0", "4.3")),
        *(f"stop:{role}-{node}" for role in ("broker", "controller") for node in (1, 2, 7)),
        *(f"register:broker-{node}@{release}" for node in (1, 7) for release in ("3.9", "4.2")),
        *(f"register:controller-{node}@{release}" for node in (1, 2) for release in ("3.9", "4.3")),
        *("unregister:broker-2", "unregister:broker-7", "restart:all@4.3", "restart:brokers"),
    ]
)


@settings(max_examples=150)
@given(st.lists(STEPS, max_size=12), st.sampled_from(["3.9", "4.0", "4.3"]))
@example(["downgrade:metadata.version=19", "upgrade:release=4.3", "add-broker:7@3.8"], "3.9")
def test_whatever_happens_finalized_levels_are_supported_by_all(
    steps: list[str], release: str
) -> None:
    """No order of steps finalizes a level that a registered node excludes (KIP-584)."""
    outcomes = played(release, cluster(release, 21), *steps)
    for outcome in outcomes:
        state = outcome.after.state
        for broker in state.brokers:
            # A raise of kraft.version on 3.9 leaves a record among the levels that means nothing.
            for feature, level in {**state.levels, KRAFT_VERSION: state.kraft_version}.items():
                low, high = broker.ranges.get(feature, (0, 0))
                assert low <= level <= high, (outcome.step.text, broker.id, feature, level)
        if outcome.verdict is StepVerdict.REFUSED and not isinstance(outcome.step, UpdateLevels):
            assert outcome.before == outcome.after


def test_every_step_of_the_grammar_is_read() -> None:
    """Each line of the help's list is a valid step once its placeholders are replaced."""
    lines = (
        GRAMMAR.replace("FEATURE=LEVEL,…", "a=1").replace(":…", ":a=1").replace("FEATURE,…", "a")
    )
    for line in lines.splitlines():
        assert parse(line.split()[0]).text == line.split()[0]


def test_levels_by_name_and_by_release() -> None:
    """A release means its newest level; ``release=`` all features of its defaults."""
    (name, release, defaults) = (
        parse(f"upgrade:{setting}")
        for setting in ("metadata.version=3.7-IV2", "metadata.version=3.7", "release=4.0")
    )
    assert isinstance(name, UpdateLevels)
    assert isinstance(release, UpdateLevels)
    assert isinstance(defaults, UpdateLevels)
    assert [step.updates[0].level for step in (name, release)] == [17, 19]
    assert {update.feature: update.level for update in defaults.updates} == {
        "metadata.version": 25,
        "group.version": 1,
        "kraft.version": 1,
        "transaction.version": 2,
    }
    for release_name, known_release in releases().items():
        step = parse(f"upgrade:metadata.version={release_name}")
        assert isinstance(step, UpdateLevels)
        assert step.updates[0].level == known_release.newest(METADATA_VERSION)


def test_a_document_of_steps() -> None:
    """A list, or a mapping with ``steps``; an entry has the shell's form or is a mapping."""
    listed = [
        "stop:broker-2",
        {"upgrade": {"metadata.version": "4.3-IV0", "share.version": 1}},
        {"disable": ["a", "b"]},
        {"restart": "all@4.3"},
    ]
    words = [
        "stop:broker-2",
        "upgrade:metadata.version=4.3-IV0,share.version=1",
        "disable:a,b",
        "restart:all@4.3",
    ]
    assert [step.text for step in parse_document({"steps": listed})] == words
    assert parse_document(listed) == parse_document({"steps": listed})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stop", "'stop' is no step"),
        ("melt:broker-1", "there is no 'melt', but upgrade, downgrade,"),
        ("stop:2", "'2' is no node: write broker-2 or controller-2"),
        ("upgrade:metadata.version", "'metadata.version' is not feature=level"),
        ("upgrade:metadata.version=nine", "'nine' is not a level of metadata.version"),
        ("upgrade:share.version=4.3", "'4.3' is not a level of share.version: write a number"),
        ("upgrade:share.version=40000", "'40000' is not a level"),
        ("upgrade:release=9.9", "Kafka '9.9' has no level"),
        ("add-broker:7", "names no release: write add-broker:7@4.3"),
        ("register:broker-7@2.8", "Kafka '2.8' is not in the table of levels"),
    ],
)
def test_what_is_no_step_is_explained(text: str, message: str) -> None:
    """The error is one line with the reason and the expected form."""
    with pytest.raises(StepSyntaxError) as error:
        parse(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [None, {}, [], {"steps": "stop:broker-1"}, [3], [{"a": 1, "b": 2}]]
)
def test_what_is_no_document_of_steps_is_refused(content: object) -> None:
    """Neither an empty document nor another type is accepted as a list of steps."""
    with pytest.raises(StepSyntaxError):
        parse_document(content)


def test_an_unknown_feature_is_refused_up_and_down() -> None:
    """Raising a feature that no node supports, and disabling it, with Kafka's texts."""
    up, down = played("4.3", cluster("4.3", 30), "upgrade:foo=1", "disable:foo")
    assert "Local controller 1 does not support this feature." in up.messages[0]
    assert "Feature foo not found." in down.messages[0]
    assert FeatureName("foo") not in down.after.state.levels
