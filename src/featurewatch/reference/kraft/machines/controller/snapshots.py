"""The state as records, and snapshots made of them (``MetadataImage.write``, KIP-630).

The order is Kafka's: the level of metadata.version first, because it says how to read what
follows; then the other levels, nodes, topics, settings, quotas, producer ids, ACLs, credentials and
tokens. What Kafka takes from maps is sorted here by key. A state is written at the level that it
has: fields and types of records that the level does not know are left out (KIP-778, lossy
downgrades).
"""

from collections.abc import Iterator
from typing import Final

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    ControlRecord,
    control_batch,
    data_batch,
    read_batches,
)
from featurewatch.reference.kraft.machines.controller.gates import Gates, gates_of
from featurewatch.reference.kraft.machines.controller.records import Record, record, records_of
from featurewatch.reference.kraft.machines.controller.replay import apply, apply_all
from featurewatch.reference.kraft.machines.controller.requests import Feature, Listener
from featurewatch.reference.kraft.machines.controller.settings import ControllerSettings, Form
from featurewatch.reference.kraft.machines.controller.state import (
    EMPTY,
    Broker,
    Controller,
    MetadataState,
    Partition,
    PartitionKey,
)
from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.streams.types import METADATA_VERSION, OffsetAndEpoch

_BATCH_RECORDS: Final = 1024
"""Records in a batch of a snapshot (``RecordsSnapshotWriter``)."""


def load_snapshot(snapshot: OffsetAndEpoch, data: bytes) -> MetadataState:
    """The state that a snapshot has.

    Raises:
        InvalidBatchesError: It is not made of valid batches.
        UnreadableRecordError: A record is not known, or does not fit.
    """
    last = snapshot.offset - 1
    state = EMPTY
    for batch in read_batches(data):
        if not batch.is_control:
            state = apply_all(state, ((last, found) for _, found in records_of(batch)))
    return state._replace(offset=snapshot.offset)


def write_snapshot(
    snapshot: OffsetAndEpoch,
    state: MetadataState,
    release: str,
    append_ms: int,
    voters: VoterSet | None = None,
) -> bytes:
    """The snapshot of a state; ``append_ms`` is the time of the last record in it.

    ``voters`` are written with kraft.version 1, None where it is 0 (KIP-853).
    """
    header: ControlRecord = (
        SNAPSHOT_HEADER,
        {"version": 0, "lastContainedLogTimestamp": append_ms},
    )
    controls = [header]
    if voters is not None:
        controls.append((KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}))
        controls.append((KRAFT_VOTERS, voters.to_record()))
    batches = [control_batch(0, snapshot.epoch, append_ms, controls)]
    values = [one.value for one in state_records(state, release)]
    for at in range(0, len(values), _BATCH_RECORDS):
        part = values[at : at + _BATCH_RECORDS]
        batches.append(data_batch(batches[-1].last + 1, snapshot.epoch, append_ms, part))
    footer: ControlRecord = (SNAPSHOT_FOOTER, {"version": 0})
    batches.append(control_batch(batches[-1].last + 1, snapshot.epoch, append_ms, [footer]))
    return b"".join(batch.data for batch in batches)


def rewritten(state: MetadataState, release: str) -> MetadataState:
    """The state that its own records at its level lead to: what the level cannot say is left out.

    Where brokers registered stays as it was, because they still have to catch up to that.
    """
    records = state_records(state, release)
    found = apply_all(EMPTY, ((state.offset - 1, one) for one in records))
    brokers = found.brokers
    for broker_id, broker in brokers.items():
        offset = state.brokers[broker_id].offset
        found = found._replace(brokers=found.brokers.set(broker_id, broker._replace(offset=offset)))
    return found._replace(offset=state.offset)


