"""Records have Kafka's bytes, and a snapshot has the whole state, in Kafka's order."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from featurewatch.reference.kraft.machines.batches import data_batch, read_batches
from featurewatch.reference.kraft.machines.controller.protocol import SnapshotLoaded
from featurewatch.reference.kraft.machines.metadata.records import (
    record,
    record_bytes,
    records_of,
)
from featurewatch.reference.kraft.machines.metadata.replay import apply_all
from featurewatch.reference.kraft.machines.metadata.snapshots import (
    at_level,
    load_snapshot,
    snapshot_bytes,
)
from featurewatch.reference.kraft.machines.metadata.state import EMPTY, MetadataState
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.records.schema import Field, RecordSchema, record_table
from featurewatch.streams.kraft.records.selection import ALL_RECORDS, REDACTED_RECORD_TYPES
from featurewatch.streams.types import OffsetAndEpoch
from tests.reference.kraft.machines.content import read_record
from tests.reference.kraft.machines.controller.driven import Driven, led, settings_of, uuid

SCHEMAS = [
    (schema, version)
    for schema in record_table().records.values()
    for version in range(schema.newest + 1)
]
_SAMPLES: dict[str, Any] = {
    "bool": True,
    "int8": 3,
    "int16": 300,
    "uint16": 60_000,
    "int32": 70_000,
    "int64": 1 << 40,
    "float64": 1.5,
    "uuid": uuid(7),
    "string": "text",
    "bytes": b"bytes",
}


def sample(fields: Sequence[Field], version: int) -> dict[str, Any]:
    """A value for each field that a version has, none of them its default."""
    return {field.name: _value(field, version) for field in fields if field.since <= version}


def _value(field: Field, version: int) -> Any:
    kind = field.kind.removeprefix("[]")
    one = sample(field.fields, version) if kind == "struct" else _SAMPLES[kind]
    return [one, one] if field.kind.startswith("[]") else one


@pytest.mark.parametrize(
    ("schema", "version"), SCHEMAS, ids=lambda it: it if isinstance(it, int) else it.type
)
def test_records(schema: RecordSchema, version: int) -> None:
    """The product's decoder reads what is written here, and so does this one."""
    data = sample(schema.fields, version)
    made = record(schema.type, version, **data)
    batch = data_batch(5, 1, 0, [record_bytes(made)])
    ((offset, read),) = records_of(batch)
    assert (offset, read.type, read.version, record_bytes(read)) == (
        5,
        *made[:2],
        record_bytes(made),
    )
    (scanned,) = scan_batches(batch.data).batches
    (found,) = RecordDecoder(ALL_RECORDS).decode(scanned).records
    shown = REDACTED_RECORD_TYPES.get(schema.type, tuple(data))
    assert found["data"] == {name: data[name] for name in shown if name in data}
    assert {name: read.data[name] for name in found["data"]} == found["data"]


@pytest.mark.parametrize(
    ("schema", "version"), SCHEMAS, ids=lambda it: it if isinstance(it, int) else it.type
)
def test_records_at_their_defaults(schema: RecordSchema, version: int) -> None:
    """Fields that are not given have their default, which is read again."""
    made = record(schema.type, version)
    assert record_bytes(read_record(record_bytes(made))) == record_bytes(made)
    assert not any(field.tagged and field.name in made.data for field in schema.fields)


def test_a_field_that_a_version_lacks() -> None:
    """It is not left out in silence."""
    with pytest.raises(ValueError, match="version 0 of PARTITION_RECORD has no field directories"):
        record("PARTITION_RECORD", 0, directories=[uuid(1)])
    record("PARTITION_RECORD", 0, directories=[])


# -- snapshots -------------------------------------------------------------------------------------

EXTRA = [
    record("CLIENT_QUOTA_RECORD", entity=[{"entityType": "user", "entityName": None}], key="k"),
    record("ACCESS_CONTROL_ENTRY_RECORD", id=uuid(5), principal="User:a"),
    record("USER_SCRAM_CREDENTIAL_RECORD", name="a", mechanism=1, salt=b"s", iterations=4096),
    record("DELEGATION_TOKEN_RECORD", tokenId="t", owner="User:a"),
    record("CONFIG_RECORD", resourceType=2, resourceName="a", name="x", value="1"),
    record("PRODUCER_IDS_RECORD", brokerId=1, brokerEpoch=5, nextProducerId=7_000),
]


def written(state: MetadataState, voters: VoterSet | None = None) -> bytes:
    """The snapshot of a state."""
    return snapshot_bytes(at_level(state).records, 1, 5, voters)


def full(**settings: Any) -> Driven:
    """A cluster in which there is something of everything."""
    driven = led(**settings)
    driven.start(1, 2, 3)
    driven.heartbeat(3, fence=True)
    driven.create("a", (1, 2), (2, 1))
    driven.create("b", (3, 1), (1, 3))
    driven.add(*EXTRA)
    return driven


def without_offsets(state: MetadataState) -> MetadataState:
    """A state without where brokers registered, which a snapshot does not have."""
    brokers = state.brokers
    for broker_id, broker in state.brokers.items():
        brokers = brokers.set(broker_id, broker._replace(offset=0))
    return state._replace(brokers=brokers)


