"""Records: every type and version, what is skipped, what is withheld, what cannot be read."""

import hashlib
import re
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.events import UNREADABLE
from featurewatch.streams.kraft.records.batch import RecordBatch, scan_batches
from featurewatch.streams.kraft.records.decoder import FIRST_OF_KIND, DecodedBatch, RecordDecoder
from featurewatch.streams.kraft.records.fast_path import MOST_HEADS
from featurewatch.streams.kraft.records.schema import RecordSchema, record_table
from featurewatch.streams.kraft.records.selection import (
    ALL_RECORDS,
    DEFAULT_RECORD_TYPES,
    FOLLOWED_SETTINGS,
    OPERATIONS_RECORD_TYPES,
    REDACTED_RECORD_TYPES,
    SECRET_KEYS,
    count_types,
)
from featurewatch.streams.kraft.records.varint import write_uvarint
from tests.streams.kraft.encoding import batch_of, data_batch, framed, metadata_value, record_of
from tests.streams.kraft.records.record_strategies import (
    VERSION_IDS,
    VERSIONS,
    expected,
    record_data,
)

EVERYTHING = RecordDecoder(ALL_RECORDS)
LEVEL = {"name": "metadata.version", "featureLevel": 21}


def one_batch(data: bytes) -> RecordBatch:
    """The only batch in ``data``."""
    (batch,) = scan_batches(data).batches
    return batch


def decode(values: list[bytes], decoder: RecordDecoder = EVERYTHING) -> DecodedBatch:
    """Record values through a separate batch."""
    return decoder.decode(one_batch(data_batch(values)))


def carefully(batch: RecordBatch, decoder: RecordDecoder = EVERYTHING) -> DecodedBatch:
    """The same batch by the careful way alone."""
    decoded = DecodedBatch([], b"", [])
    skipped = bytearray()
    decoder._walk_controls(batch, decoded.records, skipped, decoded.undecoded)
    return decoded._replace(skipped=bytes(skipped))


def reason_of(value: bytes) -> str:
    """Why a record value cannot be read."""
    (record,) = decode([value]).records
    assert record["type"] == UNREADABLE
    return str(record["data"]["reason"])


@pytest.mark.parametrize(("schema", "version"), VERSIONS, ids=VERSION_IDS)
@settings(max_examples=40)
@given(data=st.data())
def test_every_version_of_every_type_decodes(
    schema: RecordSchema, version: int, data: st.DataObject
) -> None:
    """M-60: what was written comes back as JSON, tags that nobody knows are passed over."""
    content = data.draw(record_data(schema, version))
    schema_tags = {field.tag for field in schema.at(version)}
    tags = data.draw(st.dictionaries(st.integers(0, 300), st.binary(max_size=200), max_size=3))
    tags = {tag: raw for tag, raw in tags.items() if tag not in schema_tags}
    value = metadata_value(schema, version, content, tags)
    batch = one_batch(data_batch([value, record_of("NO_OP_RECORD")], base_offset=7))
    decoded = EVERYTHING.decode(batch)
    assert decoded.records[0] == {
        "offset": 7,
        "type": schema.type,
        "version": version,
        "data": expected(schema, content),
    }
    assert [record["type"] for record in decoded.records[1:]] == ["NO_OP_RECORD"]
    assert decoded == carefully(batch)


@pytest.mark.form("document")
def test_feature_level_record_is_key_12_version_0() -> None:
    """M-12: a FeatureLevelRecord has key 12, version 0, a name and an int16 level."""
    value = bytes([1, 12, 0]) + bytes([17]) + b"metadata.version" + b"\x00\x15" + b"\x00"
    assert decode([value]).records[0]["data"] == LEVEL


def test_feature_level_of_before_3_3_is_not_misread() -> None:
    """M-13: the shape of Kafka 3.2, with a lowest and a highest level, is unreadable."""
    value = bytes([1, 12, 0]) + bytes([4]) + b"foo" + struct.pack(">hh", 1, 2) + b"\x00"
    assert reason_of(value) == f"{TYPE}: 2 bytes are left after its last field"