def apply_in_form(
    state: MetadataState, offset: int, record: Record, settings: ControllerSettings
) -> MetadataState:
    """The state after a record; in the form of KIP-778 a change of the level rewrites it (KIP-778).

    Raises:
        UnreadableRecordError: It does not fit the state.
    """
    after = apply(state, offset, record)
    if settings.form is Form.KIP_778 and after.level != state.level and state.level is not None:
        return rewritten(after, settings.release)
    return after


def state_records(state: MetadataState, release: str) -> Iterator[Record]:
    """The records that make up a state, at its level."""
    gates = gates_of(release, state.level or 0)
    yield from _levels(state, gates)
    for broker_id in sorted(state.brokers):
        yield broker_record(state.brokers[broker_id], gates)
    if gates.controllers:
        for controller_id in sorted(state.controllers):
            yield controller_record(state.controllers[controller_id])
    for topic in sorted(state.topics.values()):
        yield record("TOPIC_RECORD", topicId=topic.id, name=topic.name)
        for key in state.keys_of(topic):
            yield partition_record(key, state.partitions[key], gates)
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
    if gates.scram:
        yield from _others(state, "USER_SCRAM_CREDENTIAL_RECORD")
    if gates.tokens:
        yield from _others(state, "DELEGATION_TOKEN_RECORD")


def _levels(state: MetadataState, gates: Gates) -> Iterator[Record]:
    if state.level is not None:
        yield level_record(METADATA_VERSION, state.level)
    for name in sorted(state.levels):
        if name != METADATA_VERSION:
            yield level_record(name, state.levels[name])
    if gates.migration:
        yield record("ZK_MIGRATION_STATE_RECORD", zkMigrationState=state.migration)


def _others(state: MetadataState, record_type: str) -> Iterator[Record]:
    found = [one for (name, _), one in state.others.items() if name == record_type]
    yield from sorted(found, key=lambda one: one.value)


# -- single records --------------------------------------------------------------------------------


def level_record(feature: str, level: int) -> Record:
    """A FeatureLevelRecord."""
    return record("FEATURE_LEVEL_RECORD", name=feature, featureLevel=level)


def config_record(resource_type: int, resource: str, name: str, value: str | None) -> Record:
    """A ConfigRecord; None deletes the setting."""
    return record(
        "CONFIG_RECORD", resourceType=resource_type, resourceName=resource, name=name, value=value
    )


def broker_record(broker: Broker, gates: Gates) -> Record:
    """The RegisterBrokerRecord of a broker; what the level cannot say is left out."""
    data = {
        "brokerId": broker.id,
        "brokerEpoch": broker.epoch,
        "incarnationId": broker.incarnation_id,
        "endPoints": _endpoints(broker.listeners),
        "features": _ranges(broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
    }
    if gates.controlled_shutdown:
        data["inControlledShutdown"] = broker.in_controlled_shutdown
    if gates.migration:
        data["isMigratingZkBroker"] = broker.is_migrating
    if gates.directories:
        data["logDirs"] = [*broker.log_dirs]
    if gates.cordons and broker.cordoned_log_dirs is not None:
        data["cordonedLogDirs"] = [*broker.cordoned_log_dirs]
    return record("REGISTER_BROKER_RECORD", gates.register_broker, **data)


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


def partition_record(key: PartitionKey, partition: Partition, gates: Gates) -> Record:
    """The PartitionRecord of a partition; what the level cannot say is left out."""
    data = {
        "topicId": key[0],
        "partitionId": key[1],
        "replicas": [*partition.replicas],
        "isr": [*partition.isr],
        "removingReplicas": [*partition.removing],
        "addingReplicas": [*partition.adding],
        "leader": partition.leader,
        "leaderRecoveryState": partition.recovery_state,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
    }
    if gates.directories:
        data["directories"] = [*partition.directories]
    if gates.elr and partition.elr:
        data["eligibleLeaderReplicas"] = [*partition.elr]
    if gates.elr and partition.last_known_elr:
        data["lastKnownElr"] = [*partition.last_known_elr]
    return record("PARTITION_RECORD", gates.partition, **data)


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