@pytest.mark.parametrize("level", range(7, 31))
def test_a_snapshot_is_the_state(level: int) -> None:
    """Whatever was known before, a controller that loads it has the state that was written."""
    driven = full(level=level)
    state = driven.controller.committed
    at = OffsetAndEpoch(state.offset, 1)
    data = written(state)
    assert without_offsets(load_snapshot(at, data)) == without_offsets(_without(state, level))
    other = full(level=level)
    other.receive(SnapshotLoaded(at, data))
    assert other.controller.committed == load_snapshot(at, data)
    assert all(one.offset == at.offset - 1 for one in other.controller.committed.brokers.values())


def _without(state: MetadataState, level: int) -> MetadataState:
    """The state without what its level does not know, which no controller of it writes."""
    for kind, first in (("USER_SCRAM_CREDENTIAL_RECORD", 11), ("DELEGATION_TOKEN_RECORD", 14)):
        for key in [*state.others]:
            if key[0] == kind and level < first:
                state = state._replace(others=state.others.delete(key))
    return state


def test_the_order_of_a_snapshot() -> None:
    """The level comes first; the rest is in the order of Kafka's image."""
    driven = full(level=30)
    batches = read_batches(written(driven.controller.committed))
    assert (batches[0].is_control, batches[-1].is_control) == (True, True)
    found = [one for batch in batches[1:-1] for _, one in records_of(batch)]
    assert [one.type for one in found] == [
        "FEATURE_LEVEL_RECORD",
        "ZK_MIGRATION_STATE_RECORD",
        *["REGISTER_BROKER_RECORD"] * 3,
        "REGISTER_CONTROLLER_RECORD",
        *["TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_RECORD"] * 2,
        "CONFIG_RECORD",
        "CLIENT_QUOTA_RECORD",
        "PRODUCER_IDS_RECORD",
        "ACCESS_CONTROL_ENTRY_RECORD",
        "USER_SCRAM_CREDENTIAL_RECORD",
        "DELEGATION_TOKEN_RECORD",
    ]
    assert found[0].data["name"] == "metadata.version"
    assert [batch.base for batch in batches] == [0, 1, 1 + len(found)]


def test_voters_in_a_snapshot() -> None:
    """They are in it from kraft.version 1 on (KIP-853)."""
    voters = VoterSet.of([VoterNode(ReplicaKey(1, UUID(int=5)), (Endpoint("C", "localhost", 9),))])
    driven = Driven()
    driven.receive(SnapshotLoaded(OffsetAndEpoch(9, 1), written(EMPTY, voters)))
    assert driven.controller._committed.kraft_version == 1
    assert driven.controller._committed._voters == voters


def test_large_snapshots() -> None:
    """They are split into batches of a thousand records."""
    state = apply_all(
        EMPTY,
        enumerate(record("TOPIC_RECORD", name=f"t{at}", topicId=uuid(at)) for at in range(2_500)),
    )
    at = OffsetAndEpoch(state.offset, 1)
    data = written(state)
    assert len(read_batches(data)) == 5
    assert load_snapshot(at, data) == state


def test_when_snapshots_are_taken() -> None:
    """After `snapshot_bytes` of the log; the log is cut off after `retained_bytes`."""
    driven = led(snapshot_bytes=2_000, retained_bytes=5_500)
    for number in range(80):
        one = {"resourceType": 4, "resourceName": "1", "name": "x", "value": f"{number:02}"}
        driven.add(record("CONFIG_RECORD", **one))
    assert [one.trims for one in driven.snapshots] == [False, False, True]
    offsets = [one.snapshot.offset for one in driven.snapshots]
    assert offsets == sorted(offsets)


def test_no_snapshot_in_a_transaction() -> None:
    """What a transaction holds is not committed before it ends (KIP-868)."""
    driven = Driven(settings_of(snapshot_bytes=1))
    topic = record("TOPIC_RECORD", name="a", topicId=uuid(1))
    driven.add(record("BEGIN_TRANSACTION_RECORD"), topic)
    assert not driven.snapshots
    assert not driven.controller.committed.topics
    driven.add(record("END_TRANSACTION_RECORD"))
    assert [*driven.controller.committed.topics] == [uuid(1)]
    assert len(driven.snapshots) == 1


def test_removed_records() -> None:
    """Credentials, tokens, quotas and ACLs that were removed are in no snapshot."""
    removals = [
        record(
            "CLIENT_QUOTA_RECORD",
            entity=[{"entityType": "user", "entityName": None}],
            key="k",
            remove=True,
        ),
        record("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", id=uuid(5)),
        record("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", name="a", mechanism=1),
        record("REMOVE_DELEGATION_TOKEN_RECORD", tokenId="t"),
    ]
    records = [*EXTRA[:4], *removals, *removals]
    state = apply_all(EMPTY, enumerate(records))
    assert not state.others
    assert at_level(state).records == ()


def test_a_damaged_snapshot() -> None:
    """It is not loaded; the controller does not lead over a state that it lacks."""
    before = led().controller.committed
    unknown = data_batch(0, 1, 0, [b"\x01\x7f\x00\x00"]).data
    for data in (
        b"nonsense" * 20,
        written(before)[:-5],
        unknown,
    ):
        driven = led()
        before = driven.controller.committed
        driven.receive(SnapshotLoaded(OffsetAndEpoch(99, 1), data))
        assert driven.controller.committed == before
        assert not driven.controller.is_active
