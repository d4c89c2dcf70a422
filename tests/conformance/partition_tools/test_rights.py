"""The rights that admin.md lists, each with an authorizer: with them, and without each one."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.common.private_files import write_private
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.address import parse_addresses
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import NodeSpec, Roles
from tests.conformance.kafka_tools import ELECT, REASSIGN, CommandResult, KafkaTools, OurCommand
from tests.conformance.partition_tools.tools import PartitionTools, write_assignment
from tests.guarded import JAAS, guarded_node
from tests.paths import ROOT
from tests.waiting import eventually

pytestmark = pytest.mark.form("released")

FILE = "--reassignment-json-file"
MAY_NOT = "may-not"
GUEST = "guest"
"""A login without rights."""


class Without(NamedTuple):
    """What a command does without a right: its exit code, and what it prints or does not."""

    code: int = 1
    shows: str = "this login lacks {right}: docs/how-to/admin.md lists"
    hides: str = ""


REFUSED: Final = Without()
DESCRIBE, DESCRIBE_CONFIGS = "Describe on the topic", "DescribeConfigs on the topic"
ALTER, ALTER_CONFIGS = "Alter on the topic", "AlterConfigs on the topic"
DESCRIBE_CLUSTER, ALTER_CLUSTER = "Describe on the cluster", "Alter on the cluster"
ALTER_CLUSTER_CONFIGS = "AlterConfigs on the cluster"


class Case(NamedTuple):
    """A command as the page has it, its arguments, and what happens without each right.

    In a line ``%`` is the topic and ``@`` a file that reassigns it. A login that lacks a right has
    ``beside``, which the missing one includes.
    """

    command: str
    line: str
    rights: dict[str, Without]
    shows: str = ""
    beside: tuple[str, ...] = ()


CASES: Final = (
    Case("topics list", "topics list", {DESCRIBE: Without(0, "", "%")}, shows="%"),
    Case(
        "topics describe",
        "topics describe --topic %",
        {
            DESCRIBE: REFUSED,
            DESCRIBE_CONFIGS: REFUSED,
            DESCRIBE_CLUSTER: Without(0, "PartitionCount: 1"),
        },
    ),
    Case(
        "topics create",
        "topics create --topic %-new --partitions 1 --replication-factor 1",
        {"Create on the topic or on the cluster": REFUSED},
        shows="Created topic",
    ),
    Case(
        "topics alter --partitions",
        "topics alter --topic % --partitions 2",
        {ALTER: REFUSED},
        beside=(DESCRIBE,),
    ),
    Case(
        "topics alter --add-config, --delete-config",
        "topics alter --topic % --add-config retention.ms=99 --delete-config segment.ms",
        {DESCRIBE: REFUSED, ALTER_CONFIGS: REFUSED},
        shows="Completed updating config",
    ),
    Case(
        "topics delete",
        "topics delete --topic %",
        {"Delete on the topic": REFUSED},
        beside=(DESCRIBE,),
    ),
    Case(
        "topics delete --dry-run, and its question",
        "topics delete --topic % --dry-run",
        {DESCRIBE: REFUSED, DESCRIBE_CLUSTER: Without(0, "the sizes are not known")},
        shows="0 bytes",
    ),
    Case("cluster metadata", "cluster metadata", {}, shows="Broker: 1"),
    Case("reassign list", "reassign list", {DESCRIBE_CLUSTER: REFUSED}),
    Case(
        "reassign generate",
        "reassign generate --topics-to-move-json-file @topics --broker-list 1",
        {DESCRIBE: REFUSED, DESCRIBE_CLUSTER: REFUSED},
        shows="Proposed partition",
    ),
    Case(
        "reassign execute --dry-run",
        f"reassign execute {FILE} @ --dry-run",
        {DESCRIBE: REFUSED, DESCRIBE_CLUSTER: REFUSED},
        shows="0 replicas to copy",
    ),
    Case(
        "reassign execute",
        f"reassign execute {FILE} @",
        {DESCRIBE: REFUSED, ALTER_CLUSTER: Without(1, "this login lacks")},
        shows="Successfully started",
    ),
    Case(
        "reassign execute --throttle",
        f"reassign execute {FILE} @ --throttle 9999999",
        {
            DESCRIBE: REFUSED,
            ALTER_CLUSTER: Without(1, "this login lacks"),
            ALTER_CONFIGS: REFUSED,
            ALTER_CLUSTER_CONFIGS: REFUSED,
        },
        shows="Successfully started",
    ),
    Case(
        "reassign verify",
        f"reassign verify {FILE} @",
        {
            DESCRIBE: REFUSED,
            DESCRIBE_CLUSTER: REFUSED,
            ALTER_CONFIGS: REFUSED,
            ALTER_CLUSTER_CONFIGS: REFUSED,
        },
        shows="Clearing topic-level throttles",
    ),
    Case(
        "reassign verify --preserve-throttles",
        f"reassign verify {FILE} @ --preserve-throttles",
        {DESCRIBE: REFUSED, DESCRIBE_CLUSTER: REFUSED},
        shows="is completed",
    ),
    Case(
        "elect preferred",
        "elect preferred --topic % --partition 0",
        {ALTER_CLUSTER: REFUSED},
        shows="Valid replica already elected",
    ),
    Case(
        "elect unclean",
        "elect unclean --topic % --partition 0",
        {ALTER_CLUSTER: REFUSED},
        shows="Valid replica already elected",
    ),
    Case(
        "elect --dry-run",
        "elect preferred --topic % --partition 0 --dry-run",
        {DESCRIBE: REFUSED},
        shows="-0: ",
    ),
)
# What is canceled has to run: these come last, when it does.
CANCELED: Final = (
    Case(
        "reassign cancel --preserve-throttles",
        f"reassign cancel {FILE} @ --preserve-throttles",
        {ALTER_CLUSTER: Without(1, "this login lacks")},
        shows="Successfully cancelled",
    ),
    Case(
        "reassign cancel",
        f"reassign cancel {FILE} @",
        {
            ALTER_CLUSTER: Without(1, "this login lacks"),
            ALTER_CLUSTER_CONFIGS: REFUSED,
            ALTER_CONFIGS: REFUSED,
        },
        shows="Clearing topic-level throttles",
    ),
    # The broker that is down, since it would register again.
    Case(
        "cluster unregister-broker, unregister-controller",
        "cluster unregister-broker --id 2",
        {ALTER_CLUSTER: REFUSED},
        shows="Broker 2 is no longer registered",
    ),
)
ALL: Final = (*CASES, *CANCELED)


def test_the_page_has_these_rights() -> None:
    """The table of docs/how-to/admin.md lists just the commands and rights that are tested here."""
    page = (ROOT / "docs" / "how-to" / "admin.md").read_text()
    lines = [line for line in page.split("## Rights")[1].splitlines() if line.startswith("|")]
    listed, command = set(), ""
    for first, right, _ in (line.strip("|").split("|") for line in lines[2:]):
        command = first.replace("`", "").strip() or command
        listed.add((command, right.strip()))
    tested = {(case.command, right) for case in ALL for right in case.rights or ("none",)}
    assert listed == tested


def topic_of(number: int) -> str:
    """The topic of a case."""
    return f"rights-{number}"


def login(number: int, right: int | None) -> str:
    """The login of a case with all rights, or without one of them."""
    return f"user-{number}-{'all' if right is None else right}"


def logins() -> Iterator[tuple[str, list[AclBinding]]]:
    """Every login with its rights."""
    for number, case in enumerate(ALL):
        for left_out in (None, *range(len(case.rights))):
            user = login(number, left_out)
            rights = [right for at, right in enumerate(case.rights) if at != left_out]
            rights += case.beside if left_out is not None else ()
            yield user, [binding(user, right, topic_of(number)) for right in rights]


def binding(user: str, right: str, topic: str) -> AclBinding:
    """A right by its text: of topics whose names begin so, or of the cluster."""
    of_topic = "topic" in right
    operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", right.split()[0]).upper()
    return AclBinding(
        ResourceType.TOPIC if of_topic else ResourceType.BROKER,
        topic if of_topic else "kafka-cluster",
        ResourcePatternType.PREFIXED if of_topic else ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


@dataclass
class Guarded:
    """A node with an authorizer, and a broker beside it; a listener for logins."""

    cluster: Cluster
    listener: str
    directory: Path

    def where(self, user: str) -> tuple[str, ...]:
        """The options that name the cluster and the login."""
        config = self.directory / f"{user}.properties"
        if not config.exists():
            write_private(
                config,
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
                f'sasl.jaas.config={JAAS} \\\n  username="{user}" password="{MAY_NOT}";\n',
            )
        return ("--bootstrap-server", self.listener, "--command-config", str(config))


@pytest.fixture(scope="module")
def guarded(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The cluster, with the logins, their rights and a topic for each case."""
    directory = tmp_path_factory.mktemp("rights")
    users = dict.fromkeys((GUEST, *dict(logins())), MAY_NOT)
    others = [NodeSpec(2, "4.3.0", Roles.BROKER)]
    with guarded_node(directory / "c", stack_cache, users, others=others) as running:
        cluster = running.cluster
        node = Guarded(cluster, running.broker, directory)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = [
            NewTopic(topic_of(number), replica_assignment=[[1]], num_partitions=1)
            for number in range(len(ALL))
        ]
        rights = [one for _, bindings in logins() for one in bindings]
        futures = [*admin.create_topics(topics).values(), *admin.create_acls(rights).values()]
        for future in futures:
            future.result(60)
        yield node


