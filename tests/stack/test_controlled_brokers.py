"""Real brokers of Kafka 3.9.1 under featurewatch's own controllers, with traffic throughout."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from featurewatch.admin import (
    DraftAdminClient,
    DraftApiError,
    OperationState,
    RequestError,
    TopicPartition,
    UnreachableError,
)
from featurewatch.admin.kip4 import client as kip_4
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.messages import IncrementalAlterConfigsRequestV1, ListTopicsRequestV0
from featurewatch.stack.java.jars import Cache
from tests.admin.api_script import ApiScript, Mode, api_script
from tests.conformance.kafka_tools import CommandResult, OurCommand
from tests.python_examples import examples_in_docstring, examples_in_page, replaced, run_example
from tests.stack.controlled_cluster import TOPIC, ControlledCluster, controlled_stack
from tests.stack.controlled_steps import PARTITIONS, RECOVERY_S, lose_broker, reassign
from tests.stack.traffic import Traffic
from tests.waiting import eventually

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def cluster(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlledCluster]:
    """Three brokers under our controllers, started by the command."""
    with controlled_stack(stack_cache, tmp_path_factory.mktemp("controlled")) as controlled:
        yield controlled


def test_real_brokers_and_kafkas_tools_under_our_controller(
    cluster: ControlledCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every acknowledged message is read, none out of order, whatever happens to the cluster.

    Brokers are killed, restarted and shut down in order, partitions are reassigned and a topic is
    deleted by Kafka's own tools, and the controller is killed and replaced (C-01, C-20).
    """
    created = cluster.tool(
        "TopicCommand",
        *("--create", "--topic", TOPIC),
        *("--partitions", str(PARTITIONS), "--replication-factor", "2"),
    )
    assert created.strip() == f"Created topic {TOPIC}."
    with Traffic(cluster.servers, TOPIC, PARTITIONS) as traffic:
        assert eventually(lambda: traffic.acknowledged_count > 200, RECOVERY_S)

        @contextmanager
        def step(name: str) -> Iterator[None]:
            traffic.longest_wait_s()
            yield
            assert eventually(cluster.is_in_sync, RECOVERY_S), (name, cluster.partitions())
            with capsys.disabled():
                sys.stdout.write(f"\n  {name}: longest wait {traffic.longest_wait_s():.2f} s")

        with step("broker killed and restarted"):
            lose_broker(cluster, "kill", 1, traffic)
        with step("broker shut down and started"):
            lose_broker(cluster, "stop", 2, traffic)
        with step("partitions reassigned"):
            reassign(cluster, tmp_path)
        with step("znodes broken"):
            break_znodes(cluster)
        with step("controller killed"):
            first = cluster.controller()
            assert first in (101, 102)
            cluster.node("kill", f"controller-{first - 100}")
            assert eventually(lambda: cluster.controller() == 203 - first, RECOVERY_S)
            cluster.node("start", f"controller-{first - 100}")
        with step("preferred leaders elected, broker killed under the new controller"):
            lose_broker(cluster, "kill", 3, traffic)
            assert eventually(cluster.is_in_sync, RECOVERY_S)
            cluster.tool(
                "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
            )
            assert eventually(cluster.is_led_by_the_preferred, RECOVERY_S), cluster.partitions()
        delete_topic(cluster)
        traffic.end_writing()
        assert eventually(lambda: traffic.unread_count == 0, RECOVERY_S)
    assert traffic.errors == []
    assert traffic.order_errors() == []
    assert "Traceback" not in cluster.log(101) + cluster.log(102)