GOOD = record_of("FEATURE_LEVEL_RECORD", LEVEL)
TYPE = "FEATURE_LEVEL_RECORD version 0"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01\x7f\x00", "record type 127 is not known"),
        (b"\x01\xff\xff\x03\x00", "record type 65535 is not known"),
        (b"\x01\x0c\x01", "version 1 of FEATURE_LEVEL_RECORD is not known"),
        (b"\x01\x0c\xff\x01", "version 255 of FEATURE_LEVEL_RECORD is not known"),
        (b"\x00\x0c\x00", "it was written by the preview of KRaft in Kafka 2.8 (frame version 0)"),
        (b"\x02" + GOOD[1:], "frame version 2 is not known, only 1"),
        (b"\xff\xff\xff\xff\xff\xff", "a variable-length number takes more than five bytes"),
        (b"\x01\x0c\xff\xff\xff\xff\x7f", "a variable-length number has more than 32 bits"),
        (GOOD + b"\x00", f"{TYPE}: 1 bytes are left after its last field"),
        (GOOD[:-1], f"{TYPE}: it is cut off"),
        (
            b"\x01\x0c\x00\x00",
            f"{TYPE}: a field that cannot be null is null",
        ),
        (
            b"\x01\x0c\x00\xff\xff\xff\xff\x0fa",
            f"{TYPE}: a field is longer than the record",
        ),
        (
            b"\x01\x0c\x00\x03\xff\xfe\x00\x01\x00",
            f"{TYPE}: a text in it is not UTF-8",
        ),
        (
            GOOD[:-1] + b"\x01\x00\x7f",
            f"{TYPE}: a tagged field is longer than the record",
        ),
    ],
)
def test_reason_says_what_is_wrong(value: bytes, reason: str) -> None:
    """An unreadable record keeps its place with a reason, its bytes apart, and stops nothing."""
    decoded = decode([GOOD, value, GOOD])
    assert [record["type"] for record in decoded.records] == [
        "FEATURE_LEVEL_RECORD",
        UNREADABLE,
        "FEATURE_LEVEL_RECORD",
    ]
    assert decoded.records[1]["data"]["reason"] == reason
    (lost,) = decoded.undecoded
    # Of bytes whose type or version cannot be told only a digest is kept: they might be a secret.
    if reason.startswith(TYPE):
        assert (lost.offset, lost.reason, lost.payload) == (1, reason, value)
        return
    version = re.search(r"^version (\d+)|^record type .*()", reason)
    version_text = f"version {version[1] or 0}, " if version else ""
    shown = f"{version_text}{len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()}"
    kind = decoded.records[1]["data"].get("unknown")
    assert (kind is not None) == bool(version)
    text = f"{reason} ({shown}){FIRST_OF_KIND if kind else ''}"
    assert (lost.offset, lost.reason, lost.payload) == (1, text, b"")


@pytest.mark.parametrize(("schema", "version"), VERSIONS, ids=VERSION_IDS)
@settings(max_examples=15)
@given(data=st.data())
def test_cut_off_record_is_unreadable_at_every_length(
    schema: RecordSchema, version: int, data: st.DataObject
) -> None:
    """A record without its last bytes is unreadable, not misread out of what follows it."""
    value = metadata_value(schema, version, data.draw(record_data(schema, version)))
    sizes = range(3, len(value))
    records = decode([part for size in sizes for part in (value[:size], GOOD)]).records
    assert len(records) == 2 * len(sizes)
    for record, good in zip(records[::2], records[1::2], strict=True):
        if schema.type in REDACTED_RECORD_TYPES:
            assert record["type"] in (schema.type, UNREADABLE)  # the end is never looked at
        else:
            assert record["type"] == UNREADABLE
        assert good["data"] == LEVEL


