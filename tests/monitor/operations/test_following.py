"""The partitions follow a controller's log, through crashes, resyncs and gaps, without an alarm."""

from dataclasses import replace
from random import Random

import pytest

from featurewatch.controller.partitions.kraft_election import KraftPartition
from featurewatch.controller.partitions.legality import kraft_partition
from featurewatch.monitor.operations.state import UNCLEAN
from featurewatch.streams.events import Event
from featurewatch.tables.partitions.image import Condition, PartitionsImage
from tests.monitor.operations.handwritten import Worker, change, partitions
from tests.plugins.nightly import case_count, case_seeds
from tests.simulation import records as r
from tests.simulation.controller_log import LIMITS, ControllerLog
from tests.simulation.engine import Engine


def engine() -> Engine:
    """An engine that follows operations."""
    new = Engine()
    new.limits = LIMITS
    return new


def events_of(log: ControllerLog, steps: int) -> list[Event]:
    """The first commit, a status, and some operations."""
    first = log.start()
    events: list[Event] = [first, r.following(first.last_offset, seen_ms=log.now_ms)]
    commits = [log.step() for _ in range(steps)]
    return events + [commit for commit in commits if commit is not None]


def partitions_of(log: ControllerLog) -> dict[tuple[str, int], KraftPartition]:
    """The state of the controller itself."""
    return {
        (topic_id, index): partition
        for topic_id, topic in log.topics.items()
        for index, partition in topic.partitions.items()
    }


def followed(engine: Engine) -> dict[tuple[str, int], KraftPartition]:
    """The state of the engine, which must be the same after its rows were read back."""
    image = image_of(engine)
    assert image == PartitionsImage.of(image.topics, image.partitions, image.min_isrs)
    return {key: kraft_partition(partition) for key, partition in image.partitions.items()}


def below_min_isr(log: ControllerLog) -> set[tuple[str, int]]:
    """The partitions that are below their minimum ISR."""
    partitions = partitions_of(log).items()
    return {key for key, partition in partitions if log.is_below_min_isr(key[0], partition)}


def image_of(engine: Engine) -> PartitionsImage:
    """The image of the partitions, which are known."""
    assert engine.state.partitions is not None
    assert engine.state.partitions.image is not None
    return engine.state.partitions.image


def assert_no_false_alarm(engine: Engine) -> None:
    """No change counts as illegal, and no record as unreadable."""
    assert engine.state.partitions is not None
    assert {*engine.state.partitions.incidents} <= {UNCLEAN}
    assert not engine.state.image.sources.unreadable


def test_every_operation_is_followed_without_a_false_alarm() -> None:
    """Whatever a controller of any release does, the partitions are its own, and nothing is
    illegal."""
    count = is_below = 0
    for seed in case_seeds(40):
        log, worker = ControllerLog(seed), engine()
        worker.apply_all(events_of(log, 60))
        try:
            assert followed(worker) == partitions_of(log)
            assert_no_false_alarm(worker)
            below = below_min_isr(log)
            assert {*image_of(worker).conditions[Condition.BELOW_MIN_ISR]} == below
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, release {log.release}") from error
        count += sum(len(topic.partitions) for topic in log.topics.values())
        is_below += len(below)
    assert count > case_count(500)
    assert is_below > case_count(50)


@pytest.mark.parametrize("seed", range(6))
def test_a_worker_that_dies_between_any_two_rows_continues(seed: int) -> None:
    """Its rows make a valid state, and the event that is applied again leads to the same."""
    chance, log = Random(seed), ControllerLog(seed)
    events = events_of(log, 40)
    whole, dying = engine(), engine()
    for number, event in enumerate(events):
        whole.apply(event, offset=number)
        if chance.random() < 0.3:
            dying.apply(event, rows_written=chance.randrange(30), offset=number)
        dying.apply(event, offset=number)
        dying.apply(event, offset=number)
    dying.restart()
    assert followed(dying) == followed(whole) == partitions_of(log)
    assert image_of(dying) == image_of(whole)
    assert {*image_of(dying).conditions[Condition.BELOW_MIN_ISR]} == below_min_isr(log)
    assert_no_false_alarm(dying)


@pytest.mark.parametrize("seed", range(6))
def test_a_resync_replaces_the_partitions(seed: int) -> None:
    """A snapshot read over the log, partly before a crash, ends in the same state; then more."""
    log, worker = ControllerLog(seed), engine()
    events = events_of(log, 25)
    worker.apply_all(events)
    for _ in range(10):
        log.step()  # commits that nobody published
    chunks = log.snapshot()
    worker.apply_all([r.gap(log.offset - 5, log.offset - 1, seen_ms=log.now_ms), *chunks[:1]])
    worker.restart()
    worker.apply_all(chunks[1:])
    assert followed(worker) == partitions_of(log)
    assert {*image_of(worker).conditions[Condition.BELOW_MIN_ISR]} == below_min_isr(log)
    assert not any("partitions_resync" in key for key in worker.rows)
    worker.restart()
    assert followed(worker) == partitions_of(log)
    worker.apply_all([commit for _ in range(20) if (commit := log.step()) is not None])
    assert followed(worker) == partitions_of(log)
    assert_no_false_alarm(worker)


