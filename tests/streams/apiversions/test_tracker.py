"""Which answers are published: scripted rounds, without a network."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.apiversions.node_features import AdvertisedRange, NodeFeatures
from featurewatch.streams.apiversions.tracker import HOLD_MS, NodeTracker, TrackerEvent
from featurewatch.streams.events import DeadLetter, Disagreement, NodeAnswer, NodeSilent
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    SupportedRange,
    SupportedRanges,
)

CLUSTER = ClusterId("c")
MV = FeatureName("metadata.version")
SUPPORTED = SupportedRanges({MV: (7, 30)})


def key(text: str) -> NodeKey:
    """``b1`` is broker 1, ``c1`` is controller 1."""
    role = {"b": Role.BROKER, "c": Role.CONTROLLER}[text[0]]
    return NodeKey(role, NodeId(int(text[1:])))


def features_at(
    level: int,
    epoch: int = 100,
    supported: Mapping[FeatureName, SupportedRange] = SUPPORTED,
    faults=(),
) -> NodeFeatures:
    """A node's answer with one finalized level (0: none)."""
    finalized = {MV: FeatureLevel(level)} if level and epoch >= 0 else {}
    return NodeFeatures(supported, finalized, epoch, complete=True, invalid=tuple(faults))


class Rounds:
    """Plays rounds to an observer."""

    def __init__(self, *nodes: str, misses: int = 3, hold_ms: int = 1000) -> None:
        self.observer = NodeTracker(CLUSTER, misses, hold_ms)
        self.now_ms = 0
        assert self.lists(*nodes) == []

    def lists(self, *nodes: str) -> list[TrackerEvent]:
        """The cluster lists these nodes."""
        return self.observer.on_listing({key(n): f"host:{n[1:]}" for n in nodes}, self.now_ms)

    def play(self, **answers: int | NodeFeatures | None) -> list[TrackerEvent]:
        """One round: each node's level, its whole answer, or None for a miss."""
        self.now_ms += 1000
        events: list[TrackerEvent] = []
        for node, given_answer in answers.items():
            if given_answer is None:
                events += self.observer.on_no_response(key(node), "timed out", self.now_ms)
            else:
                whole = features_at(given_answer) if isinstance(given_answer, int) else given_answer
                events += self.observer.on_response(key(node), whole, self.now_ms)
        return events + self.observer.end_round(self.now_ms)


def summaries(events: list[TrackerEvent]) -> list[str]:
    """Events as short lines: who, and what."""
    lines = []
    for event in events:
        match event:
            case NodeAnswer():
                lines.append(f"{event.role[0]}{event.node_id} says {dict(event.finalized)}")
            case NodeSilent():
                lines.append(f"{event.role[0]}{event.node_id} {'gone' if event.gone else 'silent'}")
            case Disagreement():
                views = " | ".join(f"{v.level}: {' '.join(v.nodes)}" for v in event.views)
                lines.append(f"disagree {views}".strip())
            case DeadLetter():
                lines.append(f"dead {event.reason}")
    return lines


def test_the_first_round_is_published_whole_and_then_only_changes():
    """A new level is seen on each node when it says it; equal answers are no news."""
    rounds = Rounds("b1", "c1")
    assert summaries(rounds.play(b1=19, c1=19)) == [
        "b1 says {'metadata.version': 19}",
        "c1 says {'metadata.version': 19}",
    ]
    assert rounds.play(b1=19, c1=19) == []
    assert summaries(rounds.play(b1=19, c1=20)) == ["c1 says {'metadata.version': 20}"]
    assert summaries(rounds.play(b1=20, c1=20)) == ["b1 says {'metadata.version': 20}"]


def test_an_epoch_that_grows_is_no_change():
    """A broker's epoch grows with every record of the log."""
    rounds = Rounds("b1")
    rounds.play(b1=features_at(19, epoch=100))
    assert rounds.play(b1=features_at(19, epoch=101)) == []


def test_a_wider_range_is_a_change():
    """A node that comes back with another release says other ranges."""
    rounds = Rounds("b1")
    rounds.play(b1=features_at(19, supported=SupportedRanges({MV: (1, 21)})))
    (event,) = rounds.play(b1=features_at(19, supported=SUPPORTED))
    assert isinstance(event, NodeAnswer)
    assert event.supported == {MV: (7, 30)}


def test_a_node_is_silent_after_enough_misses_until_it_responds():
    """Two misses are nothing, the third is a silence, said once; the next answer is published."""
    rounds = Rounds("b1")
    rounds.play(b1=19)
    assert rounds.play(b1=None) == []
    assert rounds.play(b1=None) == []
    assert summaries(rounds.play(b1=None)) == ["b1 silent"]
    assert rounds.play(b1=None) == []
    assert summaries(rounds.play(b1=19)) == ["b1 says {'metadata.version': 19}"]