def framings(value: bytes) -> list[tuple[bytes, str]]:
    """Records that are framed as no metadata record is, and why they cannot be read."""
    good = framed(value, 0)
    return [
        (good[:1] + b"\x01" + good[2:], "it has attributes, which no metadata record has"),
        (framed(value, 1), "its time or offset does not follow from the record batch"),
        (framed(value, 0, key=b"k"), "it has a key, which no metadata record has"),
        (framed(value, 0, tail=b"\x02"), "it has headers or bytes after its value"),
        (framed(value, 0, tail=b"\x00\x00"), "it has headers or bytes after its value"),
    ]


@pytest.mark.parametrize("index", range(5))
def test_record_framed_otherwise_is_unreadable(index: int) -> None:
    """A record with attributes, a key, headers or another offset is told, and the next is read."""
    record, reason = framings(GOOD)[index]
    first, second = EVERYTHING.decode(one_batch(batch_of([record, framed(GOOD, 1)]))).records
    assert first["data"] == {"reason": reason}
    assert second["data"] == LEVEL


def test_record_without_an_end_takes_the_rest_of_its_batch_with_it() -> None:
    """Where the next record cannot be found, one stand-in says that none is read any more."""
    decoded = EVERYTHING.decode(
        one_batch(batch_of([framed(GOOD, 0), b"\x7f" + framed(GOOD, 1)[1:], framed(GOOD, 2)]))
    )
    assert [record["type"] for record in decoded.records] == ["FEATURE_LEVEL_RECORD", UNREADABLE]
    assert decoded.undecoded[0].reason == (
        "its length does not fit the record batch; nothing after it in its record batch can be read"
    )


def test_unwanted_types_are_skipped_and_counted() -> None:
    """Only what is wanted is decoded; the rest is counted by type, in whatever version it has."""
    topic = record_of("TOPIC_RECORD", {"name": "t", "topicId": "A" * 22})
    future_partition = b"\x01\x03\x63" + b"anything"
    decoded = decode([topic, GOOD, future_partition, topic], RecordDecoder(DEFAULT_RECORD_TYPES))
    assert [(r["offset"], r["type"]) for r in decoded.records] == [(1, "FEATURE_LEVEL_RECORD")]
    assert count_types(decoded.skipped) == {"TOPIC_RECORD": 2, "PARTITION_RECORD": 1}


RUNS = {
    "topic": record_of("TOPIC_RECORD", {"name": "t", "topicId": "A" * 22}),
    "longer topic": record_of("TOPIC_RECORD", {"name": "t" * 2, "topicId": "A" * 22}),
    "long topic": record_of("TOPIC_RECORD", {"name": "t" * 90, "topicId": "A" * 22}),
    "removed topic": record_of("REMOVE_TOPIC_RECORD", {"topicId": "A" * 22}),
    "as long as a removed topic": b"\x01\x05\x00" + b"\x00" * 17,
    "broker": record_of("UNREGISTER_BROKER_RECORD", {"brokerId": 1, "brokerEpoch": 1}),
    "controller": record_of("UNREGISTER_CONTROLLER_RECORD", {"controllerId": 9}),
    "level": GOOD,
    "unknown": b"\x01\x7e\x00" + b"\x00" * 17,
    "frame": b"\x02\x09\x00" + b"\x00" * 17,
}


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(RUNS)), st.sampled_from([1, 2, 5, 6, 63, 64, 130, 300])),
        min_size=1,
        max_size=8,
    )
)
def test_runs_of_unwanted_records_are_skipped_like_single_ones(runs: list[tuple[str, int]]) -> None:
    """Records in step are stepped over together, and nothing else is."""
    batch = one_batch(data_batch([RUNS[name] for name, times in runs for _ in range(times)]))
    decoded = RecordDecoder(DEFAULT_RECORD_TYPES).decode(batch)
    assert decoded == carefully(batch, RecordDecoder(DEFAULT_RECORD_TYPES))