def test_the_log_from_its_beginning_is_a_resync_too() -> None:
    """A source that publishes the whole log again changes nothing, and no step is published."""
    log, worker = ControllerLog(5, "3.9"), engine()
    events = events_of(log, 30)
    worker.apply_all(events)
    before = followed(worker)
    count = len(worker.published)
    status = r.following(log.offset - 1, seen_ms=log.now_ms + 1)
    worker.apply_all([r.resync(seen_ms=log.now_ms), *events[:1], *events[2:], status])
    assert followed(worker) == before == partitions_of(log)
    assert not [key for key, _ in worker.published[count:] if "/reassignment/" in key]
    assert_no_false_alarm(worker)


def test_partitions_that_are_not_published_are_not_known() -> None:
    """Without the source's --operations nothing is concluded; with it the worker wants a resync."""
    log, worker = ControllerLog(3, "4.3"), engine()
    start = log.start()
    worker.apply_all([start, r.following(start.last_offset, seen_ms=log.now_ms)])
    hidden = log.commit(log.create_topic())
    worker.apply_all([replace(hidden, records=[], skipped={"TOPIC_RECORD": 1})])
    assert worker.state.partitions is not None
    assert worker.state.partitions.image is None
    assert not worker.state.partitions.missing
    worker.apply_all([log.commit(log.create_topic())])
    assert worker.state.partitions.missing
    whole = [r.resync(seen_ms=log.now_ms), *log.snapshot()]
    worker.apply_all([*whole, r.following(log.offset - 1, seen_ms=log.now_ms)])
    assert followed(worker) == partitions_of(log)
    worker.restart()
    assert worker.state.partitions is not None
    assert not worker.state.partitions.missing


def test_switching_operations_off_deletes_their_rows() -> None:
    """A state that is no longer followed is not kept, and the rest can be restored."""
    log, worker = ControllerLog(4, "4.3"), engine()
    worker.apply_all(events_of(log, 20))
    assert any("|partitions" in key for key in worker.rows)
    worker.restart()
    worker.limits = replace(LIMITS, operations=False)
    commit = log.commit([log._registration(1)])
    worker.apply_all([commit])
    assert not any("|partitions" in key for key in worker.rows)
    worker.restart()
    assert worker.state.partitions is None


def test_without_operations_partition_records_change_nothing() -> None:
    """A source that publishes more than the worker wants costs it nothing but their passing."""
    log, plain = ControllerLog(6, "4.3"), Engine()
    plain.apply_all(events_of(log, 20))
    assert plain.state.partitions is None
    assert not any("|partitions" in key for key in plain.rows)


def test_conditions_count_their_partitions() -> None:
    """The index of conditions has the partitions that have them, with the time they began."""
    log, worker = ControllerLog(8, "3.9"), engine()
    worker.apply_all(events_of(log, 1))
    worker.apply_all([log.commit(log.create_topic())])
    leader = next(iter(partitions_of(log).values())).leader
    log.chance = Random(0)
    while leader in log.usable:
        records = log.fence()
        if records:
            worker.apply_all([log.commit(records)])
    conditions = image_of(worker).conditions[Condition.NOT_PREFERRED]
    others = {k for k, p in partitions_of(log).items() if p.leader not in (p.replicas[0], -1)}
    assert {*conditions} == others


def test_the_ids_in_all_lists_of_replicas_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions, and changes that lengthen lists, beyond the bound are unreadable; what makes
    room is applied."""
    monkeypatch.setattr("featurewatch.tables.partitions.replay.MAX_LISTED_IDS", 13)
    worker = Worker("4.3", [1, 2, 3], [1, 2, 3])
    worker.commit(*partitions(2, [1, 2]))  # 12 ids before, 16 with it

    def state() -> tuple[int, int, int]:
        image = image_of(worker.engine)
        assert image == PartitionsImage.of(image.topics, image.partitions, image.min_isrs)
        return (
            len(image.partitions),
            image.listed_ids,
            len(worker.engine.state.image.sources.unreadable),
        )

    assert state() == (2, 12, 1)
    worker.commit(change(0, isr=[1]))
    assert state()[:2] == (2, 10)
    worker.commit(change(1, replicas=[1, 2, 3, 4, 5], addingReplicas=[4, 5]))
    assert state()[:2] == (2, 10)
    worker.commit(*partitions(2, [1]))
    assert state()[:2] == (3, 12)