def break_znodes(cluster: ControlledCluster) -> None:
    """What cannot be read is one line of the log and disturbs nothing else."""
    controller_id = cluster.controller()
    assert controller_id is not None
    znodes = {
        "/brokers/topics/broken": b"not json",
        "/admin/reassign_partitions": b"[1]",
        "/admin/preferred_replica_election": b'{"version": 9}',
        "/brokers/topics/nowhere": b'{"version":1,"partitions":{"0":[77,78]}}',
    }
    for path, data in znodes.items():
        cluster.zookeeper.create(path, data)
    lines = (
        "cannot read the assignment of topic broken",
        "cannot read /admin/reassign_partitions",
        "cannot read /admin/preferred_replica_election",
        "partition nowhere-0 cannot be",
    )
    assert eventually(lambda: all(line in cluster.log(controller_id) for line in lines))
    for path in ("/brokers/topics/broken", "/brokers/topics/nowhere", "/admin/reassign_partitions"):
        cluster.zookeeper.delete(path, recursive=True)


def delete_topic(cluster: ControlledCluster) -> None:
    """Deletes a topic by kafka-topics; in the end its znodes are removed and the name is free."""

    def names() -> list[str]:
        return list(cluster.zookeeper.get_children("/brokers/topics"))

    cluster.tool("TopicCommand", "--create", "--topic", "gone", "--partitions", "2")
    assert "gone" in names()
    cluster.settle("gone")
    cluster.tool("TopicCommand", "--delete", "--topic", "gone")
    assert eventually(lambda: "gone" not in names(), RECOVERY_S)
    assert eventually(lambda: "gone" not in cluster.tool("TopicCommand", "--list"), RECOVERY_S)


# -- administration --------------------------------------------------------------------------------


def plan(directory: Path, topic: str, *targets: list[int]) -> tuple[str, str]:
    """The option of kafka-reassign-partitions with the replicas of the partitions from 0 on."""
    entries = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for number, replicas in enumerate(targets)
    ]
    file = directory / f"{topic}.json"
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    return ("--reassignment-json-file", str(file))


@pytest.mark.form("released")
def test_kafkas_own_topic_tool_runs_unmodified(cluster: ControlledCluster) -> None:
    """kafka-topics and kafka-configs, with the texts that they print under Kafka's own controller
    (A-08 as released, A-09, A-10, A-13 as released, A-14 as released)."""
    name = ("--topic", "made")
    create = ("--create", *name, "--replica-assignment", "1:2,2:3", "--config", "flush.ms=1000")
    assert cluster.tool("TopicCommand", *create).strip() == "Created topic made."
    cluster.settle("made")
    failed = "Error while executing topic command : "
    again = cluster.tool("TopicCommand", "--create", *name, code=1)
    assert again.splitlines()[0] == failed + "Topic 'made' already exists."
    large = ("--create", "--topic", "large", "--replication-factor", "9")
    assert cluster.tool("TopicCommand", *large, code=1).splitlines()[0] == (
        failed + "Replication factor: 9 larger than available brokers: 3."
    )
    lists = ("--partitions", "3", "--replica-assignment", "1:2,2:3,3:1")
    assert cluster.tool("TopicCommand", "--alter", *name, *lists) == ""
    cluster.settle("made")
    fewer = cluster.tool("TopicCommand", "--alter", *name, "--partitions", "2", code=1)
    assert fewer.splitlines()[0] == (
        failed + "Topic currently has 3 partitions, which is higher than the requested 2."
    )
    entity = ("--entity-type", "topics", "--entity-name", "made")
    added = cluster.tool(
        "kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "retention.ms=5000"
    )
    assert added.strip() == "Completed updating config for topic made."
    described = cluster.tool("TopicCommand", "--describe", *name).splitlines()
    assert described[0].split("\t")[2:4] == ["PartitionCount: 3", "ReplicationFactor: 2"]
    configs = described[0].split("\t")[4].removeprefix("Configs: ")
    assert {*configs.split(",")} == {"flush.ms=1000", "retention.ms=5000"}
    assert [line.split("\t")[1:6] for line in described[1:]] == [
        [
            "Topic: made",
            f"Partition: {number}",
            f"Leader: {replicas[0]}",
            f"Replicas: {replicas}",
            f"Isr: {replicas}",
        ]
        for number, replicas in enumerate(["1,2", "2,3", "3,1"])
    ]
    assert cluster.tool("TopicCommand", "--delete", *name) == ""
    assert eventually(lambda: "made" not in cluster.tool("TopicCommand", "--list").splitlines())


