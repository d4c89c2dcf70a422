"""Metadata records as bytes, the state that is left of them, and snapshots of it."""

import io
from base64 import urlsafe_b64encode
from random import Random
from typing import Any

import pytest

from featurewatch.reference.kraft.machines.batches import control_batch, data_batch
from featurewatch.reference.kraft.machines.metadata.records import (
    Record,
    read_batch,
    record_bytes,
    records_of,
)
from featurewatch.reference.kraft.machines.metadata.replay import apply, apply_all
from featurewatch.reference.kraft.machines.metadata.snapshots import (
    BATCH_RECORDS,
    at_level,
    read_snapshot,
    rewritten,
    snapshot_bytes,
)
from featurewatch.reference.kraft.machines.metadata.state import EMPTY, MisfitRecordError
from featurewatch.streams.events import SnapshotChunk
from featurewatch.streams.kraft.errors import (
    CorruptSnapshotError,
    RecordDecodeError,
    UnknownRecordError,
)
from featurewatch.streams.kraft.records.schema import Field, record_table
from featurewatch.streams.kraft.records.selection import REDACTED_RECORD_TYPES
from featurewatch.streams.kraft.snapshot import read_snapshot as product_snapshot
from featurewatch.streams.types import ClusterId
from tests.reference.kraft.machines.content import TOPIC, of_type, read_record

_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def _value(kind: str, fields: tuple[Field, ...], version: int, random: Random) -> Any:
    if kind.startswith("[]"):
        return [_value(kind[2:], fields, version, random) for _ in range(random.randrange(3))]
    if kind == "struct":
        return {
            field.name: _value(field.kind, field.fields, version, random)
            for field in fields
            if field.since <= version
        }
    if bits := _INTEGERS.get(kind):
        return random.randrange(-(1 << (bits - 1)), 1 << (bits - 1))
    match kind:
        case "bool":
            return random.random() < 0.5
        case "uuid":
            return urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
        case "bytes":
            return random.randbytes(random.randrange(200))
        case "float64":
            return random.random()
        case "uint16":
            return random.randrange(1 << 16)
        case _:
            return "é" * random.randrange(100)


def _record(key: int, version: int, random: Random) -> Record:
    schema = record_table().records[key]
    data = {
        field.name: None
        if field.nullable and random.random() < 0.3
        else _value(field.kind, field.fields, version, random)
        for field in schema.at(version)
        if not field.tagged or random.random() < 0.5
    }
    # A tagged field with its default is not written, nor is it there when it was read.
    defaults = {field.name: field.default for field in schema.fields if field.tagged}
    kept = {name: value for name, value in data.items() if defaults.get(name, data) != value}
    return Record(schema.type, version, kept)


@pytest.mark.parametrize("key", record_table().records)
def test_a_record_is_read_as_it_was_written(key: int) -> None:
    """Of each type and version, with random content; credentials, too."""
    random = Random(key)
    for version in range(record_table().records[key].newest + 1):
        for _ in range(20):
            record = _record(key, version, random)
            assert read_record(record_bytes(record)) == record


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", RecordDecodeError),
        (b"\x01", RecordDecodeError),
        (b"\x00\x0c\x00", RecordDecodeError),
        (b"\x01\x7f\x00\x00", UnknownRecordError),
        (b"\x01\x0c\x63\x00", UnknownRecordError),
        (record_bytes(of_type("FEATURE_LEVEL_RECORD", name="x", featureLevel=1))[:-1], ValueError),
        (
            record_bytes(of_type("FEATURE_LEVEL_RECORD", name="x", featureLevel=1)) + b"\0",
            ValueError,
        ),
        (b"\x01\x0b\x00" + b"\xff\xff\xff\xff\x0f", RecordDecodeError),
    ],
)
def test_bytes_that_are_not_a_record(value: bytes, error: type[ValueError]) -> None:
    """They are an error of one kind, and an unknown type or version another."""
    with pytest.raises(error):
        read_record(value)