@pytest.mark.parametrize("name", ["topic", "long topic", "removed topic"])
def test_run_across_widening_places(name: str) -> None:
    """A run of records whose places take one byte, two and three is skipped whole."""
    times = MOST_HEADS + 100
    batch = one_batch(data_batch([RUNS[name]] * times + [GOOD]))
    decoder = RecordDecoder(DEFAULT_RECORD_TYPES)
    decoded = decoder.decode(batch)
    assert decoded == carefully(batch, decoder)
    assert [record["offset"] for record in decoded.records] == [times]


def test_wanted_type_must_exist() -> None:
    """A misspelled type is told at once."""
    with pytest.raises(ValueError, match="no such metadata record types: FEATURE_RECORD"):
        RecordDecoder({"FEATURE_RECORD"})


def test_large_records_and_batches() -> None:
    """Lengths and offsets of any size are read: 9000 records a batch, 3000 replicas a record."""
    partition: dict[str, Any] = {
        "partitionId": 1,
        "topicId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "replicas": list(range(3000)),
        "isr": list(range(127)),
        "removingReplicas": list(range(126)),
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": ["AAAAAAAAAAAAAAAAAAAAAQ"] * 200,
        "lastKnownElr": list(range(500)),
    }
    values = [record_of("PARTITION_RECORD", partition, 2), *[GOOD] * 9000]
    records = decode(values).records
    assert records[0]["data"] == partition
    assert [r["offset"] for r in records] == list(range(9001))
    assert all(r["data"] == LEVEL for r in records[1:])


SECRET = "do-not-tell-anyone"  # noqa: S105 - a marker to look for
SECRETS: dict[str, dict[str, Any]] = {
    "CONFIG_RECORD": {"resourceType": 4, "resourceName": "1", "name": "k", "value": SECRET},
    "USER_SCRAM_CREDENTIAL_RECORD": {
        "name": "alice",
        "mechanism": 1,
        "iterations": 4096,
        "salt": SECRET.encode(),
        "storedKey": SECRET.encode(),
        "serverKey": SECRET.encode(),
    },
    "DELEGATION_TOKEN_RECORD": {
        "owner": "User:a",
        "requester": SECRET,
        "renewers": [SECRET],
        "tokenId": SECRET,
        "issueTimestamp": 1,
        "maxTimestamp": 2,
        "expirationTimestamp": 3,
    },
    "REMOVE_DELEGATION_TOKEN_RECORD": {"tokenId": SECRET},
}


@pytest.mark.parametrize("kind", sorted(REDACTED_RECORD_TYPES))
def test_secrets_are_never_decoded(kind: str) -> None:
    """Of types that carry secrets the rest is never shown, in a record, a reason or lost bytes."""
    assert set(REDACTED_RECORD_TYPES) == set(SECRETS)
    value = record_of(kind, SECRETS[kind])
    (record,) = decode([value]).records
    assert (record["type"], tuple(record["data"])) == (kind, REDACTED_RECORD_TYPES[kind])
    for damaged in (value[:3], value[:6], value[:2] + b"\x05" + value[3:], b"\x02" + value[1:]):
        decoded = decode([damaged + SECRET.encode()])
        assert SECRET not in repr(decoded)
        assert all(lost.payload == b"" for lost in decoded.undecoded)
    for framing, _ in framings(value):
        assert SECRET not in repr(EVERYTHING.decode(one_batch(batch_of([framing]))))


def test_only_settings_that_are_named_are_decoded() -> None:
    """The value of a setting is read where a reader names the setting, and of no other."""
    fields = SECRETS["CONFIG_RECORD"]
    values = [
        record_of("CONFIG_RECORD", fields),
        record_of("CONFIG_RECORD", {**fields, "name": "min.insync.replicas", "value": "2"}),
        record_of("CONFIG_RECORD", {**fields, "name": "min.insync.replicas", "value": None}),
    ]
    decoder = RecordDecoder({"CONFIG_RECORD"}, {"min.insync.replicas"})
    decoded = decoder.decode(one_batch(data_batch(values)))
    assert SECRET not in repr(decoded)
    assert [record["data"].get("value", "-") for record in decoded.records] == ["-", "2", None]
    plain = RecordDecoder({"CONFIG_RECORD"}).decode(one_batch(data_batch(values)))
    assert not any("value" in record["data"] for record in plain.records)