@pytest.mark.form("released")
def test_kafkas_own_reassignment_and_election_tools_run_unmodified(
    cluster: ControlledCluster, tmp_path: Path
) -> None:
    """Started, listed, verified, canceled and refused; elected and refused (A-22 as released,
    A-24, A-25 as released, A-30 as released)."""
    reassign, topics = "reassign.ReassignPartitionsCommand", "TopicCommand"
    cluster.tool(topics, "--create", "--topic", "heavy", "--replica-assignment", "1:2")
    cluster.settle("heavy")
    producer = Producer({"bootstrap.servers": cluster.servers})
    for _ in range(60):
        producer.produce("heavy", b"x" * 100_000, partition=0)
    assert producer.flush(60) == 0
    throttle(cluster, "heavy", 1, 3)
    move = plan(tmp_path, "heavy", [1, 3])
    started = cluster.tool(reassign, "--execute", *move, "--throttle", "1000").splitlines()
    assert started[-2:] == [
        "The inter-broker throttle limit was set to 1000 B/s",
        "Successfully started partition reassignment for heavy-0",
    ]
    assert cluster.tool(reassign, "--list").splitlines() == [
        "Current partition reassignments:",
        "heavy-0: replicas: 1,3,2. adding: 3. removing: 2.",
    ]
    running = cluster.tool(reassign, "--verify", *move).splitlines()
    assert running[:2] == [
        "Status of partition reassignment:",
        "Reassignment of partition heavy-0 is still in progress.",
    ]
    more = cluster.tool(topics, "--alter", "--topic", "heavy", "--partitions", "2", code=1)
    assert more.splitlines()[0] == (
        "Error while executing topic command : A partition reassignment is in progress for the "
        "topic 'heavy'."
    )
    canceled = cluster.tool(reassign, "--cancel", *move).splitlines()
    assert canceled[0] == "Successfully cancelled partition reassignment for: heavy-0"
    cluster.settle("heavy")
    other = cluster.tool(reassign, "--verify", *move).splitlines()
    assert other[1] == (
        "There is no active reassignment of partition heavy-0, but replica set is 1,2 rather than "
        "1,3."
    )
    elect = ("LeaderElectionCommand", "--election-type", "preferred", "--partition", "0")
    assert cluster.tool(*elect, "--topic", "heavy").strip() == (
        "Valid replica already elected for partitions heavy-0"
    )
    assert cluster.tool(*elect, "--topic", "nowhere", code=1).strip() == (
        "Error completing leader election (PREFERRED) for partition: nowhere-0: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "The partition does not exist."
    )


def throttle(cluster: ControlledCluster, topic: str, *broker_ids: int) -> None:
    """Slows the replication of a topic down before the tool does it at once with its start.

    Brokers learn of settings a moment later; by the time that the tool runs, these have.
    """

    def resource(kind: str, name: str, value: str, *settings: str) -> ConfigResource:
        operation = AlterConfigOpType.SET
        entries = [
            ConfigEntry(setting, value, incremental_operation=operation) for setting in settings
        ]
        return ConfigResource(kind, name, incremental_configs=entries)

    sides = ("leader", "follower")
    resources = [
        resource("topic", topic, "*", *(f"{side}.replication.throttled.replicas" for side in sides))
    ]
    rates = [f"{side}.replication.throttled.rate" for side in sides]
    resources += [resource("broker", str(broker_id), "1000", *rates) for broker_id in broker_ids]
    for wanted in resources:  # one request has the settings of one broker at most
        for changed in cluster.admin.incremental_alter_configs([wanted]).values():
            changed.result(60)