def differences(
    guarded: Guarded, ours: OurCommand, number: int, case: Case
) -> Iterator[tuple[object, ...]]:
    """What a command does otherwise without each right, and then with all of them."""
    topic = topic_of(number)
    file = write_assignment(guarded.directory / topic, {TopicPartition(topic, 0): (1,)})
    topics = guarded.directory / f"{topic}-topics"
    topics.write_text(f'{{"version":1,"topics":[{{"topic":"{topic}"}}]}}')
    line = case.line.replace("%", topic).replace("@topics", str(topics)).replace("@", file)

    def run(left_out: int | None) -> CommandResult:
        return ours(*line.split(), *guarded.where(login(number, left_out)))

    for at, (right, without) in enumerate(case.rights.items()):
        result = run(at)
        is_hidden = without.hides.replace("%", topic) not in result.out.split()
        is_shown = without.shows.format(right=right) in result.out + result.err
        is_one_line = result.err.count("lacks") <= 1
        if result.code != without.code or not (is_hidden and is_shown and is_one_line):
            yield case.command, right, result
        assert MAY_NOT not in result.out + result.err
    result = run(None)
    is_shown = case.shows.replace("%", topic) in result.out
    if result.code or not is_shown or "lacks" in result.err:
        yield case.command, result


@pytest.mark.stack
def test_each_right_is_needed_and_all_are_enough(guarded: Guarded, ours: OurCommand) -> None:
    """With the rights of the table a command works; without one it says which one is missing, by
    Kafka's name, and ends as documented (A-22 as released, A-39 as
    released)."""
    # The broker knows of rights later than the controller that has stored them.
    first = guarded.where(login(0, None))
    assert eventually(lambda: topic_of(0) in ours("topics", "list", *first).out, 60)
    last = guarded.where(login(len(ALL) - 1, None))
    assert eventually(lambda: ours("elect", "preferred", *last, "--all-topic-partitions").code == 0)
    found = [
        difference
        for number, case in enumerate(CASES)
        for difference in differences(guarded, ours, number, case)
    ]
    guarded.cluster.node(2).kill()  # so that what is moved there is never completed
    for number, case in enumerate(CANCELED, len(CASES)):
        asyncio.run(begin_move(guarded.cluster, TopicPartition(topic_of(number), 0)))
        found += differences(guarded, ours, number, case)
    assert found == []


