"""The effect of an operation on partitions: a list for programs, and a summary for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition, without
from featurewatch.controller.partitions.kraft_election import NO_LEADER, KraftPartition
from featurewatch.controller.rehearsal.partitions.operations import (
    OperationResult,
    PartitionRefusal,
)
from featurewatch.controller.rehearsal.partitions.state import (
    RehearsedPartitions,
    is_under_min_isr,
)

NAMED: Final = 5
"""Maximum number of partitions, topics or brokers named in a line; the list has all."""


class PartitionEffect(StrEnum):
    """An effect on one partition; the value is its key in JSON."""

    UNAVAILABLE = "unavailable"
    """It has no leader any more."""
    AVAILABLE = "available"
    """It has a leader again."""
    LED_BY_ANOTHER = "led-by-another"
    UNCLEAN = "unclean"
    """A replica from outside the ISR leads."""
    UNDER_MIN_ISR = "under-min-isr"
    MIN_ISR_RESTORED = "min-isr-restored"
    CREATED = "created"
    MOVED = "moved"
    """Its replicas are others."""
    REORDERED = "reordered"
    """Its replicas are in another order: another leader is preferred."""
    UNFINISHED = "unfinished"
    """Its reassignment has not ended."""
    ISR = "isr"
    """Its ISR is another one, in whatever order."""


class ChangedPartition(NamedTuple):
    """A partition on which an operation has effects; ``before`` is None for a new one."""

    partition: TopicPartition
    before: KraftPartition | None
    after: KraftPartition
    effects: tuple[PartitionEffect, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PartitionImpact:
    """The impact of one operation; ``leaderless`` and ``under_min_isr`` count all partitions that
    are so after it."""

    changed: tuple[ChangedPartition, ...]
    refusals: tuple[PartitionRefusal, ...]
    notes: tuple[str, ...]
    partition_count: int
    leaderless: int
    under_min_isr: int

    def having(self, effect: PartitionEffect) -> list[ChangedPartition]:
        """The partitions with an effect."""
        return [change for change in self.changed if effect in change.effects]


def impact_of(before: RehearsedPartitions, result: OperationResult) -> PartitionImpact:
    """The impact of an operation on all partitions."""
    after = result.after
    old_minimums, minimums = before.minimum_isrs(), after.minimum_isrs()
    changed = []
    for partition, state in after.partitions.items():
        old = before.partitions.get(partition)
        reason = result.unfinished.get(partition, "")
        if state is old and not reason:
            continue
        effects = [*_effects(old, state)]
        if partition in result.unclean:
            effects.append(PartitionEffect.UNCLEAN)
        topic = partition.topic
        was_under = old is not None and is_under_min_isr(old, old_minimums[topic])
        is_under = is_under_min_isr(state, minimums[topic])
        if is_under and not was_under:
            effects.append(PartitionEffect.UNDER_MIN_ISR)
        elif was_under and not is_under and state.leader != NO_LEADER:
            effects.append(PartitionEffect.MIN_ISR_RESTORED)
        if reason:
            effects.append(PartitionEffect.UNFINISHED)
        if effects:
            changed.append(ChangedPartition(partition, old, state, tuple(effects), reason))
    return PartitionImpact(
        tuple(sorted(changed, key=lambda change: change.partition)),
        result.refusals,
        result.notes,
        len(after.partitions),
        sum(state.leader == NO_LEADER for state in after.partitions.values()),
        sum(
            is_under_min_isr(state, minimums[partition.topic])
            for partition, state in after.partitions.items()
        ),
    )


def _effects(before: KraftPartition | None, after: KraftPartition) -> Iterator[PartitionEffect]:
    if before is None:
        yield PartitionEffect.CREATED
        if after.leader == NO_LEADER:
            yield PartitionEffect.UNAVAILABLE
        return
    if after.leader != before.leader:
        if after.leader == NO_LEADER:
            yield PartitionEffect.UNAVAILABLE
        elif before.leader == NO_LEADER:
            yield PartitionEffect.AVAILABLE
        else:
            yield PartitionEffect.LED_BY_ANOTHER
    if {*after.replicas} != {*before.replicas}:
        yield PartitionEffect.MOVED
    elif after.replicas != before.replicas:
        yield PartitionEffect.REORDERED
    if {*after.isr} != {*before.isr}:
        yield PartitionEffect.ISR


def describe(impact: PartitionImpact) -> list[str]:
    """The impact in a few lines, however many partitions it has."""
    lines = [
        *_leaders(impact),
        *_counted(impact, PartitionEffect.UNAVAILABLE, "unavailable, no leader"),
        *_counted(impact, PartitionEffect.AVAILABLE, "led again"),
        *_counted(
            impact,
            PartitionEffect.UNCLEAN,
            "unclean, led from outside the ISR, acknowledged messages may be lost",
        ),
        *_counted(
            impact,
            PartitionEffect.UNDER_MIN_ISR,
            "below min ISR, writes with acks=all are refused",
        ),
        *_counted(impact, PartitionEffect.MIN_ISR_RESTORED, "min ISR restored"),
        *_moves(impact),
        *_counted(impact, PartitionEffect.REORDERED, "other order of the same replicas"),
        *_created(impact),
        *_unfinished(impact),
        *_isr_changes(impact),
    ]
    return lines or [f"no partition changes (of {impact.partition_count:,})"]


def _leaders(impact: PartitionImpact) -> Iterator[str]:
    changes = impact.having(PartitionEffect.LED_BY_ANOTHER)
    if not changes:
        return
    pairs = Counter(
        (change.before.leader, change.after.leader) for change in changes if change.before
    )
    ways = [
        f"{before} -> {after} ({count:,})"
        for (before, after), count in sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    yield f"led by another: {_count(changes)}, broker {_first_of(ways)}: {_named(changes)}"


def _counted(impact: PartitionImpact, effect: PartitionEffect, text: str) -> Iterator[str]:
    if changes := impact.having(effect):
        yield f"{text}: {_count(changes)}{_topics(changes)}: {_named(changes)}"


def _moves(impact: PartitionImpact) -> Iterator[str]:
    changes = impact.having(PartitionEffect.MOVED)
    if not changes:
        return
    gained, lost = Counter[int](), Counter[int]()
    for change in changes:
        old = change.before.replicas if change.before else ()
        gained.update(without(change.after.replicas, old))
        lost.update(without(old, change.after.replicas))
    yield f"other replicas: {_count(changes)}{_topics(changes)}: {_named(changes)}"
    for verb, counts in (("copied to", gained), ("removed from", lost)):
        if counts:
            brokers = [f"{broker_id} ({count:,})" for broker_id, count in sorted(counts.items())]
            yield f"replicas {verb} broker {_first_of(brokers)}"


def _created(impact: PartitionImpact) -> Iterator[str]:
    changes = impact.having(PartitionEffect.CREATED)
    if changes:
        leaders = Counter(change.after.leader for change in changes)
        brokers = [f"{broker_id} ({count:,})" for broker_id, count in sorted(leaders.items())]
        yield f"created: {_count(changes)}, led by broker {_first_of(brokers)}: {_named(changes)}"


def _unfinished(impact: PartitionImpact) -> Iterator[str]:
    reasons: dict[str, list[ChangedPartition]] = {}
    for change in impact.having(PartitionEffect.UNFINISHED):
        reasons.setdefault(change.reason, []).append(change)
    for reason, changes in list(reasons.items())[:NAMED]:
        yield f"unfinished: {_count(changes)}, {reason}: {_named(changes)}"
    if len(reasons) > NAMED:
        rest = sum(map(len, list(reasons.values())[NAMED:]))
        yield f"unfinished: {rest:,} more, for other reasons"


def _isr_changes(impact: PartitionImpact) -> Iterator[str]:
    """How many ISRs shrink and grow, beside what the other lines have."""
    shrunk, grown = list[ChangedPartition](), list[ChangedPartition]()
    for change in impact.having(PartitionEffect.ISR):
        if change.before and PartitionEffect.MOVED not in change.effects:
            is_smaller = len(change.after.isr) < len(change.before.isr)
            (shrunk if is_smaller else grown).append(change)
    if shrunk:
        yield f"ISR shrinks: {_count(shrunk)}"
    if grown:
        yield f"ISR grows: {_count(grown)}"


def _count(changes: Sequence[ChangedPartition]) -> str:
    count = len(changes)
    return f"{count:,} partition" if count == 1 else f"{count:,} partitions"


def _topics(changes: Iterable[ChangedPartition]) -> str:
    """The topics with their counts, if there are several."""
    topics = Counter(change.partition.topic for change in changes)
    names = [f"{topic} ({count:,})" for topic, count in topics.most_common()]
    return f", topics {_first_of(names)}" if len(names) > 1 else ""


def _named(changes: Iterable[ChangedPartition]) -> str:
    return _first_of([str(change.partition) for change in changes])


def _first_of(names: list[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} more"
