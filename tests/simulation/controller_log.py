"""A controller that does by chance what KRaft controllers do, and writes the log of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from featurewatch.controller.kraft.releases import releases
from featurewatch.controller.partitions.kraft_election import (
    KraftElection,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
    PartitionTarget,
    change_partition,
)
from featurewatch.controller.partitions.kraft_invariants import apply_change
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.streams.events import CommitKind, LogCommit, RecordJson, SnapshotChunk
from tests.simulation.records import CLUSTER, MV, record, register, register_controller

BROKERS = range(1, 7)
LIMITS = Limits(operations=True, below_min_isr_ms=20_000, not_preferred_ms=60_000)
"""Of a worker that follows operations: what lasts is an alert within a simulated minute."""

START_MS = 1_700_000_000_000
STEP_MS = 1000

_FIELDS = {
    "isr": "isr",
    "replicas": "replicas",
    "adding": "addingReplicas",
    "removing": "removingReplicas",
    "elr": "eligibleLeaderReplicas",
    "last_known_elr": "lastKnownElr",
}


@dataclass
class Topic:
    """A topic of the controller's: its name and its partitions, by number."""

    name: str
    partitions: dict[int, KraftPartition] = field(default_factory=dict)


class ControllerLog:
    """A controller of one release; each operation is one commit of its log."""

    def __init__(self, seed: int, release: str = "") -> None:
        self.chance = Random(seed)
        self.release = release or self.chance.choice(["3.3", "3.9", "4.0", "4.1", "4.3"])
        major, minor = self.release.split(".")
        number = (int(major), int(minor))
        self.elr = number >= (4, 1) and self.chance.random() < 0.5
        self.rules = KraftElectionRules(number, elr=self.elr)
        self.topics: dict[str, Topic] = {}
        self.usable = {*BROKERS}
        self.epochs = dict.fromkeys(BROKERS, 1)
        self.down: set[int] = set()
        """Brokers in a controlled shutdown, which only a new process ends."""
        self.offset = 0
        self.now_ms = START_MS
        self.created = 0
        self.min_isrs: dict[tuple[int, str], int] = {}
        """The settings, by type and name of the resource (``ConfigResource``)."""

    def start(self) -> LogCommit:
        """The first commit: controllers, brokers and levels."""
        ranges = releases()[self.release].ranges()
        records = [
            record("LEADER_CHANGE", {"leaderId": 9, "voters": [{"voterId": 9}]}),
            record(
                "FEATURE_LEVEL_RECORD",
                {"name": "metadata.version", "featureLevel": ranges[MV].maximum},
            ),
            register_controller(9, ranges),
        ]
        if self.elr:
            data = {"name": "eligible.leader.replicas.version", "featureLevel": 1}
            records.append(record("FEATURE_LEVEL_RECORD", data))
        records += [register(broker_id, ranges, fenced=False) for broker_id in BROKERS]
        return self.commit(records)

    def step(self) -> LogCommit | None:
        """One operation; None: there was nothing to do."""
        operations = [
            self.create_topic,
            self.add_partitions,
            self.fence,
            self.unfence,
            self.shut_down,
            self.alter_isr,
            self.alter_isr,
            self.reassign,
            self.elect,
            self.set_min_isr,
        ]
        if self.chance.random() < 0.03:
            operations = [self.delete_topic]
        records = self.chance.choice(operations)()
        return self.commit(records) if records else None

    def commit(self, records: list[RecordJson]) -> LogCommit:
        """The commit of records, at the next offsets."""
        first = self.offset
        numbered = [{**it, "offset": first + number} for number, it in enumerate(records)]
        self.offset += len(numbered)
        self.now_ms += STEP_MS
        return LogCommit(
            cluster=CLUSTER,
            kind=CommitKind.BATCH,
            first_offset=first,
            last_offset=self.offset - 1,
            leader_epoch=1,
            append_ms=self.now_ms,
            records=numbered,
            skipped={},
            seen_ms=self.now_ms,
        )

    def create_topic(self) -> list[RecordJson]:
        """A topic with some partitions."""
        if not self.usable:
            return []
        self.created += 1
        topic_id = f"topic-id-of-{self.created:010d}"
        topic = self.topics[topic_id] = Topic(f"orders-{self.created}")
        records = [record("TOPIC_RECORD", {"topicId": topic_id, "name": topic.name})]
        return records + self._new_partitions(topic_id, self.chance.randint(1, 20))

    def add_partitions(self) -> list[RecordJson]:
        """More partitions of a topic."""
        topic_id = self._any_topic()
        return self._new_partitions(topic_id, self.chance.randint(1, 5)) if topic_id else []

    def delete_topic(self) -> list[RecordJson]:
        """A topic goes."""
        topic_id = self._any_topic()
        if not topic_id:
            return []
        self.min_isrs.pop((2, self.topics.pop(topic_id).name), None)
        return [record("REMOVE_TOPIC_RECORD", {"topicId": topic_id})]

    def fence(self) -> list[RecordJson]:
        """A broker fails: its partitions change, then its registration."""
        broker_id = self.chance.choice(BROKERS)
        if broker_id not in self.usable:
            return []
        self.usable.discard(broker_id)
        return [*self._leave(broker_id), self._registration(broker_id, fenced=1)]

    def shut_down(self) -> list[RecordJson]:
        """A broker shuts down: its registration changes, then its partitions; then it is fenced."""
        broker_id = self.chance.choice(BROKERS)
        if broker_id not in self.usable:
            return []
        self.usable.discard(broker_id)
        self.down.add(broker_id)
        begin = self._registration(broker_id, inControlledShutdown=1)
        return [begin, *self._leave(broker_id), self._registration(broker_id, fenced=1)]

    def unfence(self) -> list[RecordJson]:
        """A broker starts: another process of it, if it was shut down."""
        broker_id = self.chance.choice(BROKERS)
        if broker_id in self.usable:
            return []
        records = []
        if broker_id in self.down:
            self.down.discard(broker_id)
            self.epochs[broker_id] += 1
            ranges, epoch = releases()[self.release].ranges(), self.epochs[broker_id]
            records.append(register(broker_id, ranges, fenced=True, epoch=epoch))
        records.append(self._registration(broker_id, fenced=-1))
        self.usable.add(broker_id)
        for topic_id, topic in self.topics.items():
            for index, partition in topic.partitions.items():
                if partition.leader < 0:
                    records += self._change(topic_id, index)
        return records

    def alter_isr(self) -> list[RecordJson]:
        """Followers fall behind and catch up."""
        records = []
        for topic_id, topic in self.topics.items():
            for index, partition in topic.partitions.items():
                if self.chance.random() < 0.3 and partition.leader in self.usable:
                    isr = [partition.leader]
                    for broker_id in partition.replicas:
                        is_follower = broker_id != partition.leader and broker_id in self.usable
                        if is_follower and self.chance.random() < 0.8:
                            isr.append(broker_id)
                    if partition.recovering:
                        target: dict[str, Any] = {"recovering": False}
                    else:
                        target = {"isr": tuple(isr)}
                    records += self._change(topic_id, index, **target)
        return records

    def reassign(self) -> list[RecordJson]:
        """A new target of a partition; as in Kafka, sets that would be empty stay as they are."""
        topic_id = self._any_topic()
        if not topic_id:
            return []
        index = self.chance.choice([*self.topics[topic_id].partitions])
        current = self.topics[topic_id].partitions[index].replicas
        wanted = tuple(self.chance.sample(BROKERS, self.chance.randint(1, 3)))
        removing = tuple(sorted({*current} - {*wanted}))
        adding = tuple(sorted({*wanted} - {*current}))
        return self._change(
            topic_id,
            index,
            replicas=(*wanted, *removing),
            removing=removing or None,
            adding=adding or None,
        )

    def elect(self) -> list[RecordJson]:
        """Preferred or unclean elections of all partitions."""
        election = self.chance.choice([KraftElection.PREFERRED, KraftElection.UNCLEAN])
        return [
            it
            for topic_id, topic in self.topics.items()
            for index in topic.partitions
            for it in self._change(topic_id, index, election=election)
        ]

    def set_min_isr(self) -> list[RecordJson]:
        """A topic, a broker or the cluster gets another minimum of the ISR, or loses it."""
        topics = [(2, topic.name) for topic in self.topics.values()]
        resource = self.chance.choice([*topics, (4, str(self.chance.choice(BROKERS))), (4, "")])
        value = self.chance.choice([None, 1, 2, 3, 4])
        if value is None:
            self.min_isrs.pop(resource, None)
        else:
            self.min_isrs[resource] = value
        return [_setting(resource, value)]

    def is_below_min_isr(self, topic_id: str, partition: KraftPartition) -> bool:
        """Whether a partition has fewer ISR members than it must, or eligible leaders beside."""
        name = self.topics[topic_id].name
        resources = ((2, name), (4, str(partition.leader)), (4, ""))
        minimum = next((self.min_isrs[it] for it in resources if it in self.min_isrs), 1)
        is_few = len(partition.isr) < min(minimum, len(partition.replicas))
        return is_few or bool(partition.elr)

    def snapshot(self, chunks: int = 3) -> list[SnapshotChunk]:
        """A snapshot of everything so far."""
        ranges = releases()[self.release].ranges()
        records = [
            record(
                "FEATURE_LEVEL_RECORD",
                {"name": "metadata.version", "featureLevel": ranges[MV].maximum},
            ),
            register_controller(9, ranges),
        ]
        for broker_id in BROKERS:
            epoch, is_fenced = self.epochs[broker_id], broker_id not in self.usable
            it = register(broker_id, ranges, fenced=is_fenced, epoch=epoch)
            it["data"]["inControlledShutdown"] = broker_id in self.down
            records.append(it)
        if self.elr:
            data = {"name": "eligible.leader.replicas.version", "featureLevel": 1}
            records.append(record("FEATURE_LEVEL_RECORD", data))
        for topic_id, topic in self.topics.items():
            records.append(record("TOPIC_RECORD", {"topicId": topic_id, "name": topic.name}))
            records += [
                _partition_record(topic_id, index, partition, epoch=7)
                for index, partition in topic.partitions.items()
            ]
        records += [_setting(resource, value) for resource, value in self.min_isrs.items()]
        size = len(records) // chunks + 1
        parts = [records[first : first + size] for first in range(0, len(records), size)]
        return [
            SnapshotChunk(
                cluster=CLUSTER,
                end_offset=self.offset,
                leader_epoch=1,
                index=number,
                last=number == len(parts) - 1,
                append_ms=self.now_ms,
                records=[{**it, "offset": number} for number, it in enumerate(part)],
                skipped={},
                seen_ms=self.now_ms,
            )
            for number, part in enumerate(parts)
        ]

    def _any_topic(self) -> str:
        return self.chance.choice([*self.topics]) if self.topics else ""

    def _new_partitions(self, topic_id: str, count: int) -> list[RecordJson]:
        topic, records = self.topics[topic_id], []
        usable = sorted(self.usable)
        for index in range(len(topic.partitions), len(topic.partitions) + count):
            if not usable:
                break
            replicas = tuple(self.chance.sample(usable, min(3, len(usable))))
            partition = topic.partitions[index] = KraftPartition(replicas, replicas, replicas[0])
            records.append(_partition_record(topic_id, index, partition, epoch=0))
        return records

    def _leave(self, broker_id: int) -> list[RecordJson]:
        records = []
        for topic_id, topic in self.topics.items():
            for index, partition in topic.partitions.items():
                if broker_id in partition.isr:
                    isr = tuple(member for member in partition.isr if member != broker_id)
                    records += self._change(topic_id, index, isr=isr)
        return records

    def _change(self, topic_id: str, index: int, **target: Any) -> list[RecordJson]:
        before = self.topics[topic_id].partitions[index]
        min_isr = min(2, len(before.replicas))
        wanted = PartitionTarget(frozenset(self.usable), min_isr, **target)
        change = change_partition(self.rules, before, wanted)
        if change.is_empty:
            return []
        self.topics[topic_id].partitions[index] = apply_change(before, change)
        return [change_record(topic_id, index, change)]

    def _registration(self, broker_id: int, **change: int) -> RecordJson:
        data = {"brokerId": broker_id, "brokerEpoch": self.epochs[broker_id], **change}
        return record("BROKER_REGISTRATION_CHANGE_RECORD", data)