def test_other_settings_are_counted_where_operations_are_followed() -> None:
    """Only the minimum ISR is published of all that is configured."""
    fields = SECRETS["CONFIG_RECORD"]
    minimum = record_of("CONFIG_RECORD", {**fields, "name": "min.insync.replicas", "value": "2"})
    values = [record_of("CONFIG_RECORD", fields), minimum, record_of("CONFIG_RECORD", fields)]
    decoder = RecordDecoder(OPERATIONS_RECORD_TYPES, FOLLOWED_SETTINGS)
    decoded = decoder.decode(one_batch(data_batch(values)))
    assert SECRET not in repr(decoded)
    assert [(record["offset"], record["data"]["value"]) for record in decoded.records] == [(1, "2")]
    assert count_types(decoded.skipped) == {"CONFIG_RECORD": 2}
    lost = decode([minimum[:-1]], decoder)
    assert [record["type"] for record in lost.records] == [UNREADABLE]
    assert [undecoded.payload for undecoded in lost.undecoded] == [b""]


def test_secret_types_are_all_known() -> None:
    """Every type that is withheld has a key."""
    assert len(SECRET_KEYS) == len(REDACTED_RECORD_TYPES)


def total(decoded: DecodedBatch, batch: RecordBatch) -> None:
    """Whatever the bytes: each offset is read, skipped, or lost with those after it."""
    offsets = [record["offset"] for record in decoded.records]
    assert offsets == sorted(set(offsets))
    assert len(offsets) + len(decoded.skipped) <= batch.record_count
    assert [
        record["offset"]
        for record in decoded.records
        if record["type"] == UNREADABLE and "repeated" not in record["data"]
    ] == [lost.offset for lost in decoded.undecoded]
    if len(offsets) + len(decoded.skipped) < batch.record_count:
        assert decoded.undecoded[-1].reason.endswith(
            "nothing after it in its record batch can be read"
        )


@pytest.mark.fuzz
@settings(max_examples=300)
@given(values=st.lists(st.binary(max_size=40), min_size=1, max_size=5), key=st.integers(0, 40))
def test_arbitrary_values_raise_nothing(values: list[bytes], key: int) -> None:
    """No value, with a good frame before it or not, makes the decoder raise."""
    for prefix in (b"", b"\x01", bytes([1, key, 0]), bytes([1, key, 1])):
        batch = one_batch(data_batch([prefix + value for value in values]))
        for decoder in (EVERYTHING, RecordDecoder(DEFAULT_RECORD_TYPES)):
            total(decoder.decode(batch), batch)


@pytest.mark.fuzz
@settings(max_examples=300)
@given(data=st.data(), raw=st.binary(max_size=80))
def test_arbitrary_and_damaged_batches_raise_nothing(data: st.DataObject, raw: bytes) -> None:
    """No content of a batch, random or damaged at any byte, makes the decoder raise."""
    schema, version = data.draw(st.sampled_from(VERSIONS))
    value = metadata_value(schema, version, data.draw(record_data(schema, version)))
    content = bytearray(framed(value, 0) + framed(GOOD, 1))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for records in (bytes(content), raw + b"\x00" * 14):
        for control in (False, True):
            batch = one_batch(batch_of([records, b""], control=control))
            total(EVERYTHING.decode(batch), batch)


def test_huge_counts_cost_nothing() -> None:
    """A count of four billion elements is refused before anything is made of it."""
    huge = b"\xff\xff\xff\xff\x0f"
    for key, schema in record_table().records.items():
        if schema.type not in REDACTED_RECORD_TYPES:
            value = b"\x01" + write_uvarint(key) + b"\x00" + huge * 20
            assert decode([value]).records[0]["type"] == UNREADABLE
