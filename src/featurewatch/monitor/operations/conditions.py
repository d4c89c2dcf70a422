"""Which conditions of partitions must be evaluated: those that changed, and those that last."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from featurewatch.monitor.operations.state import NEVER_MS, PartitionsState
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.tables.partitions.image import Condition, PartitionKey, PartitionsImage

EXACT: Final = 20
"""Up to so many partitions an alert names each; more of them it counts coarsely."""


def limits_of(limits: Limits) -> Mapping[Condition, int]:
    """How long each condition may last, in milliseconds; 0: not at all."""
    return {
        Condition.LEADERLESS: 0,
        Condition.STALE: 0,
        Condition.BELOW_MIN_ISR: limits.below_min_isr_ms,
        Condition.NOT_PREFERRED: limits.not_preferred_ms,
    }


def coarse(count: int) -> int:
    """The largest power of two up to ``count``, so that a flood makes few alerts."""
    return 1 << (count.bit_length() - 1) if count else 0


def touched_conditions(
    before: PartitionsImage | None, after: PartitionsImage | None, *, everything: bool
) -> Iterator[str]:
    """The conditions whose alerts may change with their partitions: few exactly, many coarsely."""
    if everything or (before is None) is not (after is None):
        yield from Condition
    elif before is not None and after is not None and before.conditions is not after.conditions:
        for condition in Condition:
            old, new = before.conditions[condition], after.conditions[condition]
            is_few = min(len(old), len(new)) <= EXACT
            if old is not new and (is_few or coarse(len(old)) != coarse(len(new))):
                yield condition


def overdue(
    image: PartitionsImage, condition: Condition, now_ms: int, limits: Limits
) -> list[PartitionKey]:
    """The partitions with a condition that has lasted for its limit."""
    members, limit_ms = image.conditions[condition], limits_of(limits)[condition]
    if not limit_ms:
        return list(members)
    return [key for key, since_ms in members.items() if now_ms - since_ms >= limit_ms]


def due_conditions(
    before: PartitionsState, after: PartitionsState, now_ms: int, limits: Limits
) -> tuple[PartitionsState, list[str]]:
    """The state with its next ``due_ms``, and the conditions that exceed their limit since.

    All partitions with a condition are scanned only when one of them may have exceeded its limit.
    """
    image = after.image
    if image is None:
        return after, []
    timed = {condition: limit for condition, limit in limits_of(limits).items() if limit}
    due_ms = after.due_ms
    if before.image is None or before.image.conditions is not image.conditions:
        for condition, limit_ms in timed.items():
            if image.conditions[condition]:
                due_ms = min(due_ms, now_ms + limit_ms)
    if now_ms < due_ms:
        return (after if due_ms == after.due_ms else replace(after, due_ms=due_ms)), []
    due_ms, due = NEVER_MS, []
    for condition, limit_ms in timed.items():
        since = [
            at_ms for at_ms in image.conditions[condition].values() if at_ms + limit_ms > now_ms
        ]
        if len(since) < len(image.conditions[condition]):
            due.append(str(condition))
        due_ms = min([due_ms, *(at_ms + limit_ms for at_ms in since)])
    return replace(after, due_ms=due_ms), due
