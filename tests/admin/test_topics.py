"""The client of topics where brokers do what real ones do rarely; real ones are in
`tests.conformance.topics_tool`."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import (
    KafkaApiError,
    OutcomeUnknownError,
    RequestError,
    UnreachableError,
)
from featurewatch.admin.topics.client import TopicAdmin
from featurewatch.admin.topics.responses import described_topic, joined_pages
from featurewatch.admin.topics.values import (
    ChangedTopic,
    PartitionIncrease,
    TopicSpec,
    check_changes,
    text_of_id,
    topic_id_of,
)
from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.limits import admin_limit
from featurewatch.kafka.messages import (
    AlterPartitionReassignmentsRequestV0,
    AlterPartitionReassignmentsRequestV1,
    AlterReplicaLogDirsRequestV2,
    CreatePartitionsRequestV3,
    CreateTopicsRequestV7,
    CreateTopicsResponseV7,
    DeleteTopicsRequestV6,
    DescribeConfigsRequestV4,
    DescribeLogDirsRequestV4,
    DescribeTopicPartitionsRequestV0,
    DescribeTopicPartitionsResponseV0,
    ElectLeadersRequestV2,
    IncrementalAlterConfigsRequestV1,
    ListPartitionReassignmentsRequestV0,
    MetadataRequestV12,
    Request,
    response_class,
)
from featurewatch.streams.types import NodeId
from tests.admin.scripted_brokers import Answer, ScriptedBrokers

pytestmark = pytest.mark.form("released")


def created(request: CreateTopicsRequestV7, code: int = 0) -> CreateTopicsResponseV7:
    """The same result for each topic."""
    results = (
        CreateTopicsResponseV7.CreatableTopicResult(
            name=topic.name,
            topic_id=None,
            error_code=code,
            error_message=None,
            num_partitions=1,
            replication_factor=1,
            configs=(),
        )
        for topic in request.topics
    )
    return CreateTopicsResponseV7(throttle_time_ms=0, topics=tuple(results))


def refusing(code: int) -> Answer:
    """A broker that refuses all topics."""
    return lambda request: created(request, code)


def closing(_request: Any) -> Any:
    """A broker that closes the connection instead of a response."""
    raise EOFError


def run(
    cluster: ScriptedBrokers, work: Callable[[TopicAdmin], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    """What the client's calls return."""

    async def within() -> Any:
        async with TopicAdmin(
            Bootstrap(cluster.addresses),
            connections=cluster.connections(),
            **options,
        ) as admin:
            return await work(admin)

    return asyncio.run(within())


def names(request: CreateTopicsRequestV7) -> list[str]:
    """The topics of a request."""
    return [topic.name for topic in request.topics]


def test_a_client_has_an_address() -> None:
    """Without a broker's address there is no client, whatever it would be used for (A-33)."""
    with pytest.raises(RequestError, match="the address of a broker"):
        TopicAdmin(Bootstrap(()))
    with pytest.raises(RequestError, match="through brokers"):
        TopicAdmin(Bootstrap(ScriptedBrokers(None, 1, _1=[]).addresses, controllers=True))


def test_a_controller_that_moved_is_looked_up_again() -> None:
    """After a not-controller answer the client reads the metadata again and repeats the call at the
    controller of then, for the topics that were refused so; who it is remains known (A-34). Of
    several topics each has a result, and a refusal raises nothing (A-11 as released, A-36 as
    released)."""

    def mixed(request: CreateTopicsRequestV7) -> CreateTopicsResponseV7:
        first, other = created(request).topics
        other.error_code = 41
        return CreateTopicsResponseV7(throttle_time_ms=0, topics=(first, other))

    cluster = ScriptedBrokers(CreateTopicsRequestV7, 1, 2, _1=[mixed], _2=[created, created])

    async def work(admin: TopicAdmin) -> Any:
        results = await admin.create([TopicSpec("a"), TopicSpec("b")])
        return (*results, await admin.create_topic("c", 1, 1))

    results = run(cluster, work)
    assert [(result.topic, result.error) for result in results] == [("a", 0), ("b", 0), ("c", 0)]
    assert [(node, names(request)) for node, request in cluster.received] == [
        (1, ["a", "b"]),
        (2, ["b"]),
        (2, ["c"]),
    ]


def test_no_controller_in_time_is_an_error() -> None:
    """While no broker is the controller the call is repeated until the time is up (A-34)."""
    cluster = ScriptedBrokers(CreateTopicsRequestV7, 1, _1=[refusing(41)] * 99)
    now = 0.0

    async def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    with pytest.raises(UnreachableError, match="is not the controller any more"):
        run(
            cluster,
            lambda admin: admin.create([TopicSpec("a")]),
            timeout_s=0.35,
            pause=pause,
            monotonic=lambda: now,
        )
    assert len(cluster.received) == 4


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_missing_response_leaves_a_change_unknown(validate_only: bool) -> None:
    """A change that was sent and not answered may be made or not, and is not repeated; what only
    validates changed nothing."""
    cluster = ScriptedBrokers(CreateTopicsRequestV7, 1, _1=[closing])
    expected = UnreachableError if validate_only else OutcomeUnknownError
    with pytest.raises(expected, match="closed the connection"):
        run(cluster, lambda admin: admin.create([TopicSpec("a")], validate_only=validate_only))
    assert len(cluster.received) == 1


