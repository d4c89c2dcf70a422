"""Messages of any content, and kio's bytes of them."""

import io
import types
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

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
        kind,
        **{
            entity_field.name: _field(hints[entity_field.name], entity_field.metadata)
            for entity_field in fields(kind)
        },
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
