"""The effects of an election on partitions before it is requested; pure."""

from collections.abc import Iterator, Mapping

from featurewatch.admin.cluster.values import PartitionDetails
from featurewatch.admin.elections.client import ElectionType
from featurewatch.controller.partitions.assignment import TopicPartition


def effect_lines(
    kind: ElectionType,
    partitions: list[TopicPartition] | None,
    present: Mapping[TopicPartition, PartitionDetails],
) -> Iterator[str]:
    """A line for each partition, or (None) for each of all that an election changes."""
    wanted = sorted(present) if partitions is None else partitions
    lines = ((one, _effect(kind, present.get(one))) for one in wanted)
    return (f"{one}: {effect}" for one, effect in lines if partitions is not None or effect)


def _effect(kind: ElectionType, found: PartitionDetails | None) -> str:
    """The effect of an election on a partition; empty if nothing changes."""
    if found is None or not found.replicas:
        return "there is no such partition"
    if kind is ElectionType.UNCLEAN:
        if found.leader is not None:
            return ""
        return f"has no leader: the first running one of {found.replicas} is elected"
    preferred = found.replicas[0]
    leader = "none" if found.leader is None else found.leader
    if found.leader == preferred:
        return ""
    if preferred not in found.isr:
        return f"{preferred} is not in sync and cannot lead; {leader} leads"
    return f"leader {leader} -> {preferred}"