def test_a_result_that_is_left_out_is_unknown() -> None:
    """A response without one of the topics says nothing of it."""
    cluster = ScriptedBrokers(
        CreateTopicsRequestV7,
        1,
        _1=[lambda _: CreateTopicsResponseV7(throttle_time_ms=0, topics=())],
    )
    with pytest.raises(OutcomeUnknownError, match="the change of a was applied is unknown"):
        run(cluster, lambda admin: admin.create([TopicSpec("a")]))


def test_an_answer_with_a_code_is_raised() -> None:
    """A call for one topic raises Kafka's number, name and text; a cluster that gave up waiting
    leaves the outcome unknown (A-11 as released, A-36 as released)."""
    cluster = ScriptedBrokers(CreateTopicsRequestV7, 1, _1=[refusing(36), refusing(7)])
    with pytest.raises(KafkaApiError, match="Topic with this name already exists") as refused:
        run(cluster, lambda admin: admin.create_topic("a"))
    assert (refused.value.code, refused.value.name) == (36, "TOPIC_ALREADY_EXISTS")
    with pytest.raises(OutcomeUnknownError, match="gave up waiting"):
        run(cluster, lambda admin: admin.create_topic("a"))


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda admin: admin.create([TopicSpec("a"), TopicSpec("a")]), "more than once"),
        (lambda admin: admin.create([TopicSpec("a", 2**31)]), "do not fit"),
        (lambda admin: admin.create([TopicSpec("a", 1, 2**15)]), "do not fit"),
        (lambda admin: admin.create([TopicSpec("a", assignment=[[2**31]])]), "do not fit"),
        (lambda admin: admin.create([TopicSpec("")]), "cannot be represented"),
        (lambda admin: admin.delete([""]), "cannot be represented"),
        (lambda admin: admin.add_partitions([PartitionIncrease("a", -(2**31))]), "do not fit"),
        (lambda admin: admin.alter_topic("a"), "nothing is to be changed"),
    ],
)
def test_an_impossible_request_is_not_sent(
    work: Callable[[TopicAdmin], Coroutine[Any, Any, Any]], reason: str
) -> None:
    """What does not fit into a request is an error of the caller (A-08 as released)."""
    cluster = ScriptedBrokers(CreateTopicsRequestV7, 1, _1=[])
    with pytest.raises(RequestError, match=reason):
        run(cluster, work)
    assert not cluster.received


@pytest.mark.parametrize("added", [None, {"retention.ms": "1"}])
def test_an_assignment_without_a_number_of_partitions_is_refused(
    added: dict[str, str] | None,
) -> None:
    """Released Kafka takes an assignment only for new partitions: one without their number changes
    nothing, not even the settings beside it (A-13 as released, A-36 as released)."""
    cluster = ScriptedBrokers(IncrementalAlterConfigsRequestV1, 1, _1=[])
    with pytest.raises(RequestError, match="an assignment for topic 'a' without a number of"):
        run(cluster, lambda admin: admin.alter_topic("a", assignment=[[1, 2]], added=added))
    assert not cluster.received


def test_both_forms_at_once_are_an_error() -> None:
    """A topic has counts or an assignment (A-08 as released, A-35)."""
    with pytest.raises(RequestError, match="not both"):
        TopicSpec("a", partitions=1, assignment=[[1]])
    assert TopicSpec("a", assignment=[[1, 2]]).partitions is None


def test_an_api_that_a_broker_lacks_is_named() -> None:
    """A broker before 3.3 is refused in one line, before anything is sent."""
    cluster = ScriptedBrokers(None, 1, _1=[])
    with pytest.raises(UnreachableError, match="no version 0 of the API 46"):
        run(cluster, lambda admin: admin.reassignments())


def test_the_next_broker_is_asked_what_one_fails_to_answer() -> None:
    """What reads is asked of the next bootstrap broker, and in the end the errors are given."""
    nothing = b"\0\0\0\0\x01\0"  # not throttled, no results
    cluster = ScriptedBrokers(
        DescribeConfigsRequestV4, 1, _1=[closing], _2=[lambda _: nothing, closing]
    )
    assert run(cluster, lambda admin: admin.configs(["a"])) == {}
    assert [node for node, _ in cluster.received] == [1, 2]
    cluster.answers[1].append(closing)
    with pytest.raises(UnreachableError, match=r"broker-1.*broker-2"):
        run(cluster, lambda admin: admin.configs(["a"]))


def test_responses_are_bounded_by_what_a_cluster_has() -> None:
    """A list of all partitions may be larger than other responses, and none is without bounds."""
    nothing = b"\0\0\0\0\x01\0"  # not throttled, no results
    cluster = ScriptedBrokers(DescribeConfigsRequestV4, 1, _1=[lambda _: nothing])

    async def work(admin: TopicAdmin) -> Any:
        return await admin.configs(["a"]), await admin.overview()

    run(cluster, work)
    assert (cluster.response_limits[32], cluster.response_limits[3]) == (16 << 20, 64 << 20)
    settings, partitions = admin_limit(32), admin_limit(3)
    assert (settings.max_items, partitions.max_items) == (250_000, 4_000_000)
    assert {key for key in range(100) if admin_limit(key) != settings} == {3, 35, 46}


