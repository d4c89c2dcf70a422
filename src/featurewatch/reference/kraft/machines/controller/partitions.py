"""Changes of partitions: leaders and ISRs when brokers come and go, and what leaders ask for.

Follows ``ReplicationControlManager``; elections are those of `controller.partitions`.
"""

from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Final

from featurewatch.controller.partitions.assignment import without
from featurewatch.controller.partitions.kraft_election import (
    KraftElection,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
    PartitionTarget,
    change_partition,
)
from featurewatch.controller.partitions.kraft_reassignment import begin_reassignment
from featurewatch.reference.kraft.machines.controller.work import MIN_INSYNC, Work
from featurewatch.reference.kraft.machines.metadata.state import (
    BROKER,
    NO_LEADER,
    TOPIC,
    Partition,
    PartitionKey,
)
from featurewatch.streams.types import FeatureName

ELR_VERSION: Final = FeatureName("eligible.leader.replicas.version")
UNCLEAN: Final = "unclean.leader.election.enable"


def election_rules(work: Work) -> KraftElectionRules:
    """The rules of the software at the current level."""
    major, minor = work.settings.release.split(".")[:2]
    return KraftElectionRules(
        (int(major), int(minor)),
        elr=work.gates.elr and work.state.levels.get(ELR_VERSION, 0) > 0,
        raises_epoch_on_shrink=work.gates.epoch_on_shrink,
    )


def usable(
    work: Work,
    partition: Partition,
    excluded: Set[int] = frozenset(),
    added: tuple[int, ...] = (),
) -> frozenset[int]:
    """The replicas that may lead: of active brokers, in a directory that is online.

    ``added`` are brokers that are to become replicas.
    """
    brokers = work.state.brokers
    return frozenset(
        broker_id
        for broker_id in (*partition.replicas, *added)
        if broker_id not in excluded
        and (broker := brokers.get(broker_id)) is not None
        and broker.is_active
        and broker.has_online(partition.directory_of(broker_id))
    )


def topic_setting(work: Work, topic: str, name: str) -> str | None:
    """A dynamic setting that holds for a topic: its own, the controller's, or the cluster's."""
    state = work.state
    for kind, resource in ((TOPIC, topic), (BROKER, str(work.settings.node_id)), (BROKER, "")):
        if (value := state.setting(kind, resource, name)) is not None:
            return value
    return None


def _target(
    work: Work, key: PartitionKey, partition: Partition, excluded: Set[int] = frozenset()
) -> PartitionTarget:
    """A target with the current assignment and ISR: an election, if one is needed."""
    topic = work.state.topics[key[0]].name
    minimum = topic_setting(work, topic, MIN_INSYNC)
    is_number = minimum is not None and minimum.isdecimal()
    found = int(minimum) if minimum is not None and is_number else work.settings.min_insync_replicas
    unclean = topic_setting(work, topic, UNCLEAN)
    is_unclean = work.settings.unclean_election if unclean is None else unclean == "true"
    return PartitionTarget(
        usable(work, partition, excluded),
        min_isr=min(found, len(partition.replicas)),
        election=KraftElection.UNCLEAN if is_unclean else KraftElection.ONLINE,
    )


def change(
    work: Work,
    key: PartitionKey,
    target: PartitionTarget,
    directories: tuple[str, ...] | None = None,
) -> bool:
    """Writes the PartitionChangeRecord that leads to a target; False if nothing changes."""
    partition = work.state.partitions[key]
    found = change_partition(election_rules(work), _of(partition), target)
    return _write(work, key, found, directories)


def _write(
    work: Work, key: PartitionKey, found: PartitionChange, directories: tuple[str, ...] | None
) -> bool:
    partition = work.state.partitions[key]
    if work.gates.directories and directories is None and found.replicas is not None:
        directories = tuple(
            partition.directory_of(broker_id)
            if broker_id in partition.replicas
            else default_directory(work, broker_id)
            for broker_id in found.replicas
        )
    if directories == partition.directories:
        directories = None
    if found.is_empty and directories is None:
        return False
    data = _fields(found)
    if directories is not None:
        data["directories"] = [*directories]
    work.add(
        "PARTITION_CHANGE_RECORD",
        work.gates.partition_change,
        topicId=key[0],
        partitionId=key[1],
        **data,
    )
    return True


def default_directory(work: Work, broker_id: int) -> str:
    """The directory of a new replica."""
    return work.state.brokers[broker_id].default_directory


