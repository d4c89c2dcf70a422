"""The fold of ApiVersions responses, without a log and beside one."""

import pytest

from featurewatch.streams.events import Event
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import Authority
from tests.simulation import records as r
from tests.simulation.records import MV, NEW, OLD, TV
from tests.tables.images import fold_all

ONE = NodeKey(Role.BROKER, NodeId(1))


def test_a_response_without_an_epoch_finalizes_nothing() -> None:
    """With epoch -1 the finalized levels do not count; the ranges do (M-11)."""
    image = fold_all([r.answer(1, OLD, {MV: 1}, -1, 10, role=Role.CONTROLLER)])
    assert dict(image.features.levels) == {}
    assert len(image.nodes) == 1


@pytest.mark.form("document")
def test_the_higher_epoch_wins() -> None:
    """A higher epoch is adopted and a lower one ignored, without any error (F-57, F-58, F-59)."""
    image = fold_all([r.answer(1, NEW, {MV: 21}, 50, 10), r.answer(2, NEW, {MV: 25}, 60, 11)])
    assert (dict(image.features.levels), image.features.epoch) == ({MV: 25}, 60)
    after = fold_all([r.answer(3, NEW, {MV: 21}, 59, 12)], image)
    assert after.features is image.features
    assert len(after.nodes) == 3


@pytest.mark.form("released")
def test_a_broker_outranks_controllers() -> None:
    """After a broker's response controllers are ignored: their epochs are not comparable (F-12 as
    released, F-58 as released)."""
    image = fold_all([r.answer(1, NEW, {MV: 21}, 50, 10)])
    node_answer = r.answer(7, NEW, {MV: 30}, 90, 11, role=Role.CONTROLLER)
    assert fold_all([node_answer], image).features is image.features
    first = fold_all([r.answer(7, NEW, {MV: 21}, 40, 9, role=Role.CONTROLLER)])
    assert dict(fold_all([r.answer(1, NEW, {MV: 25}, 55, 10)], first).features.levels) == {MV: 25}


@pytest.mark.form("released")
def test_a_broker_behind_a_controllers_change_is_ignored() -> None:
    """Its image ends before the change: adopting it would invent a downgrade (F-58 as released)."""
    image = fold_all([r.answer(7, NEW, {MV: 25}, 585, 9, role=Role.CONTROLLER)])
    after = fold_all([r.answer(1, NEW, {MV: 21}, 100, 10)], image)
    assert after.features is image.features


@pytest.mark.form("released")
def test_the_same_levels_under_a_higher_epoch_are_no_change() -> None:
    """Brokers' epochs grow with every record of the log: they change no revision (F-12 as released,
    F-60)."""
    image = fold_all([r.answer(1, NEW, {MV: 21}, 50, 10), r.answer(2, NEW, {MV: 21}, 999, 11)])
    assert image.features.revision == 1


@pytest.mark.form("document")
def test_the_epoch_of_equal_levels_counts() -> None:
    """The epoch belongs to the whole set: a response between two with the same levels is older than
    the second, and would invent a change (F-58, F-60)."""
    image = fold_all([r.answer(1, NEW, {MV: 21}, 50, 10), r.answer(2, NEW, {MV: 21}, 999, 11)])
    assert (image.features.epoch, image.features.revision) == (999, 1)
    after = fold_all([r.answer(3, NEW, {MV: 25}, 500, 12)], image)
    assert after.features is image.features


@pytest.mark.form("released")
def test_a_broker_with_a_controllers_levels_outranks_it() -> None:
    """The levels do not change, and from then on controllers are ignored (F-58 as released)."""
    image = fold_all(
        [
            r.answer(7, NEW, {MV: 21}, 40, 9, role=Role.CONTROLLER),
            r.answer(1, NEW, {MV: 21}, 40, 10),
            r.answer(7, NEW, {MV: 25}, 90, 11, role=Role.CONTROLLER),
        ]
    )
    assert (dict(image.features.levels), image.features.revision) == ({MV: 21}, 1)


