"""Resyncs: a source publishes its whole state again, and only real differences count."""

import pytest

from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.rows import rows_of_step, states_of_rows
from featurewatch.monitor.step import MonitorState, StepResult, step, step_lost
from featurewatch.streams.events import Event, begins_state
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.fold.fold import fold, fold_lost
from featurewatch.tables.image.cluster import ClusterImage
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.records import MV, NEW, OLD
from tests.tables.images import fold_all

LOG: list[Event] = [
    r.commit(1, r.leader_change(3, [1, 2, 3])),
    r.commit(4, r.level(MV, 20), r.register(1, OLD)),
    r.commit(6, r.level(MV, 21), r.register(2, NEW)),
    r.commit(8, r.unregister(1)),
    r.following(9),
]
"""A log whose level was raised, and of whose two brokers one was unregistered."""


def run(events: list[Event], state: MonitorState | None = None) -> list[StepResult]:
    """The steps of some events."""
    steps = []
    state = state or MonitorState.of(r.CLUSTER)
    for event in events:
        steps.append(step(state, event))
        state = steps[-1].state
    return steps


def brokers(image: ClusterImage) -> list[int]:
    """The ids of the image's nodes."""
    return sorted(key.node_id for key in image.nodes.nodes)


def test_a_log_that_is_published_again_changes_nothing() -> None:
    """No change, no alert and no earlier state appears while it is read again, and none after."""
    first = run(LOG)[-1].state
    assert first.image.ready
    again = run([r.resync(), *LOG], first)
    assert [output for result in again for output in result.outputs] == []
    for result in again[:-1]:
        assert not result.state.image.ready
        assert dict(result.state.image.features.levels) == {MV: 21}
        assert brokers(result.state.image) == [2]
        assert result.state.image.log.quorum == first.image.log.quorum
    assert again[-1].state.image == first.image


def test_brokers_missing_from_a_resync_are_removed_at_its_end() -> None:
    """A broker that no record names any more goes when the source follows, and not before."""
    image = fold_all([r.commit(1, r.register(1, OLD), r.register(2, OLD)), r.following(1)])
    image = fold_all([r.resync(), r.commit(1, r.register(2, OLD))], image)
    assert brokers(image) == [1, 2]
    image, delta = fold(image, r.following(1))
    assert brokers(image) == [2]
    assert delta.nodes == {NodeKey(Role.BROKER, NodeId(1)): None}


def test_a_snapshot_in_a_resync_shows_no_older_state() -> None:
    """The newest snapshot is older than the log: the records after it belong to the resync."""
    first = run(LOG)[-1].state
    snapshot = r.chunk(5, 0, r.level(MV, 20), r.register(1, OLD), last=True)
    again = run([r.resync(), snapshot, *LOG[2:]], first)
    assert [output for result in again for output in result.outputs] == []
    assert again[-1].state.image == first.image
    assert brokers(again[1].state.image) == [2]


def test_a_source_that_restarts_within_a_snapshot_begins_again() -> None:
    """The chunks that came do not count, and the last ones come again."""
    first = run(LOG)[-1].state
    chunks = [r.chunk(5, 0, r.register(7, OLD)), r.chunk(5, 1, r.register(1, OLD), last=True)]
    again = run([r.resync(), chunks[0], *LOG], first)
    assert again[-1].state.image == first.image
    again = run([r.resync(), chunks[0], r.resync(), *chunks, chunks[1], *LOG[2:]], first)
    assert brokers(again[-1].state.image) == [2, 7]
    assert dict(again[-1].state.image.sources.unreadable) == {}


def test_a_gap_in_a_resync_stays() -> None:
    """The part of the log that the source could not read is missing after the resync too."""
    image = fold_all([*LOG, r.resync(), r.gap(0, 3)])
    image = fold_all(LOG[2:], image)
    assert image.log.gap == "lost"
    assert fold_all([r.resync(), *LOG], image).log.gap == ""


def test_responses_that_are_not_published_again_are_removed() -> None:
    """A node and a disagreement that the source does not know any more, at the end of a resync."""
    events: list[Event] = [
        r.answer(1, OLD, {}, -1, 10),
        r.answer(2, OLD, {}, -1, 11),
        r.silent(3, 12),
        r.answer(3, OLD, {}, -1, 12),
        r.silent(3, 13),
        r.disagreement(MV, 2, 14),
        r.following(source="api-versions"),
    ]
    image = fold_all(events)
    assert brokers(image) == [1, 2, 3]
    image = fold_all(
        [r.resync("api-versions"), r.answer(2, OLD, {}, -1, 20), r.silent(3, 21)], image
    )
    assert brokers(image) == [1, 2, 3]
    assert MV in image.answers.disagreements
    image = fold_all([r.resync("api-versions", finished=True)], image)
    assert brokers(image) == [2, 3]
    assert not image.answers.disagreements
    node = image.nodes.get(NodeKey(Role.BROKER, NodeId(3)))
    assert node is not None
    assert node.silent