def test_damaged_records_never_raise_anything_else() -> None:
    """Bytes of every type with one byte changed, or cut off."""
    random = Random(1)
    for key, schema in record_table().records.items():
        for _ in range(60):
            value = bytearray(record_bytes(_record(key, schema.newest, random)))
            value[random.randrange(len(value))] ^= 1 << random.randrange(8)
            try:
                read_record(bytes(value[: random.randrange(1, len(value) + 1)]))
            except RecordDecodeError as error:
                assert "\n" not in error.reason


def test_the_records_of_batches_have_their_offsets() -> None:
    """What cannot be read is an error in its place, or ends it where all are needed."""
    level = of_type("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=8)
    whole = data_batch(6, 1, 0, [record_bytes(level)] * 2)
    assert [*records_of(whole)] == [*read_batch(whole)] == [(6, level), (7, level)]
    damaged = data_batch(8, 1, 0, [record_bytes(level), b"\x01\x7f\x00\x00", record_bytes(level)])
    found = [*read_batch(damaged)]
    assert [offset for offset, _ in found] == [8, 9, 10]
    assert isinstance(found[1][1], UnknownRecordError)
    assert found[2] == (10, level)
    with pytest.raises(UnknownRecordError):
        [*records_of(damaged)]


def test_a_record_with_a_key() -> None:
    """No metadata record has one."""
    batch = control_batch(5, 1, 0, [(4, {"version": 0})])
    ((offset, found),) = read_batch(batch)
    assert (offset, str(found)) == (5, "it has a key, which no metadata record has")


def _topic(name: str = "a", topic_id: str = TOPIC) -> Record:
    return of_type("TOPIC_RECORD", name=name, topicId=topic_id)


def _partition(number: int = 0, **data: Any) -> Record:
    return of_type("PARTITION_RECORD", 2, partitionId=number, topicId=TOPIC, **data)


def _config(name: str, value: str | None, owner: str = "a") -> Record:
    return of_type("CONFIG_RECORD", resourceType=2, resourceName=owner, name=name, value=value)


@pytest.mark.parametrize("level", [9, 30])
def test_a_state_is_what_is_left_of_its_records(level: int) -> None:
    """Later records replace and remove earlier ones; the snapshot has the rest in Kafka's order."""
    scram = of_type("USER_SCRAM_CREDENTIAL_RECORD", name="u", mechanism=1, salt=b"1")
    entity = [{"entityType": "user", "entityName": None}, {"entityType": "ip", "entityName": "a"}]
    quota = of_type("CLIENT_QUOTA_RECORD", entity=entity)
    records = [
        of_type("ZK_MIGRATION_STATE_RECORD", zkMigrationState=0),
        scram,
        quota,
        Record(quota.type, 0, {**quota.data, "entity": [*reversed(entity)], "remove": True}),
        of_type("FEATURE_LEVEL_RECORD", name="group.version", featureLevel=1),
        of_type("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=8),
        of_type("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=level),
        of_type("NO_OP_RECORD"),
        of_type("REGISTER_BROKER_RECORD", brokerId=2, fenced=True),
        of_type("REGISTER_BROKER_RECORD", brokerId=10, fenced=True),
        of_type("REGISTER_BROKER_RECORD", brokerId=3),
        of_type("UNREGISTER_BROKER_RECORD", brokerId=3),
        of_type("UNFENCE_BROKER_RECORD", id=2),
        of_type(
            "BROKER_REGISTRATION_CHANGE_RECORD",
            3,
            brokerId=10,
            fenced=-1,
            inControlledShutdown=1,
        ),
        _topic(),
        _partition(replicas=[1, 2], isr=[1, 2], leader=1, eligibleLeaderReplicas=[2]),
        Record(
            "PARTITION_CHANGE_RECORD",
            2,
            {"partitionId": 0, "topicId": TOPIC, "isr": [2], "leader": 2},
        ),
        of_type("CLEAR_ELR_RECORD", topicName="a"),
        _topic("b", "b" * 22),
        _config("retention.ms", "1", "b"),
        _config("retention.ms", "1"),
        _config("cleanup.policy", "compact"),
        _config("cleanup.policy", None),
        of_type("REMOVE_TOPIC_RECORD", topicId="b" * 22),
        of_type("PRODUCER_IDS_RECORD", nextProducerId=1000),
        of_type("PRODUCER_IDS_RECORD", nextProducerId=2000),
    ]
    state = apply_all(EMPTY, enumerate(records))
    assert state.level == level
    found = at_level(state)
    assert [str(loss) for loss in found.losses] == (
        ["USER_SCRAM_CREDENTIAL_RECORD (1)"] if level < 11 else []
    )
    kinds = [record.type.removesuffix("_RECORD") for record in found.records]
    assert kinds == [
        *("FEATURE_LEVEL", "FEATURE_LEVEL", "ZK_MIGRATION_STATE", "REGISTER_BROKER"),
        *("REGISTER_BROKER", "TOPIC", "PARTITION", "CONFIG", "PRODUCER_IDS"),
        *(["USER_SCRAM_CREDENTIAL"] if level >= 11 else []),
    ]
    assert found.records[0].data["name"] == "metadata.version"
    assert not state.brokers[2].fenced
    changed = state.brokers[10]
    assert (changed.fenced, changed.in_controlled_shutdown) == (False, True)
    partition = state.partitions[TOPIC, 0]
    assert (partition.isr, partition.leader, partition.leader_epoch) == ((2,), 2, 1)
    assert (partition.elr, partition.partition_epoch) == ((), 2)
    assert rewritten(state, found.records) == (
        state if level >= 11 else state._replace(others=EMPTY.others)
    )


@pytest.mark.parametrize(
    "record",
    [
        _partition(),
        of_type("PARTITION_CHANGE_RECORD", partitionId=0, topicId=TOPIC),
        of_type("REMOVE_TOPIC_RECORD", topicId=TOPIC),
        of_type("UNFENCE_BROKER_RECORD", id=1),
        of_type("BROKER_REGISTRATION_CHANGE_RECORD", brokerId=1),
    ],
)
def test_a_record_that_does_not_fit(record: Record) -> None:
    """One about what does not exist is an error in one line."""
    with pytest.raises(MisfitRecordError, match=f"^{record.type} at offset 7 does not fit .*$"):
        apply(EMPTY, 7, record)


def test_a_snapshot_is_read_back_here_and_by_the_monitor() -> None:
    """Over more than one batch; the monitor decodes what it may."""
    records = [
        of_type("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=8),
        *(of_type("REGISTER_BROKER_RECORD", brokerId=number) for number in range(BATCH_RECORDS)),
        of_type("USER_SCRAM_CREDENTIAL_RECORD", name="u", mechanism=1, salt=b"1"),
    ]
    data = snapshot_bytes(records, 3, 1234)
    assert read_snapshot(data) == ((*records,), 1234)
    chunks = [
        *product_snapshot(
            io.BytesIO(data), ClusterId("c"), "00000000000000000007-0000000003.checkpoint", 0
        )
    ]
    assert all(isinstance(chunk, SnapshotChunk) for chunk in chunks)
    assert sum(len(chunk.records) for chunk in chunks if isinstance(chunk, SnapshotChunk)) == (
        BATCH_RECORDS + 1
    )
    assert "USER_SCRAM_CREDENTIAL_RECORD" in REDACTED_RECORD_TYPES
    assert read_snapshot(snapshot_bytes([], 0, 0)).records == ()


@pytest.mark.parametrize("damage", ["cut off", "no footer", "no header", "a byte", "empty", "late"])
def test_a_torn_snapshot_is_refused_as_a_whole(damage: str) -> None:
    """With one line that says what is wrong."""
    record = of_type("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=8)
    data = snapshot_bytes([record], 3, 1234)
    header, footer = snapshot_bytes([], 3, 1234), control_batch(2, 3, 0, [(4, {"version": 0})])
    first = len(control_batch(0, 3, 0, [(3, {"version": 0, "lastContainedLogTimestamp": 0})]).data)
    torn = {
        "cut off": data[:-1],
        "no footer": data[: -len(footer.data)],
        "no header": data[first:],
        "a byte": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        "empty": b"",
        "late": data + header,
    }[damage]
    if damage == "late":  # a second snapshot behind it begins and ends as a snapshot does
        torn = data + data_batch(9, 3, 0, [record_bytes(record)]).data
    with pytest.raises(CorruptSnapshotError):
        read_snapshot(torn)