async def begin_move(cluster: Cluster, partition: TopicPartition) -> None:
    """Starts a reassignment to the broker that is down."""
    bootstrap = Bootstrap(parse_addresses(cluster.bootstrap_servers.split(",")[0]))
    async with ReassignmentAdmin(bootstrap) as admin:
        assert await admin.start({partition: (1, 2)}) == {partition: None}


def comparable(result: CommandResult) -> CommandResult:
    """A result without the request that the server describes, which is another each time."""
    shown = re.sub(r"Request\(.*\)", "Request(…)", result.out)
    return CommandResult(result.code, shown, result.err)


@pytest.mark.stack
def test_a_login_without_rights_is_refused_as_by_the_tools(
    guarded: Guarded, ours: OurCommand, tools_of: Callable[[str], KafkaTools], tmp_path: Path
) -> None:
    """list, verify, execute and elect: the same text and code as the tools have, and no password
    in it (A-22 as released, A-39 as
    released)."""
    tools = PartitionTools(tools_of("4.3.0"))
    file = write_assignment(tmp_path / "file", {TopicPartition("t", 0): (1,)})
    by = guarded.where(GUEST)
    for action, *options in (("list",), *((one, FILE, file) for one in ("verify", "execute"))):
        expected = tools(REASSIGN, f"--{action}", *by, *options)
        result = ours.as_the_tool("reassign", action, *by, *options)
        assert comparable(result) == comparable(expected)
        assert expected.out.startswith("Error: org.apache.kafka.common.errors.ClusterAuth")
    where = ("--topic", "t", "--partition", "0")
    expected = tools(ELECT, "--election-type", "preferred", *by, *where)
    result = ours.as_the_tool("elect", "preferred", *by, *where)
    assert comparable(result) == comparable(expected)
    assert expected.out == "Not authorized to perform leader election\n"
