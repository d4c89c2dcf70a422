"""Requests are written as kio writes them, and our own messages are kio's to the byte."""

from dataclasses import fields
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.fetch import v17 as fetch_17
from kio.schema.fetch_snapshot import v1 as fetch_snapshot_1
from kio.schema.update_features import v1 as update_features_1

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import api_versions as messages
from featurewatch.kafka.messages import cluster, sasl
from tests.kafka.kio_messages import RESPONSES, instances, name_of, written

REQUESTS = [
    fetch_17.request.FetchRequest,
    fetch_snapshot_1.request.FetchSnapshotRequest,
    update_features_1.request.UpdateFeaturesRequest,
]


@pytest.mark.parametrize("kind", REQUESTS + RESPONSES, ids=name_of)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_a_message_is_written_as_kio_writes_it(kind: Any, data: Any) -> None:
    """Nulls, lists, tagged fields that have their default and those that do not."""
    message = data.draw(instances(kind))
    assert write_entity(message) == written(message)


OURS = [
    (messages.ApiVersionsRequest, "api_versions.v4.request.ApiVersionsRequest"),
    (messages.ApiVersionsRequestV3, "api_versions.v3.request.ApiVersionsRequest"),
    (messages.ApiVersionsResponseV0, "api_versions.v0.response.ApiVersionsResponse"),
    (messages.ApiVersionsResponseV3, "api_versions.v3.response.ApiVersionsResponse"),
    (messages.ApiVersionsResponse, "api_versions.v4.response.ApiVersionsResponse"),
    (cluster.MetadataRequest, "metadata.v1.request.MetadataRequest"),
    (cluster.MetadataResponse, "metadata.v1.response.MetadataResponse"),
    (cluster.DescribeClusterRequest, "describe_cluster.v1.request.DescribeClusterRequest"),
    (cluster.DescribeClusterResponse, "describe_cluster.v1.response.DescribeClusterResponse"),
    (sasl.SaslHandshakeRequest, "sasl_handshake.v1.request.SaslHandshakeRequest"),
    (sasl.SaslHandshakeResponse, "sasl_handshake.v1.response.SaslHandshakeResponse"),
    (sasl.SaslAuthenticateRequest, "sasl_authenticate.v0.request.SaslAuthenticateRequest"),
    (sasl.SaslAuthenticateResponse, "sasl_authenticate.v0.response.SaslAuthenticateResponse"),
]


@pytest.mark.parametrize(("kind", "name"), OURS, ids=[name for _, name in OURS])
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_our_messages_have_the_layout_of_kafkas(kind: Any, name: str, data: Any) -> None:
    """Key, version, form and bytes; of a response, as far as it is read."""
    module, _, theirs_name = name.rpartition(".")
    theirs = getattr(import_module(f"kio.schema.{module}"), theirs_name)
    for attribute in ("__api_key__", "__version__", "__flexible__"):
        assert getattr(kind, attribute) == getattr(theirs, attribute)
    if name.endswith("Request"):
        content = write_entity(data.draw(instances(kind)))
        assert written(read_entity(theirs, content)[0]) == content
        return
    message = data.draw(instances(theirs))
    ours, _ = read_entity(kind, written(message))
    for item in fields(kind):
        if item.name != "throttle_time_ms":
            assert _plain(getattr(ours, item.name)) == _plain(getattr(message, item.name))


def _plain(value: Any) -> Any:
    """A value of either class, as far as ours has it."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if hasattr(value, "__dataclass_fields__"):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return int(value) if isinstance(value, int) else value
