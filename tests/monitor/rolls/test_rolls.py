"""Rolls: nodes change software one after another, derived from registrations and levels alone."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest

from featurewatch.controller.downgrade_path import rollback_path
from featurewatch.controller.software import (
    Direction,
    direction_of,
    newest_known_release,
    release_name,
    software_name,
)
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.rolls.roll import NO_ROLLS, Roll, RollHistory, capability_changes
from featurewatch.monitor.rolls.tracker import track_rolls
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import Event, LogCommit, LogGap
from featurewatch.tables.image.nodes import Capabilities, intern_capabilities
from tests.plugins.nightly import case_seeds
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.records import CLUSTER, KV, MV, TV, Ranges
from tests.simulation.world import RELEASES, World

OLD, NEW = RELEASES["3.9"], RELEASES["4.3"]
THREE = (r.level(MV, 19), *(r.register(node, OLD) for node in (1, 2, 3)))
START = (r.commit(9, *THREE), r.following(9))


def capabilities_of(ranges: Ranges, *, complete: bool = True) -> Capabilities:
    """The capabilities of nodes with these ranges."""
    return intern_capabilities(ranges, complete=complete)


def rolls_after(events: Iterable[Event]) -> Iterator[tuple[RollHistory, tuple[Roll, ...]]]:
    """The rolls after each event, and the rolls that the event ended."""
    state, rolls = MonitorState.of(CLUSTER), NO_ROLLS
    for event in events:
        outcome = step(state, event)
        moved = capability_changes(state.image, outcome.state.image, outcome.delta)
        state = outcome.state
        rolls, ended = track_rolls(
            rolls, state.image, moved, outcome.delta.levels, Cause(event.id, event.seen_ms)
        )
        yield rolls, ended


def last(*events: Event) -> Roll:
    """The roll after the initial records and some events."""
    *_, (rolls, _) = rolls_after([*START, *events])
    assert rolls.current is not None
    return rolls.current


def up(at: int, node: int) -> LogCommit:
    """A node restarts on the new software."""
    return r.commit(at, r.register(node, NEW))


def down(at: int, node: int) -> LogCommit:
    """A node restarts on the old software."""
    return r.commit(at, r.register(node, OLD))


UPGRADED = (up(20, 1), up(30, 2), up(40, 3))


def test_an_upgrade_is_rolled_and_then_finalized() -> None:
    """It starts with the first node, is rolled with the last, finalized with the first level after
    that, and ends; levels that are raised later belong to it, too (M-31)."""
    states = [
        (rolls.current.state, rolls.current.ended_ms)
        for rolls, _ in rolls_after([*START, *UPGRADED, r.commit(50, r.level(MV, 30))])
        if rolls.current
    ]
    assert states == [("rolling", None), ("rolling", None), ("rolled", None), ("finalized", 500)]
    roll = last(*UPGRADED, r.commit(50, r.level(MV, 30)), r.commit(60, r.level(TV, 2)))
    assert roll.direction is Direction.UPGRADE
    assert (roll.started_ms, roll.rolled_ms, roll.finalized_ms) == (200, 400, 500)
    assert [(node.node_id, node.at_ms, node.release) for node in roll.nodes] == [
        (1, 200, "4.3"),
        (2, 300, "4.3"),
        (3, 400, "4.3"),
    ]
    assert roll.levels == {MV: (19, 30), TV: (0, 2)}
    assert roll.duration_ms == 300


def test_a_level_that_both_releases_support_does_not_finalize_the_roll() -> None:
    """A level that the old software supports is recorded; any other one finalizes the roll."""
    early = r.commit(25, r.level(MV, 20))
    roll = last(up(20, 1), early)
    assert (roll.levels, roll.finalized_ms, roll.state) == ({MV: (19, 20)}, None, "rolling")
    assert last(up(20, 1), early, up(30, 2), up(40, 3)).state == "rolled"
    forced = last(up(20, 1), r.commit(25, r.level(MV, 30)))
    assert (forced.finalized_ms, forced.state, forced.ended_ms) == (250, "rolling", None)
    done = last(up(20, 1), r.commit(25, r.level(MV, 30)), up(30, 2), up(40, 3))
    assert (done.state, done.ended_ms) == ("finalized", 400)


def test_a_ghost_keeps_a_roll_incomplete() -> None:
    """A registered node that never returns is behind, until it is unregistered."""
    assert last(up(20, 1), up(30, 2)).state == "rolling"
    roll = last(up(20, 1), up(30, 2), r.commit(45, r.unregister(3)))
    assert (roll.state, roll.rolled_ms) == ("rolled", 450)


def test_an_abandoned_roll_ends_with_its_last_node() -> None:
    """All changed nodes went back; the next roll is another one."""
    roll = last(up(20, 1), up(30, 2), down(35, 2), down(40, 1))
    assert (roll.state, roll.ended_ms, roll.duration_ms) == ("abandoned", 400, None)
    assert last(up(20, 1), up(30, 2), down(35, 2)).state == "rolling"
    next_roll = last(up(20, 1), down(40, 1), up(50, 1))
    assert (next_roll.started_ms, next_roll.state) == (500, "rolling")


def test_one_node_back_and_forth_does_not_end_an_upgrade() -> None:
    """A downgrade of one node starts and is abandoned; the upgrade before it continues, and is
    finalized."""
    events: list[Event] = [*START, *UPGRADED, down(50, 2), up(60, 2), r.commit(70, r.level(MV, 30))]
    steps = [*rolls_after(events)]
    ended = [roll for _, rolls in steps for roll in rolls]
    assert [(roll.direction, roll.state, roll.ended_ms) for roll in ended] == [
        ("upgrade", "rolled", 500),
        ("downgrade", "abandoned", 600),
    ]
    current = steps[-1][0].current
    assert current is not None
    assert (current.direction, current.state, current.started_ms) == ("upgrade", "finalized", 200)


@pytest.mark.form("released")
def test_a_downgrade_has_the_levels_that_were_lowered_before_it() -> None:
    """First the level, then each node; a level that was raised again is not part of it
    (M-32 as released)."""
    high = r.commit(50, r.level(MV, 20), r.level(TV, 2))
    roll = last(
        *(*UPGRADED, high, r.commit(60, r.level(TV, 0)), r.commit(61, r.level(MV, 19))),
        *(r.commit(62, r.level(MV, 20)), down(70, 1), down(80, 2), down(90, 3)),
    )
    assert (roll.direction, roll.state) == (Direction.DOWNGRADE, "rolled")
    assert roll.levels == {TV: (2, 0)}
    assert (roll.started_ms, roll.rolled_ms, roll.ended_ms) == (700, 900, 900)
    assert roll.rollback_path is not None
    assert (roll.rollback_path.lossless, roll.rollback_path.to) == (True, "4.3")


def test_new_nodes_begin_nothing() -> None:
    """A new cluster with two releases, or a new node, starts no roll; during a roll a new node with
    the new software is part of it, and one with the old software is behind."""
    mixed: list[Event] = [r.commit(9, r.register(1, OLD), r.register(2, NEW)), r.following(9)]
    *_, (rolls, _) = rolls_after([*mixed, up(20, 4), down(21, 5)])
    assert rolls.current is None
    roll = last(up(20, 1), up(25, 4))
    assert [node.node_id for node in roll.nodes] == [1, 4]
    late = last(*UPGRADED, down(50, 4))
    assert (late.state, late.rolled_ms) == ("rolling", None)


def test_an_absent_broker_is_not_upgraded() -> None:
    """ZooKeeper has no registration of a restarting broker: its previous software still counts, so
    the roll does not end while it is absent."""
    brokers = [z.broker(node, OLD, node) for node in (1, 2)]
    start: list[Event] = [*z.reading("s", brokers, 10), z.following(11)]
    away = [z.deleted("/brokers/ids/1", 20), z.change(z.broker(1, NEW, 21), 21)]
    *_, (rolls, _) = rolls_after([*start, *away, z.deleted("/brokers/ids/2", 30)])
    assert rolls.current is not None
    assert rolls.current.state == "rolling"
    *_, (same, _) = rolls_after([*start, z.deleted("/brokers/ids/1", 20), z.change(brokers[0], 25)])
    assert same.current is None
    *_, (rolls, _) = rolls_after(
        [*start, *away, z.deleted("/brokers/ids/2", 30), z.change(z.broker(2, NEW, 31), 31)]
    )
    assert rolls.current is not None
    assert (rolls.current.state, rolls.current.rolled_ms) == ("rolled", 310)


def test_what_cannot_be_read_is_behind_and_no_other_software() -> None:
    """An unreadable znode prevents the state rolled; once it is readable, the node's previous
    software counts."""
    brokers = [z.broker(node, OLD, node) for node in (1, 2)]
    start: list[Event] = [*z.reading("s", brokers, 10), z.following(11)]
    broken = z.change(z.unreadable("/brokers/ids/2", 20), 20)
    new = z.change(z.broker(1, NEW, 30), 30)
    *_, (rolls, _) = rolls_after([*start, broken, new])
    assert rolls.current is not None
    assert [node.node_id for node in rolls.current.nodes] == [1]
    assert rolls.current.state == "rolling"
    *_, (rolls, _) = rolls_after([*start, broken, new, z.change(z.broker(2, NEW, 40), 40)])
    assert rolls.current is not None
    assert rolls.current.state == "rolled"


def test_answers_that_leave_features_out_are_no_other_software() -> None:
    """An older version of ApiVersions returns fewer features for the same node."""
    full, less = capabilities_of(OLD), capabilities_of({MV: OLD[MV]}, complete=False)
    assert direction_of(full, less) is direction_of(less, full) is None
    assert direction_of(less, capabilities_of(NEW)) is Direction.UPGRADE


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (OLD, NEW, Direction.UPGRADE),
        (NEW, OLD, Direction.DOWNGRADE),
        ({MV: (1, 21)}, {MV: (7, 21)}, Direction.UPGRADE),
        ({"a": (1, 2), "b": (1, 2)}, {"a": (1, 3), "b": (1, 1)}, None),
        ({"a": (1, 2)}, {"a": (1, 2), "b": (0, 1)}, Direction.UPGRADE),
        ({}, {}, None),
    ],
)
def test_the_direction_of_a_change(
    before: Ranges, after: Ranges, expected: Direction | None
) -> None:
    """metadata.version decides, then all features if they agree, then the removed ones."""
    assert direction_of(capabilities_of(before), capabilities_of(after)) is expected


def test_releases_by_their_ranges() -> None:
    """A release is identified by its range; unknown software is named by its known level."""
    assert [
        release_name(capabilities_of({MV: bounds}))
        for bounds in ((1, 7), (1, 21), (7, 29), (7, 30))
    ] == [*("3.3", "3.9", "4.2", "4.3")]
    assert release_name(capabilities_of({MV: (7, 31)})) == "4.3"
    assert software_name(capabilities_of({MV: (7, 99)})) == (
        f"unknown, newer than {newest_known_release().name} (metadata.version 7-99)"
    )
    assert (release_name(capabilities_of({})), software_name(capabilities_of({}))) == (
        None,
        "unknown",
    )


@pytest.mark.parametrize(
    ("levels", "old", "lossless", "to", "why"),
    [
        ({MV: 19}, OLD, True, "3.9", "No finalized level excludes 3.9"),
        ({MV: 27, TV: 2}, RELEASES["4.0"], True, "4.0", "metadata.version to 25 (4.0-IV3)"),
        ({MV: 25}, OLD, False, "4.0", "not lowered below 23 (4.0-IV1)"),
        ({MV: 30}, OLD, False, "4.3", "not lowered below 30 (4.3-IV0)"),
        ({MV: 19, KV: 1}, RELEASES["3.6"], False, "3.9", "kraft.version 1 is never lowered"),
        ({MV: 99}, OLD, False, "4.9", "99 (newer than 4.4-IV2) changed is not known"),
    ],
)
def test_the_way_back(
    levels: dict[str, int], old: Ranges, lossless: bool, to: str, why: str
) -> None:
    """Whether older software can start again: metadata.version can go down to the last level that
    changed metadata, kraft.version cannot; an unknown level is not lossless."""
    path = rollback_path(Direction.UPGRADE, levels, [capabilities_of(old)], "4.9")  # type: ignore[arg-type]
    assert (path.lossless, path.to) == (lossless, to)
    assert why in path.reason


def test_histories_keep_the_order_of_the_steps() -> None:
    """In any history the steps of a roll are in order, an id is used once in a log, and an ended
    roll keeps its state or continues as the previous roll."""
    roll_count = 0
    seeds = case_seeds(200)
    for seed in seeds:
        events = World(Random(seed)).history(60)
        rolls: dict[tuple[str, str, int], Roll] = {}
        ids = set[tuple[str, str]]()
        for event, (state, ended) in zip(events, rolls_after(events), strict=True):
            if isinstance(event, LogGap) and event.reset:
                ids.clear()  # the records that follow have the offsets of those that were lost
            for roll in (*ended, *((state.current,) if state.current else ())):
                id_ = (roll.direction, roll.cause)
                if (*id_, roll.started_ms) not in rolls:
                    assert id_ not in ids
                    ids.add(id_)
                times = (roll.rolled_ms, roll.finalized_ms, roll.ended_ms)
                assert all(at is None or at >= roll.started_ms for at in times)
                assert all(node.at_ms >= roll.started_ms for node in roll.nodes)
                assert (roll.state == "abandoned") == (not roll.nodes)
                rolls[*id_, roll.started_ms] = roll
        roll_count += len(rolls)
    assert roll_count > len(seeds)


def test_a_new_snapshot_is_compared_with_the_state_before() -> None:
    """Nodes that changed during an outage are detected when the snapshot ends."""
    levels = (r.level(MV, 30), *(r.register(node, NEW) for node in (1, 2, 3)))
    roll = last(r.gap(10, 90), r.chunk(91, 0, *levels, last=True))
    assert (roll.state, len(roll.nodes)) == ("finalized", 3)
    assert roll.started_ms == roll.rolled_ms == roll.finalized_ms == 910


def test_times_of_other_clocks_do_not_turn_a_roll_round() -> None:
    """A level whose append time is too early does not precede the start of the roll."""
    roll = last(up(20, 1), replace(up(30, 2), seen_ms=5), replace(up(40, 3), seen_ms=6))
    assert (roll.started_ms, roll.rolled_ms) == (200, 200)
