"""Responses are read as kio writes them; newer ones and hostile ones do no harm."""

import io
import types
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.api_versions import v0 as api_versions_0
from kio.schema.api_versions import v3 as api_versions_3
from kio.schema.api_versions import v4 as api_versions_4
from kio.schema.describe_cluster import v0 as describe_cluster_0
from kio.schema.describe_cluster import v1 as describe_cluster_1
from kio.schema.errors import ErrorCode
from kio.schema.fetch import v13 as fetch_13
from kio.schema.fetch import v17 as fetch_17
from kio.schema.fetch_snapshot import v0 as fetch_snapshot_0
from kio.schema.fetch_snapshot import v1 as fetch_snapshot_1
from kio.schema.metadata import v12 as metadata_12
from kio.schema.sasl_authenticate import v2 as sasl_authenticate_2
from kio.schema.sasl_handshake import v1 as sasl_handshake_1
from kio.schema.update_features import v1 as update_features_1
from kio.serial import entity_writer
from kio.static.primitive import i32Timedelta, i64Timedelta

from featurewatch.streams.net.decode import DecodeError, read_entity, skip_tags

RESPONSES = [
    api_versions_0.response.ApiVersionsResponse,
    api_versions_3.response.ApiVersionsResponse,
    api_versions_4.response.ApiVersionsResponse,
    describe_cluster_0.response.DescribeClusterResponse,
    describe_cluster_1.response.DescribeClusterResponse,
    fetch_13.response.FetchResponse,
    fetch_17.response.FetchResponse,
    fetch_snapshot_0.response.FetchSnapshotResponse,
    fetch_snapshot_1.response.FetchSnapshotResponse,
    metadata_12.response.MetadataResponse,
    sasl_authenticate_2.response.SaslAuthenticateResponse,
    sasl_handshake_1.response.SaslHandshakeResponse,
    update_features_1.response.UpdateFeaturesResponse,
]

PLAIN = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "string": st.text(max_size=10),
    "bytes": st.binary(max_size=40),
    "records": st.binary(max_size=40),
    "uuid": st.uuids(version=4),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": st.from_type(i32Timedelta),
    "timedelta_i64": st.from_type(i64Timedelta),
}


def instances(kind: Any) -> st.SearchStrategy[Any]:
    """Messages of a class of kio's."""
    hints = get_type_hints(kind)
    return st.builds(
        kind, **{each.name: _field(hints[each.name], each.metadata) for each in fields(kind)}
    )


def _field(hint: Any, metadata: Any) -> st.SearchStrategy[Any]:
    nothing: st.SearchStrategy[Any] = st.nothing()
    if get_origin(hint) in (Union, types.UnionType):
        nothing = st.none()
        (hint,) = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is tuple:
        item = _field(get_args(hint)[0], metadata)
        return nothing | st.lists(item, max_size=3).map(tuple)
    if is_dataclass(hint):
        return nothing | instances(hint)
    return nothing | PLAIN[metadata["kafka_type"]]


def written(message: Any) -> bytes:
    """A message as kio writes it."""
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def name_of(kind: Any) -> str:
    """For the test's id."""
    return f"{kind.__name__}-{kind.__version__}"


@pytest.mark.parametrize("kind", RESPONSES, ids=name_of)
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_response_is_read_as_it_was_written(kind, data):
    """Every field of every response that a source reads comes back, tagged ones too."""
    message = data.draw(instances(kind))
    content = written(message)
    assert read_entity(kind, memoryview(content)) == (message, len(content))


@pytest.mark.parametrize("kind", RESPONSES, ids=name_of)
@given(data=st.data())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_response_that_was_cut_off_is_refused(kind, data):
    """Wherever it ends early: an error, and neither a wrong message nor anything worse."""
    content = written(data.draw(instances(kind)))
    end = data.draw(st.integers(0, max(0, len(content) - 1)))
    with pytest.raises(DecodeError):
        read_entity(kind, content[:end])


@pytest.mark.parametrize("kind", RESPONSES, ids=name_of)
@given(st.binary(max_size=200))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_bytes_do_harm(kind, content):
    """Anything is a message or an `DecodeError`: a length is no reason to take memory."""
    for hostile in (content, content + b"\xff\xff\xff\xff\x0f" * 4, b"\x7f" * 4 + content):
        try:
            read_entity(kind, hostile)
        except DecodeError:
            continue


def test_what_a_newer_kafka_adds_is_passed_over():
    """A tagged field that is not known is skipped (KIP-482)."""
    kind = api_versions_4.response.ApiVersionsResponse
    message = kind(
        error_code=ErrorCode.none, api_keys=(), throttle_time=i32Timedelta.parse(timedelta())
    )
    content = written(message)
    assert content[-1:] == b"\0"
    newer = content[:-1] + b"\x01" + b"\x63" + b"\x03" + b"abc"
    assert read_entity(kind, newer) == (message, len(newer))
    assert skip_tags(b"\x01\x63\x03abc!", 0) == 6
