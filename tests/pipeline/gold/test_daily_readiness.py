"""Daily readiness: the command's verdict at the end of each day."""

from itertools import pairwise

import orjson

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.input_messages import InputMessage
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.pipeline.fold.daily_readiness import READINESS
from featurewatch.pipeline.fold.messages import (
    FoldOutput,
    FoldState,
    flush_outputs,
    fold_message,
    restore_state,
)
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Event, SourceState
from featurewatch.streams.topics import METADATA_LOG
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV

OLD, NEW = release_of("3.9").ranges(), release_of("4.3").ranges()
DAY_MS = 86_400_000
DAYS = ("2025-06-15", "2025-06-16", "2025-06-17", "2025-06-18")
START_MS = 1_749_945_600_000
"""The first of `DAYS`."""


def fold(*events: tuple[int, Event]) -> tuple[FoldState, list[FoldOutput]]:
    """Folds events at times after the start, and flushes; returns the state and the rows."""
    state, outputs = restore_state(CLUSTER, {}), []
    for offset, (after_ms, event) in enumerate(events):
        message = encode(METADATA_LOG, event)
        position = (METADATA_LOG.name(), 0, offset, START_MS + after_ms)
        state, added = fold_message(state, InputMessage(*position, message.key, message.value))
        outputs += added
    state, added = flush_outputs(state)
    return state, outputs + added


def readiness(outputs: list[FoldOutput], target: str) -> dict[str, dict[str, object]]:
    """The last row of each day for a release."""
    rows = [orjson.loads(output.value) for output in outputs if output.kind == READINESS]
    return {row["day"]: row for row in rows if row["target"] == target}


def roll() -> list[tuple[int, Event]]:
    """Three nodes; one is rolled on the second day, the others on the third; then the level is
    raised."""
    nodes = [r.register(number, OLD, fenced=False) for number in (1, 2, 3)]
    first = r.commit(10, r.level(MV, 21), *nodes)
    second = r.commit(20, r.register(1, NEW, fenced=False, epoch=2))
    third = [r.register(number, NEW, fenced=False, epoch=3) for number in (2, 3)]
    return [
        (0, first),
        (1000, r.following(10)),
        (DAY_MS + 1000, second),
        (2 * DAY_MS + 1000, r.commit(30, *third)),
        (3 * DAY_MS + 1000, r.commit(40, r.level(MV, 30))),
    ]


def test_each_day_has_the_verdict_of_its_end() -> None:
    """The blockers of a release become fewer from day to day."""
    state, outputs = fold(*roll())
    days = readiness(outputs, "4.3")
    assert tuple(days) == DAYS
    assert [row["blockers"] for row in days.values()] == [3, 2, 0, 0]
    assert days[DAYS[1]]["blocker_names"] == ["broker 2", "broker 3"]
    assert [row["verdict"] for row in days.values()][:2] == ["no", "no"]
    assert [row["finalized"] for row in days.values()] == [False, False, False, False]
    now = assess_readiness(state.monitor.image, release_of("4.3"))
    assert days[DAYS[3]]["verdict"] == now.verdict
    assert days[DAYS[3]]["reasons"] == list(now.reasons)


def test_older_releases_show_the_way_back() -> None:
    """A downgrade has a verdict like any other: no, once levels that the release lacks are
    finalized."""
    _, outputs = fold(*roll())
    days = readiness(outputs, "3.9")
    assert [days[day]["finalized"] for day in DAYS] == [False] * 4
    assert days[DAYS[0]]["verdict"] == "yes"
    assert days[DAYS[3]]["verdict"] == "no"
    assert days[DAYS[3]]["reasons"]


def test_a_heartbeat_says_nothing_new() -> None:
    """A day with only heartbeats has its row once, however many batches there are."""
    state, _ = fold(*roll()[:2])
    for offset in range(5):
        message = encode(METADATA_LOG, r.following(10, seen_ms=offset + 10))
        position = (METADATA_LOG.name(), 0, 10 + offset, START_MS + 2000 + offset)
        state, outputs = fold_message(state, InputMessage(*position, message.key, message.value))
        state, added = flush_outputs(state)
        assert not [output for output in outputs + added if output.kind == READINESS]


def test_a_day_without_a_message_has_no_row() -> None:
    """Days without messages are not made up."""
    events = roll()
    _, outputs = fold(events[0], events[1], events[-1])
    assert tuple(readiness(outputs, "4.3")) == (DAYS[0], DAYS[3])


def test_days_do_not_go_back() -> None:
    """A message with a time of an earlier day belongs to the newest day."""
    events = [(at, event) for at, (_, event) in zip((DAY_MS, 0, 1, 2, 3), roll(), strict=True)]
    assert all(earlier <= later for (earlier, _), (later, _) in pairwise(events[1:]))
    _, outputs = fold(*events)
    assert tuple(readiness(outputs, "4.3")) == (DAYS[1],)


def test_a_day_that_was_published_is_not_published_again_when_it_is_over() -> None:
    """The first message of the next day yields the previous day only if that is dirty."""
    state, _ = fold(*roll()[:2])
    message = encode(METADATA_LOG, r.following(10, seen_ms=20))
    position = (METADATA_LOG.name(), 0, 10, START_MS + DAY_MS)
    state, outputs = fold_message(state, InputMessage(*position, message.key, message.value))
    assert not readiness(outputs, "4.3")
    assert tuple(readiness(flush_outputs(state)[1], "4.3")) == (DAYS[1],)


def test_the_day_on_which_a_cluster_is_forgotten_has_its_last_verdict() -> None:
    """However the messages are batched; later days have no row."""
    retired = r.status(SourceState.RETIRED, -1, seen_ms=99)
    events = [*roll()[:2], (2000, retired), (DAY_MS, retired)]
    state, outputs = fold(*events)
    days = readiness(outputs, "4.3")
    assert days == readiness(fold(*roll()[:2])[1], "4.3")
    assert state.monitor.image.forgotten
