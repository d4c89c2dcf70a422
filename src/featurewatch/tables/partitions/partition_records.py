"""One partition by its records: the new one, the changed one, and the checks of their fields."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.streams.fields import INT32_MAX
from featurewatch.tables.partitions.image import (
    NO_LEADER,
    Brokers,
    Move,
    Partition,
    advance_since,
    conditions_of,
)

Data = Mapping[str, Any]

NO_CHANGE: Final = -2
"""The leader of a PartitionChangeRecord that leaves it as it is."""

_MAX_REPLICAS: Final = 1000

_ELECTION_FIELDS: Final = frozenset({"topicId", "partitionId", "isr", "leader", "directories"})


def changed_partition(
    before: Partition, data: Data, offset: int, at_ms: int, min_isr: int
) -> Partition:
    """The partition after a PartitionChangeRecord (``PartitionRegistration.merge``).

    ``min_isr`` is the minimum that was set for it. Raises `TypeError` or `ValueError` for fields
    that cannot be read.
    """
    leader = data.get("leader", NO_CHANGE)
    if type(leader) is not int or not NO_CHANGE <= leader <= INT32_MAX:
        raise TypeError(f"leader is not a whole number from {NO_CHANGE} to {INT32_MAX}")
    leader_epoch = before.leader_epoch
    if leader == NO_CHANGE:
        leader = before.leader
    else:
        leader_epoch += 1
    isr = data.get("isr")
    isr = before.isr if isr is None else _brokers(isr)
    if not _ELECTION_FIELDS.issuperset(data):
        return _with_lists(before, data, offset, at_ms, isr, leader, leader_epoch, min_isr)
    since = before.since
    if leader != before.leader or len(isr) != len(before.isr):
        conditions = conditions_of(
            leader, before.replicas, isr, before.adding, before.removing, before.elr, min_isr
        )
        since = advance_since(since, conditions, at_ms)
    return Partition(
        before.replicas,
        isr,
        leader,
        leader_epoch,
        before.partition_epoch + 1,
        before.adding,
        before.removing,
        before.recovering,
        before.elr,
        before.last_known_elr,
        offset,
        since,
        before.move,
    )


def _with_lists(
    before: Partition,
    data: Data,
    offset: int,
    at_ms: int,
    isr: Brokers,
    leader: int,
    leader_epoch: int,
    min_isr: int,
) -> Partition:
    """The partition after a record with more fields than leader and ISR."""

    def chosen(name: str, current: Brokers) -> Brokers:
        value = data.get(name)
        return current if value is None else _brokers(value)

    adding = chosen("addingReplicas", before.adding)
    removing = chosen("removingReplicas", before.removing)
    recovery = data.get("leaderRecoveryState", -1)
    replicas = chosen("replicas", before.replicas)
    elr = chosen("eligibleLeaderReplicas", before.elr)
    if not replicas:
        raise ValueError("a partition has no replicas")
    move = (before.move or Move(offset, at_ms)) if adding or removing else None
    conditions = conditions_of(leader, replicas, isr, adding, removing, elr, min_isr)
    return Partition(
        replicas,
        isr,
        leader,
        leader_epoch,
        before.partition_epoch + 1,
        adding,
        removing,
        before.recovering if recovery == -1 else recovery == 1,
        elr,
        chosen("lastKnownElr", before.last_known_elr),
        offset,
        advance_since(before.since, conditions, at_ms),
        move,
    )


def new_partition(data: Data, offset: int, at_ms: int, min_isr: int) -> Partition:
    """The partition of a PartitionRecord; raises also `KeyError`, for a field that is missing."""

    def listed(name: str) -> Brokers:
        value = data.get(name)
        return () if value is None else _brokers(value)

    replicas, leader = listed("replicas"), whole_number(data, "leader", NO_LEADER)
    if not replicas:
        raise ValueError("a partition has no replicas")
    adding, removing = listed("addingReplicas"), listed("removingReplicas")
    elr, isr = listed("eligibleLeaderReplicas"), listed("isr")
    conditions = conditions_of(leader, replicas, isr, adding, removing, elr, min_isr)
    return Partition(
        replicas,
        isr,
        leader,
        whole_number(data, "leaderEpoch", 0),
        whole_number(data, "partitionEpoch", 0),
        adding,
        removing,
        data.get("leaderRecoveryState", 0) == 1,
        elr,
        listed("lastKnownElr"),
        offset,
        advance_since((), conditions, at_ms),
        Move(-1, at_ms) if adding or removing else None,
    )


def _brokers(value: Any) -> Brokers:
    """A list of broker ids; equal ones are one tuple."""
    if type(value) is not list or len(value) > _MAX_REPLICAS:
        raise TypeError("a list of brokers is not a list, or is too long")
    # Before the cache, which takes 1.0 and True for 1.
    if not {*map(type, value)} <= {int}:
        raise TypeError("a list of brokers contains something other than ids")
    return _interned(tuple(value))


@weighted_cache(len)
def _interned(ids: Brokers) -> Brokers:
    if ids and (min(ids) < 0 or max(ids) > INT32_MAX):
        raise ValueError(f"a broker id is not from 0 to {INT32_MAX}")
    return ids


def whole_number(data: Data, name: str, lowest: int) -> int:
    """A field that is an int32 from ``lowest`` on; raises `KeyError` or `TypeError`."""
    value = data[name]
    if type(value) is not int or not lowest <= value <= INT32_MAX:
        raise TypeError(f"{name} is not a whole number from {lowest} to {INT32_MAX}")
    return value


def text_of(data: Data, name: str, longest: int) -> str:
    """A field that is a text of at most so many characters; raises `KeyError` or `TypeError`."""
    value = data[name]
    if type(value) is not str or len(value) > longest:
        raise TypeError(f"{name} is not a string of at most {longest} characters")
    return value