REQUESTS: list[type[Request[Any]]] = [
    AlterPartitionReassignmentsRequestV0,
    AlterPartitionReassignmentsRequestV1,
    AlterReplicaLogDirsRequestV2,
    CreatePartitionsRequestV3,
    CreateTopicsRequestV7,
    DeleteTopicsRequestV6,
    DescribeConfigsRequestV4,
    DescribeLogDirsRequestV4,
    DescribeTopicPartitionsRequestV0,
    ElectLeadersRequestV2,
    IncrementalAlterConfigsRequestV1,
    ListPartitionReassignmentsRequestV0,
    MetadataRequestV12,
]
"""Every request of the admin clients."""


@pytest.mark.parametrize("request_class", REQUESTS)
def test_each_request_names_its_response(request_class: type[Request[Any]]) -> None:
    """One send serves all: a request's response is of the same API and version (A-41)."""
    response = response_class(request_class.__new__(request_class))
    assert response.__name__.removesuffix("Response") == request_class.__name__.removesuffix(
        "Request"
    )
    assert (response.__api_key__, response.__version__) == (
        request_class.__api_key__,
        request_class.__version__,
    )
    assert response.__flexible__ is request_class.__flexible__ is True


CURSOR: Any = DescribeTopicPartitionsRequestV0.Cursor(topic_name="a", partition_index=3)


@pytest.mark.parametrize("cursor", [None, CURSOR])
def test_a_structure_may_be_missing(cursor: Any) -> None:
    """A cursor is written with a byte before it, which tells whether there is one (KIP-893)."""
    content = write_entity(
        DescribeTopicPartitionsRequestV0(topics=(), response_partition_limit=5, cursor=cursor)
    )
    assert content == bytes([1, 0, 0, 0, 5]) + (
        b"\xff\0" if cursor is None else b"\x01\x02a\0\0\0\x03\0\0"
    )
    request, end = read_entity(DescribeTopicPartitionsRequestV0, content)
    assert end == len(content)
    assert (request.cursor is None) == (cursor is None)


def page(name: str, *partitions: int, end: int | None = None) -> Any:
    """A page with partitions of one topic; the next one begins at ``end``."""
    form, ids = DescribeTopicPartitionsResponseV0, (NodeId(1),)
    described = (
        form.DescribeTopicPartitionsResponsePartition(
            error_code=0,
            partition_index=item,
            leader_id=1,
            leader_epoch=0,
            replica_nodes=ids,
            isr_nodes=ids,
            eligible_leader_replicas=None,
            last_known_elr=None,
            offline_replicas=(),
        )
        for item in partitions
    )
    topic = form.DescribeTopicPartitionsResponseTopic(
        error_code=0, name=name, topic_id=uuid.UUID(int=7), partitions=tuple(described)
    )
    cursor = None if end is None else form.Cursor(topic_name=name, partition_index=end)
    return form(throttle_time_ms=0, topics=(topic,), next_cursor=cursor)


def test_pages_are_joined_and_end() -> None:
    """A topic whose partitions come in pages is one (A-16 as released); pages that do not advance
    are an error."""
    pages = [page("a", 0, 1), page("a", 2), page("b", 0)]
    topics = joined_pages(described_topic(item.topics[0]) for item in pages)
    assert [(item.name, [part.partition for part in item.partitions]) for item in topics] == [
        ("a", [0, 1, 2]),
        ("b", [0]),
    ]
    repeated = [lambda _: page("a", 0, end=1)] * 9
    cluster = ScriptedBrokers(DescribeTopicPartitionsRequestV0, 1, _1=repeated)
    with pytest.raises(UnreachableError, match="without an end"):
        run(cluster, lambda admin: admin.describe(["a"]))
    assert len(cluster.received) == 2


def test_topic_ids_are_those_of_kafka() -> None:
    """As ``Uuid`` prints and reads them, with its errors."""
    topic_id = topic_id_of("AAAAAAAAAAAAAAAAAAAAAQ")
    assert topic_id == uuid.UUID(int=1)
    assert text_of_id(uuid.UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert topic_id_of("A" * 22) is None
    for text, reason in (("abc", "decoded as 2 bytes"), ("A" * 30, "too long"), ("ä!", "base64")):
        with pytest.raises(RequestError, match=reason):
            topic_id_of(text)


def test_refusals_come_before_what_is_unknown() -> None:
    """A refusal is raised though the outcome of another topic is not known; all good is silent."""
    unknown, refused, good = ChangedTopic("a", 7), ChangedTopic("b", 3), ChangedTopic("c")
    check_changes([good])
    with pytest.raises(KafkaApiError, match="does not host this topic-partition"):
        check_changes([good, unknown, refused])
    with pytest.raises(OutcomeUnknownError, match="change of a was"):
        check_changes([good, unknown])