def test_responses_beside_a_log_are_replaced_too() -> None:
    """The responses of nodes are kept beside the registrations, and so are those that go."""
    image = fold_all([r.answer(1, OLD, {}, -1, 10), r.answer(2, OLD, {}, -1, 11), *LOG])
    assert len(image.answers.nodes) == 2
    again: list[Event] = [r.resync("api-versions"), r.answer(2, OLD, {}, -1, 20)]
    image = fold_all([*again, r.resync("api-versions", finished=True)], image)
    assert [key.node_id for key in image.answers.nodes.nodes] == [2]
    assert brokers(image) == [2]


@pytest.mark.parametrize(
    ("topic", "events", "again"),
    [
        ("metadata-log", LOG, [r.resync(), *LOG]),
        (
            "api-versions",
            [r.answer(1, OLD, {MV: 21}, 5, 10), r.following(source="api-versions")],
            [
                r.resync("api-versions"),
                r.answer(1, OLD, {MV: 21}, 5, 20),
                r.resync("api-versions", finished=True),
            ],
        ),
        (
            "zookeeper",
            [*z.reading("1-1", [z.broker(1, OLD)], 5), z.following()],
            z.reading("2-2", [z.broker(1, OLD), z.features({MV: 21})], 6, chunks=2),
        ),
    ],
    ids=["metadata-log", "api-versions", "zookeeper"],
)
def test_a_loss_counts_until_the_whole_state_was_published_again(
    topic: str, events: list[Event], again: list[Event]
) -> None:
    """The alert fires and the cluster is not ready; after a resync both are over (per topic)."""
    state = run(events)[-1].state
    assert state.image.ready
    lost = step_lost(state, topic, "offsets 3 to 9 expired", Cause("x", 100))
    assert [(alert.rule, alert.state) for alert in lost.alerts] == [("messages-lost", "firing")]
    assert not lost.state.image.ready
    ended = [alert for result in run(again, lost.state) for alert in result.alerts]
    assert [(alert.rule, alert.state) for alert in ended] == [("messages-lost", "resolved")]
    assert run(again, lost.state)[-1].state.image.ready
    # A loss in the middle of the resync: what comes after it is not the whole state.
    middle = run(again[:1], lost.state)[-1].state if len(again) > 1 else lost.state
    middle = step_lost(middle, topic, "offsets 11 to 12 expired", Cause("y", 101)).state
    rest = run(again[1:], middle)[-1].state if len(again) > 1 else middle
    assert rest.image.sources.has_lost(topic)
    assert run(again, rest)[-1].state.image.ready


def test_a_loss_on_one_topic_is_no_loss_on_another() -> None:
    """The end of a log's resync does not end the loss of responses."""
    image = fold_lost(fold_all(LOG), "api-versions", "x", "offsets 3 to 9 expired")
    assert image.ready
    image = fold_all([r.resync(), *LOG], image)
    assert image.sources.has_lost("api-versions")


def test_the_rows_of_a_resync_hold_all_of_it() -> None:
    """After each event of a resync the state that the rows restore is the state itself."""
    rows: dict[str, bytes] = {}
    state = MonitorState.of(r.CLUSTER)
    snapshot = [r.chunk(5, 0, r.level(MV, 20)), r.chunk(5, 1, r.register(1, OLD), last=True)]
    events = [
        *LOG, r.answer(1, OLD, {}, -1, 10), r.disagreement(MV, 2, 11), r.resync("api-versions"),
        r.resync(), *snapshot, r.gap(5, 5), *LOG[2:],
    ]  # fmt: skip
    for event in events:
        result = step(state, event)
        for name, value in rows_of_step(state, result):
            rows.pop(name, None)
            if value is not None:
                rows[name] = value
        state = result.state
        assert states_of_rows(rows.items())[r.CLUSTER].image == state.image


@pytest.mark.parametrize(
    ("event", "begins"),
    [
        (r.commit(0, r.leader_change(3, [1])), True),
        (r.commit(5, r.level(MV, 20)), False),
        (r.chunk(5, 0, r.level(MV, 20)), True),
        (r.chunk(5, 1, r.level(MV, 20), last=True), False),
        (r.gap(0, 9, reset=True), True),
        (r.gap(0, 9), False),
        (r.resync(), True),
        (r.resync("api-versions", finished=True), False),
        (r.following(5), False),
        (r.answer(1, OLD, {}, -1, 10), False),
        (z.reading("1-1", [z.broker(1, OLD)], 5)[0], True),
    ],
)
def test_events_that_begin_the_whole_state(event: Event, begins: bool) -> None:
    """A reader that begins with such an event lacks nothing."""
    assert begins_state(event) == begins