def test_a_miss_between_answers_is_no_news():
    """Misses count only in a row."""
    rounds = Rounds("b1")
    rounds.play(b1=19)
    for _ in range(3):
        assert rounds.play(b1=None) == []
        assert rounds.play(b1=None) == []
        assert rounds.play(b1=19) == []


def test_a_node_that_is_not_listed_is_dropped_at_the_second_listing():
    """One listing without it may come from a broker that is itself cut off."""
    rounds = Rounds("b1", "b2")
    rounds.play(b1=19, b2=19)
    assert rounds.lists("b1") == []
    assert rounds.lists("b1", "b2") == []
    assert rounds.lists("b1") == []
    assert summaries(rounds.lists("b1")) == ["b2 gone"]
    assert rounds.observer.nodes.keys() == {key("b1")}
    rounds.lists("b1", "b2")
    assert summaries(rounds.play(b1=19, b2=19)) == ["b2 says {'metadata.version': 19}"]


def test_a_node_with_another_address_is_published_again():
    """Where a node answers is part of what is known of it."""
    rounds = Rounds("b1")
    rounds.play(b1=19)
    rounds.observer.on_listing({key("b1"): "elsewhere:9"}, 0)
    (event,) = rounds.play(b1=19)
    assert isinstance(event, NodeAnswer)
    assert event.address == "elsewhere:9"


def test_levels_without_a_valid_epoch_never_count():
    """M-11: finalized levels count only with an epoch of at least 0."""
    rounds = Rounds("b1", "c1")
    for _ in range(4):
        lines = summaries(rounds.play(b1=19, c1=features_at(7, epoch=-1)))
        assert not [line for line in lines if line.startswith("disagree")]
    assert summaries(rounds.play(b1=19, c1=features_at(19, epoch=5))) == [
        "c1 says {'metadata.version': 19}"
    ]


def test_nodes_that_differ_for_two_rounds_disagree_until_they_agree():
    """The first round of a difference is a change under way; the second is a disagreement."""
    rounds = Rounds("b1", "b2", "c1")
    rounds.play(b1=19, b2=19, c1=19)
    assert summaries(rounds.play(b1=19, b2=20, c1=20))[2:] == []
    assert summaries(rounds.play(b1=19, b2=20, c1=20)) == [
        "disagree 19: broker-1 | 20: broker-2 controller-1"
    ]
    assert rounds.play(b1=19, b2=20, c1=20) == []
    lines = summaries(rounds.play(b1=20, b2=20, c1=20))
    assert lines == ["b1 says {'metadata.version': 20}", "disagree 20: broker-2 controller-1"]
    assert rounds.play(b1=20, b2=20, c1=20) == []


def test_a_feature_that_only_some_finalized_is_level_0_for_the_others():
    """A level that is absent is level 0, as in Kafka."""
    rounds = Rounds("b1", "b2")
    rounds.play(b1=0, b2=1)
    assert summaries(rounds.play(b1=0, b2=1)) == ["disagree 0: broker-1 | 1: broker-2"]
    assert summaries(rounds.play(b1=0, b2=0))[1:] == ["disagree 0: broker-1"]


def test_a_change_that_travels_slowly_is_no_disagreement():
    """Nodes that follow one after the other, each within a round, disagree with nobody."""
    rounds = Rounds("b1", "b2", "b3")
    rounds.play(b1=19, b2=19, b3=19)
    events = rounds.play(b1=20, b2=19, b3=19) + rounds.play(b1=20, b2=20, b3=20)
    events += rounds.play(b1=20, b2=20, b3=20)
    assert not [event for event in events if isinstance(event, Disagreement)]


def test_a_node_that_rolled_while_levels_changed_disagrees_with_nobody():
    """What it had before it was stopped is not its view now, and it has a moment to catch up."""
    rounds = Rounds("b1", "b2", "b3", hold_ms=HOLD_MS)
    events = [event for _ in range(6) for event in rounds.play(b1=19, b2=19, b3=19)]
    events += rounds.play(b1=None, b2=19, b3=19)
    for _ in range(5):
        events += rounds.play(b1=None, b2=20, b3=20)
    rounds.observer.on_listing({key(n): f"elsewhere:{n[1:]}" for n in ("b1", "b2", "b3")}, 0)
    for _ in range(3):
        events += rounds.play(b1=19, b2=20, b3=20)
    for _ in range(6):
        events += rounds.play(b1=20, b2=20, b3=20)
    assert not [event for event in events if isinstance(event, Disagreement)]
    assert "b1 silent" in summaries(events)