def _of(partition: Partition) -> KraftPartition:
    return KraftPartition(
        partition.replicas,
        partition.isr,
        partition.leader,
        partition.adding,
        partition.removing,
        partition.recovery_state == 1,
        partition.elr,
        partition.last_known_elr,
    )


def _fields(found: PartitionChange) -> dict[str, object]:
    lists = {
        "isr": found.isr,
        "replicas": found.replicas,
        "addingReplicas": found.adding,
        "removingReplicas": found.removing,
        "eligibleLeaderReplicas": found.elr,
        "lastKnownElr": found.last_known_elr,
    }
    data: dict[str, object] = {name: [*value] for name, value in lists.items() if value is not None}
    if found.leader is not None:
        data["leader"] = found.leader
    if found.recovering is not None:
        data["leaderRecoveryState"] = int(found.recovering)
    return data


# -- brokers that come and go (``generateLeaderAndIsrUpdates``) ------------------------------------


def remove_broker(work: Work, broker_id: int, keys: Iterable[PartitionKey] | None = None) -> None:
    """Takes a broker out of ISRs, and elects others where it leads."""
    for key in work.state.partitions_of(broker_id) if keys is None else keys:
        partition = work.state.partitions[key]
        target = _target(work, key, partition, {broker_id})
        change(work, key, replace(target, isr=without(partition.isr, (broker_id,))))


def remove_unclean(work: Work, broker_id: int) -> None:
    """Takes a broker that may have lost data out of ISRs and eligible leaders (KIP-966)."""
    for key in work.state.partitions_of(broker_id):
        partition = work.state.partitions[key]
        target = _target(work, key, partition, {broker_id})
        isr = without(partition.isr, (broker_id,))
        change(work, key, replace(target, isr=isr, unclean_shutdown=frozenset({broker_id})))


def elect_for_leaderless(work: Work) -> None:
    """Elects leaders of partitions that have none, after a broker became active."""
    for key in work.state.partitions_of(NO_LEADER):
        change(work, key, _target(work, key, work.state.partitions[key]))


def elect(work: Work, key: PartitionKey, election: KraftElection) -> bool:
    """Elects a leader for an administrator; False if none can lead."""
    target = _target(work, key, work.state.partitions[key])
    return change(work, key, replace(target, election=election))


def alter_isr(work: Work, key: PartitionKey, isr: tuple[int, ...], *, recovering: bool) -> bool:
    """Changes the ISR as the leader asks; completes a reassignment where it can."""
    target = _target(work, key, work.state.partitions[key])
    return change(work, key, replace(target, isr=isr, recovering=recovering))


def assign_directory(work: Work, key: PartitionKey, broker_id: int, directory: str) -> None:
    """Notes in which directory a replica is."""
    partition = work.state.partitions[key]
    directories = tuple(
        directory if replica == broker_id else partition.directory_of(replica)
        for replica in partition.replicas
    )
    change(work, key, _target(work, key, partition), directories)


def reassign(work: Work, key: PartitionKey, replicas: tuple[int, ...]) -> None:
    """Begins to move a partition to other replicas."""
    partition = work.state.partitions[key]
    target = _target(work, key, partition)
    able = usable(work, partition, added=replicas)
    rules = election_rules(work)
    found = begin_reassignment(rules, _of(partition), replicas, able, target.min_isr)
    _write(work, key, found, None)


def cancel(work: Work, key: PartitionKey) -> bool:
    """Takes a partition back to its replicas from before (``PartitionReassignmentRevert``).

    False if none of them is in sync, and an unclean election is not permitted.
    """
    partition = work.state.partitions[key]
    target = _target(work, key, partition)
    replicas = without(partition.replicas, partition.adding)
    isr = without(partition.isr, partition.adding)
    if not isr and target.election is not KraftElection.UNCLEAN:
        return False
    change(
        work,
        key,
        replace(target, isr=isr or replicas[:1], replicas=replicas, adding=(), removing=()),
    )
    return True


def balance(work: Work, most: int) -> None:
    """Elects preferred leaders where others lead, of at most ``most`` partitions."""
    for key, partition in sorted(work.state.partitions.items()):
        if len(work.records) >= most:
            return
        if partition.leader not in (NO_LEADER, partition.replicas[0]):
            elect(work, key, KraftElection.PREFERRED)
