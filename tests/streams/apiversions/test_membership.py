"""The members of a cluster by Kafka's responses."""

import uuid
from typing import Any

import pytest
from kio.schema.describe_cluster import v1 as cluster_v1
from kio.schema.describe_quorum import v0, v1, v2
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i64, u16

from featurewatch.kafka.address import Address
from featurewatch.kafka.messages import response_class
from featurewatch.streams.apiversions.discovery import uncovered_nodes
from featurewatch.streams.apiversions.membership import (
    NodeListing,
    brokers_request,
    quorum_request,
    read_cluster,
    read_quorum,
)
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.types import NodeId, NodeKey, Role
from tests.kafka.kio_messages import ours
from tests.streams.apiversions.scripted_node import THROTTLE

QUORUM_EXTRAS: dict[Any, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    v0: ({}, {}, {}),
    v1: ({"last_fetch_timestamp": i64(0), "last_caught_up_timestamp": i64(0)}, {}, {}),
    v2: (
        {
            "last_fetch_timestamp": i64(0),
            "last_caught_up_timestamp": i64(0),
            "replica_directory_id": uuid.uuid4(),
        },
        {"error_message": None},
        {"error_message": None},
    ),
}


def quorum(version, voters=(1, 2), listeners=None, error=ErrorCode.none):
    """A DescribeQuorum answer; version 2 says where the voters listen."""
    form = version.response
    of_replica, of_partition, of_answer = QUORUM_EXTRAS[version]
    replicas = tuple(
        form.ReplicaState(replica_id=BrokerId(v), log_end_offset=i64(9), **of_replica)
        for v in voters
    )
    partition = form.PartitionData(
        partition_index=i32(0),
        error_code=error,
        leader_id=BrokerId(2),
        leader_epoch=i32(7),
        high_watermark=i64(9),
        current_voters=replicas,
        observers=(),
        **of_partition,
    )
    topic = form.TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(partition,))
    nodes = {}
    if version is v2:
        nodes["nodes"] = tuple(
            form.Node(
                node_id=BrokerId(n),
                listeners=(form.Listener(name="CONTROLLER", host="h", port=u16(port)),),
            )
            for n, port in (listeners or {}).items()
        )
    return ours(
        form.DescribeQuorumResponse(
            error_code=ErrorCode.none, topics=(topic,), **of_answer, **nodes
        )
    )


def test_version_2_of_the_quorum_has_the_controllers_listeners():
    """Each voter with its listener; one without is nameless."""
    listing = read_quorum(quorum(v2, (1, 2), {1: 9093}))
    assert listing.nodes == {NodeKey(Role.CONTROLLER, NodeId(1)): Address("h", 9093)}
    assert listing.without_address == (2,)
    assert (listing.leader_id, listing.leader_epoch) == (2, 7)


@pytest.mark.parametrize("version", [v0, v1])
def test_older_versions_name_the_voters_only(version):
    """Before 3.9 the controllers' addresses have to be configured."""
    listing = read_quorum(quorum(version))
    assert listing.nodes == {}
    assert listing.without_address == (1, 2)


def test_a_refused_quorum_request_is_a_warning_with_the_missing_right():
    """Without DESCRIBE on the cluster the controllers stay unseen, and the line says so."""
    refused = quorum(v2, error=ErrorCode.cluster_authorization_failed)
    assert "lack of DESCRIBE on the cluster" in (read_quorum(refused).error or "")


@pytest.mark.parametrize(
    ("role", "line"),
    [
        (Role.BROKER, "a controller listens here: give the address of a broker"),
        (Role.CONTROLLER, "a broker listens here: give the address of a controller"),
    ],
)
def test_the_wrong_kind_of_listener_is_a_warning(role, line):
    """Kafka answers MISMATCHED_ENDPOINT_TYPE either way."""
    answer = cluster_v1.DescribeClusterResponse(
        throttle_time=THROTTLE,
        error_code=ErrorCode.mismatched_endpoint_type,
        cluster_id="",
        brokers=(),
    )
    assert read_cluster(ours(answer), role).error == line


def test_questions_exist_in_every_version_that_is_offered():
    """The request's version is the one that was asked for, and its answer's class fits."""
    for version in (0, 1, 2):
        for request in (brokers_request(version), quorum_request(version)):
            answer = response_class(request)
            assert request.__version__ == answer.__version__ == version
            assert request.__api_key__ == answer.__api_key__


def test_nodes_that_are_not_covered_are_reported():
    """Controllers without an address, and nodes that advertise the same one."""
    same = Address("h", 9092)
    nodes = {NodeKey(Role.BROKER, NodeId(n)): same for n in (1, 2)}
    settings = ApiVersionsSettings.parse("h:9092")
    remarks = uncovered_nodes([NodeListing(without_address=(NodeId(3),))], nodes, settings)
    assert remarks == [
        "controllers 3 are not asked, their addresses are not known: set polled_controllers to "
        "id@host:port,... of each",
        "broker-1 and broker-2 all advertise h:9092, so one of them answers for all: correct "
        "their advertised.listeners",
    ]
