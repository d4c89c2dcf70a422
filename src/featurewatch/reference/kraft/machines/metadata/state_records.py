"""The state as records, each of the newest version (``MetadataImage.write``); `levels` lowers them.

The order is Kafka's: the level of metadata.version first, because it says how to read what
follows; then the other levels, nodes, topics, settings, quotas, producer ids, ACLs, credentials and
tokens. What Kafka takes from maps is sorted here by key.
"""

from collections.abc import Iterator
from typing import Final

from featurewatch.reference.kraft.machines.metadata.levels import (
    FEATURE_LEVEL,
    MIGRATION_STATE,
    level_rules,
)
from featurewatch.reference.kraft.machines.metadata.records import Record, record, record_bytes
from featurewatch.reference.kraft.machines.metadata.state import (
    Broker,
    Controller,
    Feature,
    Listener,
    MetadataState,
    Partition,
    PartitionKey,
)
from featurewatch.streams.types import METADATA_VERSION

_REGISTER_BROKER: Final = 4
_PARTITION: Final = 2
"""The newest versions of the records."""


def state_records(state: MetadataState) -> Iterator[Record]:
    """The records that make up a state, whatever its level can hold."""
    yield from _levels(state)
    for broker_id in sorted(state.brokers):
        yield broker_record(state.brokers[broker_id])
    for controller_id in sorted(state.controllers):
        yield controller_record(state.controllers[controller_id])
    for topic in sorted(state.topics.values()):
        yield record("TOPIC_RECORD", topicId=topic.id, name=topic.name)
        for key in state.keys_of(topic):
            yield partition_record(key, state.partitions[key])
    for resource in sorted(state.configs):
        for name, value in sorted(state.configs[resource].items()):
            yield config_record(*resource, name, value)
    yield from _others(state, "CLIENT_QUOTA_RECORD")
    if state.next_producer_id >= 0:
        yield record(
            "PRODUCER_IDS_RECORD",
            brokerId=-1,
            brokerEpoch=-1,
            nextProducerId=state.next_producer_id,
        )
    yield from _others(state, "ACCESS_CONTROL_RECORD")
    yield from _others(state, "ACCESS_CONTROL_ENTRY_RECORD")
    yield from _others(state, "USER_SCRAM_CREDENTIAL_RECORD")
    yield from _others(state, "DELEGATION_TOKEN_RECORD")


def _levels(state: MetadataState) -> Iterator[Record]:
    if state.level is not None:
        yield level_record(METADATA_VERSION, state.level)
    for name in sorted(state.levels):
        if name != METADATA_VERSION:
            yield level_record(name, state.levels[name])
    # Where the level has the record it is written, too, if there never was a migration.
    if state.migration or (state.level or 0) >= level_rules()[MIGRATION_STATE].since:
        yield record(MIGRATION_STATE, zkMigrationState=state.migration)


def _others(state: MetadataState, record_type: str) -> Iterator[Record]:
    found = [one for (name, _), one in state.others.items() if name == record_type]
    yield from sorted(found, key=record_bytes)


# -- single records --------------------------------------------------------------------------------


def level_record(feature: str, level: int) -> Record:
    """A FeatureLevelRecord."""
    return record(FEATURE_LEVEL, name=feature, featureLevel=level)


def config_record(resource_type: int, resource: str, name: str, value: str | None) -> Record:
    """A ConfigRecord; None deletes the setting."""
    return record(
        "CONFIG_RECORD", resourceType=resource_type, resourceName=resource, name=name, value=value
    )


def broker_record(broker: Broker) -> Record:
    """The RegisterBrokerRecord of a broker."""
    cordoned = broker.cordoned_log_dirs
    return record(
        "REGISTER_BROKER_RECORD",
        _REGISTER_BROKER,
        brokerId=broker.id,
        brokerEpoch=broker.epoch,
        incarnationId=broker.incarnation_id,
        endPoints=_endpoints(broker.listeners),
        features=_ranges(broker.features),
        rack=broker.rack,
        fenced=broker.fenced,
        inControlledShutdown=broker.in_controlled_shutdown,
        isMigratingZkBroker=broker.is_migrating,
        logDirs=[*broker.log_dirs],
        cordonedLogDirs=None if cordoned is None else [*cordoned],
    )


def controller_record(controller: Controller) -> Record:
    """The RegisterControllerRecord of a controller."""
    return record(
        "REGISTER_CONTROLLER_RECORD",
        controllerId=controller.id,
        incarnationId=controller.incarnation_id,
        zkMigrationReady=controller.zk_migration_ready,
        endPoints=_endpoints(controller.listeners),
        features=_ranges(controller.features),
    )


def partition_record(key: PartitionKey, partition: Partition) -> Record:
    """The PartitionRecord of a partition."""
    return record(
        "PARTITION_RECORD",
        _PARTITION,
        topicId=key[0],
        partitionId=key[1],
        replicas=[*partition.replicas],
        isr=[*partition.isr],
        removingReplicas=[*partition.removing],
        addingReplicas=[*partition.adding],
        leader=partition.leader,
        leaderRecoveryState=partition.recovery_state,
        leaderEpoch=partition.leader_epoch,
        partitionEpoch=partition.partition_epoch,
        directories=[*partition.directories],
        eligibleLeaderReplicas=[*partition.elr] or None,
        lastKnownElr=[*partition.last_known_elr] or None,
    )


def _endpoints(listeners: tuple[Listener, ...]) -> list[dict[str, object]]:
    return [
        {"name": name, "host": host, "port": port, "securityProtocol": protocol}
        for name, host, port, protocol in listeners
    ]


def _ranges(features: tuple[Feature, ...]) -> list[dict[str, object]]:
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, low, high in features
    ]