CHANGES: list[tuple[str, list[tuple[str, int, str | None]]]] = [
    ("orders-2", [("nosuch", 0, "1")]),
    ("orders-2", [("retention.ms", 0, "x")]),
    ("orders-2", [("cleanup.policy", 0, "x")]),
    ("orders-2", [("min.cleanable.dirty.ratio", 0, "2")]),
    ("orders-2", [("leader.replication.throttled.replicas", 0, "x")]),
    ("orders-2", [("retention.ms", 0, None)]),
    ("orders-2", [("retention.ms", 2, "1")]),
    ("orders-2", [("retention.ms", 3, "1")]),
    ("orders-2", [("nosuch", 1, None)]),
    ("orders-2", [("cleanup.policy", 2, "compact")]),
    ("orders-2", [("retention.ms", 0, "1"), ("retention.ms", 0, "2")]),
    ("orders-2", [("min.compaction.lag.ms", 0, "10"), ("max.compaction.lag.ms", 0, "5")]),
    ("nowhere", [("retention.ms", 0, "1")]),
]


async def test_our_controller_refuses_settings_as_a_broker_does(cluster: ControlledCluster) -> None:
    """Clients send IncrementalAlterConfigs to any node: the same code and text from both."""
    controller_id = cluster.controller()
    assert controller_id is not None
    cluster.admin.create_topics([NewTopic("orders-2", 1, 1)])["orders-2"].result(60)
    results = []
    for address in (cluster.servers.split(",")[0], cluster.controllers()[controller_id]):
        connection = await open_connection(Address.parse(address), timeout_s=30.0)
        try:
            results.append([await altered(connection, *change) for change in CHANGES])
        finally:
            await connection.close()
    assert results[0] == results[1]
    assert [code for code, _ in results[0]].count(0) == 2


async def altered(
    connection: Connection, topic: str, changes: list[tuple[str, int, str | None]]
) -> tuple[int, str | None]:
    """The error of a validated change of a topic's settings."""
    form = IncrementalAlterConfigsRequestV1
    configs = tuple(
        form.AlterableConfig(name=name, config_operation=operation, value=value)
        for name, operation, value in changes
    )
    resource = form.AlterConfigsResource(resource_type=2, resource_name=topic, configs=configs)
    request = form(resources=(resource,), validate_only=True)
    (result,) = (await connection.request(request, 30.0)).responses
    return result.error_code, result.error_message


@pytest.mark.form("document")
async def test_the_draft_of_kip_4_administers_real_brokers(cluster: ControlledCluster) -> None:
    """Topics, reassignments and elections, and calls that outlive the controller (A-01, A-07, A-21,
    A-34, A-35, A-37, A-39)."""
    first = cluster.controller()
    assert first is not None
    addresses = cluster.controllers()
    properties = {"bootstrap.servers": ",".join(addresses.values())}
    async with DraftAdminClient(properties) as draft:
        await draft.create_topic_with_assignment("drafted", "1:2,2:3", {"flush.ms": "1000"})
        assert "drafted" in await draft.list_topics()
        moves = [
            {"topic": "drafted", "partition": number, "replicas": replicas}
            for number, replicas in ((0, [3, 1]), (1, [1, 2]))
        ]
        text = json.dumps({"partitions": moves, "version": 1})
        await asyncio.wait_for(draft.reassign_partitions(text), RECOVERY_S)
        assert {*(await draft.verify_reassign_partitions(text)).values()} == {1}
        heads = json.dumps({"partitions": moves})
        await asyncio.wait_for(draft.preferred_replica_leader_election(heads), RECOVERY_S)
        topic = await draft.describe_topic("drafted")
        assert [(part.leader, part.replicas, {*part.isr}) for part in topic.partitions] == [
            (3, (3, 1), {1, 3}),
            (1, (1, 2), {1, 2}),
        ]
        with pytest.raises(DraftApiError, match="drafted-0: Replica assignment has brokers that"):
            await draft.reassign_partitions(text.replace("[3, 1]", "[1, 9]"))
        await asyncio.to_thread(cluster.node, "kill", f"controller-{first - 100}")
        # A request that only reads is repeated until another controller serves it.
        assert "drafted" in await draft.list_topics()
        assert draft.cluster is not None
        assert str(draft.cluster.controller) == addresses[203 - first]
        await draft.alter_topic("drafted", 3, added_configs={"retention.ms": "5000"})
        await asyncio.to_thread(cluster.node, "start", f"controller-{first - 100}")
        assert len((await draft.describe_topic("drafted")).partitions) == 3
        await draft.delete_topic("drafted")
        assert "drafted" not in await draft.list_topics()
    assert await asyncio.to_thread(eventually, lambda: first in cluster.controllers(), RECOVERY_S)
    standby = Address.parse(cluster.controllers()[first])
    connection = await open_connection(standby, timeout_s=30.0)
    try:
        refused = await connection.request(ListTopicsRequestV0(), 30.0)
        assert refused.error_code == 22
        assert refused.error_description == (
            f"Target broker (id={first}) is not serving a controller's role."
        )
    finally:
        await connection.close()