def change_record(topic_id: str, index: int, change: PartitionChange) -> RecordJson:
    """A PartitionChangeRecord; fields that are not written are left out."""
    data: dict[str, Any] = {"topicId": topic_id, "partitionId": index}
    for name, written in _FIELDS.items():
        value = getattr(change, name)
        if value is not None:
            data[written] = list(value)
    if change.leader is not None:
        data["leader"] = change.leader
    if change.recovering is not None:
        data["leaderRecoveryState"] = int(change.recovering)
    return record("PARTITION_CHANGE_RECORD", data)


def _setting(resource: tuple[int, str], value: int | None) -> RecordJson:
    """The record of a resource's minimum ISR."""
    kind, name = resource
    setting = {"resourceType": kind, "resourceName": name, "name": "min.insync.replicas"}
    return record("CONFIG_RECORD", {**setting, "value": None if value is None else str(value)})


def _partition_record(
    topic_id: str, index: int, partition: KraftPartition, *, epoch: int
) -> RecordJson:
    data: Mapping[str, Any] = {
        "topicId": topic_id,
        "partitionId": index,
        "leader": partition.leader,
        "leaderEpoch": epoch,
        "partitionEpoch": epoch,
        "leaderRecoveryState": int(partition.recovering),
        **{written: list(getattr(partition, name)) for name, written in _FIELDS.items()},
    }
    return record("PARTITION_RECORD", data)


def at_offset(commit: LogCommit, *records: RecordJson) -> LogCommit:
    """The commit with other records."""
    return replace(commit, records=records)