def test_a_node_that_does_not_catch_up_disagrees_after_the_hold():
    """A level that changed and a level that is behind count from when they were reported."""
    rounds = Rounds("b1", "b2", hold_ms=HOLD_MS)
    for _ in range(6):
        rounds.play(b1=19, b2=19)
    rounds.play(b1=None, b2=20)
    for _ in range(4):
        assert not [e for e in rounds.play(b1=19, b2=20) if isinstance(e, Disagreement)]
    assert summaries(rounds.play(b1=19, b2=20)) == ["disagree 19: broker-1 | 20: broker-2"]
    assert rounds.play(b1=None, b2=20) == []
    for _ in range(6):
        assert rounds.play(b1=19, b2=20) == []
    assert summaries(rounds.play(b1=20, b2=20)) == [
        "b1 says {'metadata.version': 20}",
        "disagree 20: broker-2",
    ]


def test_a_missed_question_does_not_end_a_disagreement_but_silence_does():
    """A node that misses one question has not changed its mind."""
    rounds = Rounds("b1", "b2", misses=2)
    rounds.play(b1=19, b2=20)
    rounds.play(b1=19, b2=20)
    assert rounds.play(b1=None, b2=20) == []
    assert rounds.play(b1=19, b2=20) == []
    assert rounds.play(b1=19, b2=20) == []
    rounds.play(b1=None, b2=20)
    assert summaries(rounds.play(b1=None, b2=20)) == ["b1 silent", "disagree 20: broker-2"]


def test_an_impossible_range_is_one_dead_letter():
    """A minimum above the maximum is reported; the node's other features are published."""
    reason = "supported feature 'x' has the minimum 3 above the maximum 1"
    faulty = features_at(19, faults=[(AdvertisedRange("x", 3, 1), reason)])
    rounds = Rounds("b1")
    events = rounds.play(b1=faulty)
    assert summaries(events)[0] == "b1 says {'metadata.version': 19}"
    (dead_letter,) = (event for event in events if isinstance(event, DeadLetter))
    assert reason in dead_letter.reason
    assert dead_letter.payload == b'{"name":"x","low":3,"high":1}'
    assert rounds.play(b1=faulty) == []


@pytest.mark.parametrize("rounds_of_strangers", [1, 3])
def test_responses_of_unlisted_nodes_are_ignored(rounds_of_strangers):
    """A late answer of a node that was dropped changes nothing."""
    rounds = Rounds("b1")
    for _ in range(rounds_of_strangers):
        assert rounds.observer.on_response(key("b9"), features_at(19), 0) == []
        assert rounds.observer.on_no_response(key("b9"), "late", 0) == []


NODES = ("b1", "b2", "c1")
scripts = st.lists(
    st.fixed_dictionaries({node: st.sampled_from([None, 0, 19, 20]) for node in NODES}),
    min_size=1,
    max_size=12,
)


@given(scripts)
def test_the_events_give_the_newest_response_of_each_node(script):
    """Folding the events gives each node's newest answer, and the views that hold at the end."""
    rounds = Rounds(*NODES, misses=2)
    published: dict[str, object] = {}
    views: tuple[int, ...] = ()
    for played in script:
        for event in rounds.play(**played):
            if isinstance(event, Disagreement):
                views = tuple(view.level for view in event.views)
            else:
                assert not isinstance(event, DeadLetter)
                published[f"{event.role[0]}{event.node_id}"] = (
                    None if isinstance(event, NodeSilent) else event.finalized.get(MV, 0)
                )
    for node in NODES:
        responses = [played[node] for played in script]
        if responses[-2:] == [None, None]:
            assert published.get(node) is None
        elif responses[-1] is not None:
            assert published[node] == responses[-1]
    if len(script) >= 2 and script[-1] == script[-2] and None not in script[-1].values():
        levels = tuple(sorted(set(script[-1].values())))
        assert levels == views if len(levels) > 1 else len(views) < 2


def test_everything_is_published_again_on_request():
    """Silent nodes and disagreements at once, the others with their next answer."""
    rounds = Rounds("b1", "b2", "b3", misses=1)
    assert not rounds.observer.is_whole
    for _ in range(3):
        rounds.play(b1=19, b2=20, b3=None)
    assert rounds.observer.is_whole
    again = rounds.observer.republish(rounds.now_ms)
    assert summaries(again) == ["b3 silent", "disagree 19: broker-1 | 20: broker-2"]
    assert not rounds.observer.is_whole
    assert summaries(rounds.play(b1=19, b2=20, b3=None)) == [
        "b1 says {'metadata.version': 19}",
        "b2 says {'metadata.version': 20}",
    ]
    assert rounds.observer.is_whole
    assert rounds.play(b1=19, b2=20, b3=None) == []