DRAFT_NEVER_REFUSES = {"connect", "close", "cluster"}
READS_ALL = {"list_topics", "list_topics_marked_for_deletion", "update_cluster_metadata"}
"""A controller has no reason to refuse these."""


async def draft_calls(api: ApiScript, name: str) -> None:
    """Every public method of the draft's client, with what it returns and what it refuses."""
    move = json.dumps(
        {"partitions": [{"topic": name, "partition": 0, "replicas": [3, 1]}], "version": 1}
    )
    heads = json.dumps({"partitions": [{"topic": name, "partition": 0}]})
    wrong = move.replace(name, "nowhere")
    moved = {TopicPartition(name, 0): OperationState.COMPLETED}
    await api.returns("update_cluster_metadata")
    assert {1, 2, 3} <= {*(await api.returns("cluster")).brokers}
    await api.returns("create_topic", f"{name}-1", 1, 1)
    await api.refuses("create_topic", f"{name}-1", 1, 1, shows=DraftApiError)
    await api.returns("create_topic_with_assignment", name, "1:2,2:3", {"flush.ms": "5"})
    await api.refuses("create_topic_with_assignment", f"{name}-2", "x", shows=DraftApiError)
    await api.returns("alter_topic", name, 3, added_configs={"flush.ms": "6"})
    await api.refuses("alter_topic", name, 3, shows=DraftApiError)
    assert len((await api.returns("describe_topic", name)).partitions) == 3
    await api.refuses("describe_topic", "nowhere", shows=DraftApiError)
    assert name in await api.returns("list_topics")
    assert (await api.returns("reassign_partitions", move)).error_code == 0
    await api.refuses("reassign_partitions", wrong, shows=DraftApiError)
    assert (await api.returns("start_reassignment", move)).error_code == 0
    await api.refuses("start_reassignment", wrong, shows=DraftApiError)
    await api.settles("verify_reassign_partitions", move, shows=lambda states: states == moved)
    await api.refuses("verify_reassign_partitions", "{", shows=DraftApiError)
    assert (await api.returns("preferred_replica_leader_election", heads)).error_code == 0
    nowhere = heads.replace(name, "nowhere")
    await api.refuses("preferred_replica_leader_election", nowhere, shows=DraftApiError)
    assert await api.returns("verify_preferred_replica_leader_election", heads) == moved
    await api.refuses("verify_preferred_replica_leader_election", "{", shows=RequestError)
    await api.returns("delete_topic", f"{name}-1")
    await api.refuses("delete_topic", "nowhere", shows=DraftApiError)
    assert name not in await api.returns("list_topics_marked_for_deletion")
    await api.returns("delete_topic", name)
    await api.returns("close")


async def refused_by_a_broker(api: ApiScript) -> None:
    """Every call to a node of released Kafka, which is never sent a request of the draft."""
    calls: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(READS_ALL, ()),
        "create_topic": ("a", 1, 1),
        "create_topic_with_assignment": ("a", "1"),
        "alter_topic": ("a", 1),
        **dict.fromkeys(("delete_topic", "describe_topic"), ("a",)),
        **dict.fromkeys(("reassign_partitions", "start_reassignment"), ("{}",)),
        "verify_reassign_partitions": ("{}",),
        "preferred_replica_leader_election": (),
        "verify_preferred_replica_leader_election": (),
    }
    for name, arguments in calls.items():
        await api.refuses(name, *arguments, shows=UnreachableError)
    assert await api.returns("cluster") is None
    await api.returns("close")


