"""Reads the brokers, topics and partitions of a cluster in ZooKeeper mode, once."""

import asyncio

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.config.source_settings import zookeeper_settings
from featurewatch.cli.runtime.cluster_image import ClusterNotReadError
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.kraft_election import NO_LEADER, KraftPartition
from featurewatch.controller.rehearsal.partition_steps import MAX_PARTITIONS
from featurewatch.controller.rehearsal.partitions.metadata_log import topic_settings
from featurewatch.controller.rehearsal.partitions.state import (
    DefaultSettings,
    RehearsedBroker,
    RehearsedPartitions,
)
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    decode_state,
    decode_topic,
    decode_topic_config,
    state_path,
    topic_config_path,
    topic_path,
)
from featurewatch.streams.znodes import BrokerZnode
from featurewatch.streams.zookeeper import paths
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from featurewatch.streams.zookeeper.one_time_reader import OneTimeReader, ZnodesNotReadError
from featurewatch.streams.zookeeper.watcher.requests import ReadData

_CLUSTER_CONFIG = "/config/brokers/<default>"


def read_znodes(
    cluster: ClusterSection, default_min_isr: int | None
) -> tuple[RehearsedPartitions, int]:
    """The brokers and partitions, and the number of znodes that could not be decoded.

    Topics that are being deleted are left out.

    Raises:
        ClusterNotReadError: The ensemble does not answer, or not all.
    """
    try:
        return asyncio.run(_read(cluster, default_min_isr))
    except ZnodesNotReadError as error:
        raise ClusterNotReadError(f"{cluster.zookeeper} was not read: {error}") from None


async def _read(
    cluster: ClusterSection, default_min_isr: int | None
) -> tuple[RehearsedPartitions, int]:
    async with OneTimeReader(zookeeper_settings(cluster)) as reader:
        await reader.sync()  # a server may lag behind its leader
        broker_ids = await reader.children(paths.BROKER_IDS)
        brokers = await reader.data(f"{paths.BROKER_IDS}/{name}" for name in broker_ids)
        names = {*await reader.children(paths.TOPICS)}
        names -= {*await reader.children(paths.DELETE_TOPICS)}
        topics = await reader.data(map(topic_path, sorted(names)))
        decoder = _Decoder()
        assignments = decoder.assignments(topics)
        if len(assignments) > MAX_PARTITIONS:
            raise ZnodesNotReadError(
                f"it has {len(assignments):,} partitions, and at most {MAX_PARTITIONS:,} are read"
            )
        states = await reader.data(map(state_path, assignments))
        configs = await reader.data([*map(topic_config_path, sorted(names)), _CLUSTER_CONFIG])
    settings = {
        name: topic_settings(values)
        for name in sorted(names)
        if (values := decoder.config(configs.get(topic_config_path(name))))
    }
    defaults = topic_settings(decoder.config(configs.get(_CLUSTER_CONFIG)))
    min_isr = defaults.min_isr if default_min_isr is None else default_min_isr
    partitions = RehearsedPartitions(
        None,
        decoder.brokers(brokers),
        {
            partition: decoder.partition(partition, assignment, states.get(state_path(partition)))
            for partition, assignment in assignments.items()
        },
        settings,
        DefaultSettings(1 if min_isr is None else min_isr, bool(defaults.is_unclean_allowed)),
    )
    return partitions, decoder.unreadable


class _Decoder:
    """Decodes znodes; ``unreadable`` counts those that are left out."""

    def __init__(self) -> None:
        self.unreadable = 0

    def brokers(self, znodes: dict[str, ReadData]) -> dict[int, RehearsedBroker]:
        """The live brokers by id."""
        brokers = {}
        for path, read in znodes.items():
            content = decode_znode(path, read.data).content
            if isinstance(content, BrokerZnode):
                brokers[int(content.node_id)] = RehearsedBroker(content.rack)
            else:
                self.unreadable += 1
        return brokers

    def assignments(self, znodes: dict[str, ReadData]) -> dict[TopicPartition, ReplicaAssignment]:
        """The replicas of every partition, in order."""
        assignments = {}
        for path, read in znodes.items():
            topic = path.rpartition("/")[2]
            try:
                content = decode_topic(read.data)
            except ZnodeDecodeError:
                self.unreadable += 1
                continue
            for number, assignment in content.assignments.items():
                assignments[TopicPartition(topic, number)] = assignment
        return dict(sorted(assignments.items()))

    def partition(
        self, partition: TopicPartition, assignment: ReplicaAssignment, read: ReadData | None
    ) -> KraftPartition:
        """A partition; without a state no leader was elected yet."""
        lists = (assignment.replicas, assignment.adding, assignment.removing)
        replicas, adding, removing = lists
        isr: tuple[int, ...] = ()
        leader, is_recovering = NO_LEADER, False
        if read is not None:
            try:
                state = decode_state(partition, read.data, read.stat.version)
            except ZnodeDecodeError:
                self.unreadable += 1
            else:
                isr, leader, is_recovering = state.isr, state.leader, state.recovering
        return KraftPartition(replicas, isr, leader, adding, removing, is_recovering)

    def config(self, read: ReadData | None) -> dict[str, str]:
        """A configuration; empty if the znode is missing."""
        if read is None:
            return {}
        try:
            return dict(decode_topic_config(read.data))
        except ZnodeDecodeError:
            self.unreadable += 1
            return {}