def test_a_feature_that_is_left_out_is_removed() -> None:
    """A response has the complete finalized set."""
    image = fold_all([r.answer(1, NEW, {MV: 21, TV: 2}, 5, 1), r.answer(1, NEW, {MV: 21}, 6, 2)])
    assert (dict(image.features.levels), image.features.revision) == ({MV: 21}, 2)


def test_responses_apply_in_the_order_of_the_topic() -> None:
    """A source whose clock was ahead once is believed again as soon as its clock was set right."""
    image = fold_all([r.answer(1, OLD, {}, -1, 1_000_000), r.answer(1, NEW, {}, -1, 30)])
    node = image.nodes.get(ONE)
    assert node == fold_all([r.answer(1, NEW, {}, -1, 30)]).nodes.get(ONE)
    image = fold_all([r.silent(1, 20)], image)
    silent = image.nodes.get(ONE)
    assert silent is not None
    assert silent.silent
    assert fold(image, r.silent(1, 25))[1].skipped
    assert fold_all([r.silent(1, 10, gone=True)], image).nodes.get(ONE) is None


def test_a_response_counts_again_if_its_levels_were_not_persisted() -> None:
    """A crash may persist the node of a response without its levels: the response then counts
    again."""
    event = r.answer(1, NEW, {MV: 21}, 50, 10)
    complete = fold_all([event])
    partial = fold_all([r.answer(1, NEW, {}, -1, 10)])
    assert dict(fold_all([event], partial).features.levels) == {MV: 21}
    assert fold(complete, event)[0] is complete


def test_a_silent_node_stays_and_an_unlisted_one_goes() -> None:
    """A node that does not respond stays in the image; one that is no longer listed does not."""
    image = fold_all([r.answer(1, OLD, {}, -1, 10), r.silent(1, 20)])
    node = image.nodes.get(ONE)
    assert node is not None
    assert node.silent
    assert fold_all([r.silent(1, 30, gone=True)], image).nodes.get(ONE) is None
    assert fold(image, r.silent(8, 40))[1].skipped


def test_the_log_outranks_responses() -> None:
    """Beside a log, responses change neither nodes nor levels; they are kept as answers."""
    image = fold_all([r.commit(5, r.level(MV, 21), r.register(1, OLD)), r.following(5)])
    after = fold_all([r.answer(1, NEW, {MV: 30}, 99, 100)], image)
    assert (after.nodes, after.features) == (image.nodes, image.features)
    assert after.answers.nodes.get(ONE) is not None


def test_a_log_replaces_earlier_responses_at_its_end() -> None:
    """Levels of responses stay until the log is read to its end; equal levels are no change."""
    image = fold_all([r.answer(1, NEW, {MV: 21}, 50, 10), r.answer(8, NEW, {MV: 21}, 50, 10)])
    image = fold_all([r.commit(5, r.level(MV, 21), r.register(1, NEW))], image)
    assert (image.authority, len(image.nodes), image.ready) == (Authority.LOG, 2, False)
    image = fold_all([r.following(5)], image)
    assert (len(image.nodes), image.ready, image.features.revision) == (1, True, 1)


def test_responses_from_before_the_log_stay_beside_it() -> None:
    """Responses from before the log, and silences, stay in the image without being repeated."""
    events: list[Event] = [
        r.answer(1, NEW, {}, 50, 10),
        r.answer(8, OLD, {}, 50, 10),
        r.silent(8, 20),
    ]
    answered = fold_all(events)
    image, delta = fold(answered, r.commit(5, r.level(MV, 21), r.register(1, OLD)))
    assert image.answers.nodes == answered.nodes
    assert dict(delta.answers.nodes) == dict(answered.nodes.nodes)
    image = fold_all([r.following(5)], image)
    assert image.answers.nodes == answered.nodes
    assert [node.silent for _, node in sorted(image.answers.nodes.nodes.items())] == [False, True]
    assert fold(image, r.answer(1, NEW, {}, 50, 10))[1].skipped


def test_two_views_disagree_and_one_does_not() -> None:
    """Two views disagree, fewer agree."""
    image = fold_all([r.disagreement(MV, 2, 1)])
    assert len(image.answers.disagreements[MV]) == 2
    assert dict(fold_all([r.disagreement(MV, 1, 2)], image).answers.disagreements) == {}