@pytest.mark.form("document")
@pytest.mark.parametrize("mode", Mode)
async def test_every_method_of_the_drafts_client(cluster: ControlledCluster, mode: Mode) -> None:
    """On our controller, and on a broker of Kafka 3.9.1 (A-33, A-35, A-36, A-37, A-38, A-39, A-40,
    A-44, A-46)."""
    controllers = ",".join(cluster.controllers().values())
    async with api_script(DraftAdminClient.connect(controllers), mode) as api:
        await draft_calls(api, f"every-{mode}")
    api.check(DraftAdminClient, DRAFT_NEVER_REFUSES | READS_ALL)
    async with api_script(DraftAdminClient.connect(cluster.servers), mode) as api:
        await refused_by_a_broker(api)
    api.check(DraftAdminClient, DRAFT_NEVER_REFUSES)


@pytest.mark.form("document")
def test_the_examples_of_the_draft_run(cluster: ControlledCluster) -> None:
    """Of the document and of the module, as they are written but for the addresses and the topics'
    names (A-35)."""
    controllers = ",".join(cluster.controllers().values())
    (page,) = examples_in_page("explanation/kip-4.md")
    values = {
        "127.0.0.1:36727,127.0.0.1:32909": controllers,
        "orders": "page-1",
        "invoices": "page-2",
    }
    run_example(replaced(page, values), {})
    (docstring,) = examples_in_docstring(kip_4)
    values = {"127.0.0.1:9092": controllers, "orders": "docstring"}
    move = {"topic": "docstring", "partition": 0, "replicas": [3, 1]}
    names = {"json_text": json.dumps({"partitions": [move], "version": 1})}
    run_example(replaced(docstring, values), {"DraftAdminClient": DraftAdminClient, **names})


@pytest.mark.form("document")
def test_the_commands_send_the_draft_to_real_brokers(
    cluster: ControlledCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Topics, reassignments and elections by ``--dialect kip-4``; a broker of Kafka 3.9.1 is
    refused in one line (A-13, A-25, A-31, A-42)."""
    ours = OurCommand(monkeypatch, capsys, group=None)
    controllers = ",".join(cluster.controllers().values())

    def run(*arguments: str, servers: str = controllers) -> CommandResult:
        return ours(*arguments, "--dialect", "kip-4", "--bootstrap-server", servers)

    topic = ("--topic", "commanded")
    created = run("topics", "create", *topic, "--replica-assignment", "1:2,2:3")
    assert created == CommandResult(0, "Created topic commanded.\n", "")
    settings = ("--partitions", "3", "--add-config", "flush.ms=5")
    assert run("topics", "alter", *topic, *settings).code == 0
    move = plan(tmp_path, "commanded", [3, 1])
    moved = run("reassign", "execute", "--wait", *move)
    assert moved == run("reassign", "verify", *move)
    assert moved.out.splitlines()[1] == "Reassignment of partition commanded-0 is completed."
    elected = run("elect", "preferred", *topic, "--partition", "0")
    assert elected.out == (
        "Successfully completed leader election (PREFERRED) for partitions commanded-0\n"
    )
    described = run("topics", "describe", *topic).out.splitlines()
    assert described[0].split("\t")[1:] == [
        "PartitionCount: 3",
        "ReplicationFactor: 2",
        "Configs: flush.ms=5",
    ]
    assert described[1].split("\t")[3:5] == ["Leader: 3", "Replicas: 3,1"]
    assert "commanded" in run("topics", "list").out.splitlines()
    assert run("topics", "delete", *topic).out == "Topic commanded is marked for deletion.\n"
    for arguments in (
        ("topics", "delete", *topic),
        ("reassign", "execute", *move),
        ("elect", "preferred", "--all-topic-partitions"),
    ):
        refused = run(*arguments, servers=cluster.servers)
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert "does not serve the draft of KIP-4, as no released Kafka does" in refused.err
