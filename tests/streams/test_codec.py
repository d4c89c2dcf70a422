"""Events on the wire: what is encoded comes back, and nothing else gets in."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.codec.events import (
    MalformedEventError,
    decode,
    decode_log_event,
    encode,
    kind_of,
)
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.events import (
    CommitKind,
    DeadLetter,
    LogCommit,
    LogGap,
    NodeAnswer,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.topics import API_VERSIONS, DEAD_LETTERS, INPUTS, METADATA_LOG, Topic
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRanges,
)
from tests.streams import events_strategies as some
from tests.streams.encoded import value_of

CLUSTER = ClusterId("MkU3OEVBNTcwNTJENDM2Qg")
TOPICS = st.sampled_from((METADATA_LOG, API_VERSIONS, DEAD_LETTERS))

COMMIT = LogCommit(
    cluster=CLUSTER,
    kind=CommitKind.TRANSACTION,
    first_offset=7,
    last_offset=9,
    leader_epoch=2,
    append_ms=1_700_000_000_123,
    records=[
        {
            "offset": 8,
            "type": "FEATURE_LEVEL_RECORD",
            "version": 0,
            "data": {"name": "metadata.version", "featureLevel": 21},
        }
    ],
    skipped={"NO_OP_RECORD": 3},
    seen_ms=1_700_000_000_130,
)


@given(some.log_events)
def test_log_events_come_back_equal(event):
    """An event encoded for metadata-log decodes to the same event, under the same key."""
    message = encode(METADATA_LOG, event)
    assert decode(METADATA_LOG, message.value, message.key) == event


@given(some.api_versions_events)
def test_api_versions_events_come_back_equal(event):
    """An event encoded for api-versions decodes to the same event, ranges as tuples again."""
    message = encode(API_VERSIONS, event)
    assert decode(API_VERSIONS, message.value, message.key) == event


@given(some.dead_letters)
def test_dead_letters_come_back_equal(event):
    """Any bytes survive as base64."""
    message = encode(DEAD_LETTERS, event)
    assert decode(DEAD_LETTERS, message.value, message.key) == event


def test_dead_letter_with_text_that_is_no_utf8_gets_through():
    """A lone surrogate in a reason is escaped, not refused: a dead letter must not be lost."""
    dead_letter = DeadLetter("c", "topic \udcff", "bad \ud800", b"\xff", 1, {"h": "\udc80"})
    read = decode(DEAD_LETTERS, encode(DEAD_LETTERS, dead_letter).value)
    assert isinstance(read, DeadLetter)
    assert (read.location, read.reason) == ("topic \\udcff", "bad \\ud800")


@pytest.mark.fuzz
@given(TOPICS, st.binary())
def test_arbitrary_bytes_are_malformed_and_nothing_else(topic, value):
    """Whatever bytes are on a topic, decoding them gives MalformedEvent."""
    with pytest.raises(MalformedEventError):
        decode(topic, value)


@pytest.mark.fuzz
@given(TOPICS, some.json_values)
def test_arbitrary_json_is_malformed_and_nothing_else(topic, value):
    """JSON that is no event of ours is refused in the same way."""
    with pytest.raises(MalformedEventError):
        decode(topic, orjson.dumps(value))


@pytest.mark.fuzz
@given(some.log_events, st.data())
def test_an_event_with_one_field_changed_decodes_or_is_malformed(event, data):
    """Any value in any field: an event comes out, or MalformedEvent with the field's name."""
    content = orjson.loads(value_of(METADATA_LOG, event))
    field = data.draw(st.sampled_from(sorted(content)))
    content[field] = data.draw(some.json_values)
    try:
        decoded = decode(METADATA_LOG, orjson.dumps(content))
    except MalformedEventError as error:
        assert field in str(error) or field == "first_offset"
    else:
        assert type(decoded) is type(event) or field == "kind"


@given(some.log_events, st.data())
def test_an_event_without_one_field_is_malformed(event, data):
    """Each field is required but those that older versions did not publish."""
    content = orjson.loads(value_of(METADATA_LOG, event))
    optional = KINDS[METADATA_LOG.short_name][content["kind"]].optional
    del content[data.draw(st.sampled_from(sorted(content.keys() - optional)))]
    with pytest.raises(MalformedEventError):
        decode(METADATA_LOG, orjson.dumps(content))


def test_unknown_fields_are_passed_over():
    """A newer source may say more: an older worker still reads what it knows."""
    content = orjson.loads(value_of(METADATA_LOG, COMMIT)) | {"from_the_future": [1]}
    assert decode_log_event(orjson.dumps(content)) == COMMIT


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"first_offset": 10}, "first_offset of transaction is above last_offset"),
        ({"first_offset": -1}, "first_offset of transaction is not an integer from 0"),
        ({"leader_epoch": True}, "leader_epoch of transaction is not an integer"),
        ({"last_offset": 2**63}, "last_offset of transaction is not an integer"),
        ({"cluster": ""}, "cluster of transaction is not a string with at least one character"),
        ({"kind": "heap"}, "kind is none of batch, transaction, snapshot-chunk, gap, resync"),
        ({"kind": ["batch"]}, "kind is none of"),
        ({"skipped": {"NO_OP_RECORD": -1}}, "skipped of transaction is not an integer"),
        ({"records": {}}, "records of transaction is not a list"),
        ({"records": [7]}, "records of transaction has an entry that is no record"),
        ({"records": ["offset"]}, "records of transaction has an entry that is no record"),
        ({"records": [{"offset": 1}]}, "records of transaction has an entry that is no record"),
        (
            {"records": [{"offset": 1, "type": "X", "version": 0, "data": []}]},
            "records of transaction holds a record with a wrong type",
        ),
    ],
)
def test_a_malformed_commit_is_an_error_with_the_field(changed, reason):
    """The reason names the field, what it must be, and what it is."""
    content = orjson.loads(value_of(METADATA_LOG, COMMIT)) | changed
    with pytest.raises(MalformedEventError) as caught:
        decode_log_event(orjson.dumps(content))
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("offset", [-1, 6, 10, 2**63])
def test_a_record_outside_of_its_commit_is_malformed(offset: int) -> None:
    """Its offset would otherwise count as that of the newest change of what it is about."""
    record = {**COMMIT.records[0], "offset": offset}
    message = encode(METADATA_LOG, replace(COMMIT, records=[COMMIT.records[0], record]))
    with pytest.raises(MalformedEventError, match=f"offset {offset}, outside of its commit"):
        decode(METADATA_LOG, message.value)


def test_a_range_with_its_minimum_above_its_maximum_is_malformed():
    """Such a range cannot be judged, so it does not get past the edge."""
    answer = NodeAnswer(
        CLUSTER,
        Role.BROKER,
        NodeId(1),
        "h:9092",
        SupportedRanges({FeatureName("metadata.version"): (7, 3)}),
        {},
        -1,
        True,
        5,
    )
    with pytest.raises(MalformedEventError, match="minimum is above its maximum"):
        decode(API_VERSIONS, encode(API_VERSIONS, answer).value)


def test_deeply_nested_json_is_malformed():
    """A thousand nested lists where a field should be end in a reason, not in a RecursionError."""
    nested = b'{"kind": "gap", "cluster": ' + b"[" * 1000 + b"]" * 1000 + b"}"
    with pytest.raises(MalformedEventError):
        decode_log_event(nested)


def test_a_tombstone_and_a_foreign_key_are_malformed():
    """A message without a value, and one under another cluster's key, are no events."""
    message = encode(METADATA_LOG, COMMIT)
    with pytest.raises(MalformedEventError, match="no value"):
        decode_log_event(None)
    with pytest.raises(MalformedEventError, match="the key is"):
        decode_log_event(message.value, b"another")


def test_events_are_kept_off_topics_that_are_not_theirs():
    """A gap of the log does not belong on api-versions."""
    with pytest.raises(TypeError, match="does not belong"):
        encode(API_VERSIONS, LogGap(CLUSTER, 0, 1, "", False, 1))


def test_the_headers_are_cloudevents():
    """The binary mode of the CloudEvents binding: the attributes as ce_ headers, value as is."""
    message = encode(METADATA_LOG, COMMIT)
    assert message.key == CLUSTER.encode()
    assert dict(message.headers) == {
        "ce_specversion": b"1.0",
        "ce_id": b"MkU3OEVBNTcwNTJENDM2Qg/kraft/7-9",
        "ce_type": b"featurewatch.metadata-log.transaction",
        "ce_source": b"/clusters/MkU3OEVBNTcwNTJENDM2Qg/metadata-log",
        "ce_time": b"2023-11-14T22:13:20.130Z",
        "content-type": b"application/json",
    }


def test_the_type_contains_the_topic_of_the_event():
    """A status of the same shape is another type on each topic."""
    status = SourceStatus(CLUSTER, "s", SourceState.STALLED, -1, -1, -1, -1, -1, "why", 0)
    types = {
        dict(encode(topic, status).headers)["ce_type"] for topic in (METADATA_LOG, API_VERSIONS)
    }
    assert types == {b"featurewatch.metadata-log.status", b"featurewatch.api-versions.status"}


@pytest.mark.parametrize("topic", INPUTS, ids=lambda topic: topic.short_name)
@given(data=st.data())
def test_the_events_of_another_source_do_not_belong_on_a_topic(topic: Topic, data: st.DataObject):
    """A forged message would otherwise count once on each topic."""
    other = data.draw(st.sampled_from([each for each in INPUTS if each != topic]))
    event = data.draw(some.statuses(other) | some.resyncs(other))
    is_known = kind_of(event) in KINDS[topic.short_name]
    message = encode(topic if is_known else other, event)
    with pytest.raises(
        MalformedEventError, match="the source is" if is_known else "kind is none of"
    ):
        decode(topic, message.value, message.key)


def test_mappings_and_sequences_of_any_kind_are_encoded():
    """An event may hold read-only views and tuples; on the topic they are objects and lists."""
    from types import MappingProxyType

    answer = NodeAnswer(
        CLUSTER,
        Role.CONTROLLER,
        NodeId(3),
        "h:9093",
        MappingProxyType(SupportedRanges({FeatureName("kraft.version"): (0, 1)})),
        MappingProxyType({FeatureName("kraft.version"): FeatureLevel(1)}),
        17,
        True,
        5,
    )
    content = orjson.loads(value_of(API_VERSIONS, answer))
    assert content["supported"] == {"kraft.version": [0, 1]}
    assert content["finalized"] == {"kraft.version": 1}
