"""What the commands about topics, reassignments and elections send: released Kafka's requests.

The node that they are sent to is the reference controller; the
classes of Kafka's schemas read the requests. The texts of the commands are compared with those of
Kafka's tools in `tests.conformance`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from tests.cli.released_node import ReleasedNode
from tests.conformance.kafka_tools import CommandResult, OurCommand
from tests.conformance.partition_tools.tools import write_assignment
from tests.reference.zookeeper.machines.controller_rig import P0

pytestmark = pytest.mark.form("released")

METADATA, CREATE, DELETE, DESCRIBE_CONFIGS, ADD_PARTITIONS = 3, 19, 20, 32, 37
ELECT, ALTER_CONFIGS, REASSIGN, LIST_REASSIGNMENTS = 43, 44, 45, 46
SET_CONFIG, DELETE_CONFIG = 0, 1


class Scene:
    """A command on a separate node."""

    def __init__(self, node: ReleasedNode, command: OurCommand) -> None:
        self.node = node
        self._command = command

    def __call__(self, line: str, *options: str) -> CommandResult:
        """What a command does; only its own requests are kept."""
        self.node.requests.clear()
        where = ("--bootstrap-server", self.node.address)
        return self._command(*line.split(), *options, *where)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    """A node that has the topic t, whose partition 0 has the replicas 1 and 2."""
    with ReleasedNode().served() as node:
        yield Scene(node, OurCommand(monkeypatch, capsys, group=None))


# -- topics ----------------------------------------------------------------------------------------


def test_topics_are_created_by_key_19(scene: Scene) -> None:
    """By counts or by an assignment, which the request has instead of them; both together are
    refused before anything is sent (A-08 as released)."""
    assert scene("topics create --topic a --partitions 2 --replication-factor 1").code == 0
    assert scene.node.sent_keys() == [CREATE]
    (topic,) = scene.node.bodies(CREATE)[0].topics
    assert (topic.num_partitions, topic.replication_factor, topic.assignments) == (2, 1, ())
    assert scene("topics create --topic b --replica-assignment 1:2,2:3").code == 0
    (topic,) = scene.node.bodies(CREATE)[0].topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [item.broker_ids for item in topic.assignments] == [(1, 2), (2, 3)]
    assert scene("topics create --topic c --partitions 1 --replica-assignment 1").code == 1
    assert scene.node.requests == []


def test_a_request_that_is_refused_with_41_is_repeated(scene: Scene) -> None:
    """NOT_CONTROLLER: the controller is looked up again (A-01 as released)."""
    scene.node.refusals = 1
    assert scene("topics create --topic a").code == 0
    assert scene.node.sent_keys() == [CREATE, CREATE]


def test_an_alteration_is_two_requests(scene: Scene) -> None:
    """Settings by IncrementalAlterConfigs, whose operation deletes one, and the new count by
    CreatePartitions (A-12 as released, A-14 as released)."""
    assert scene("topics alter --topic t --add-config flush.ms=5,retention.ms=6").code == 0
    options = ("--add-config", "flush.ms=7", "--delete-config", "retention.ms")
    assert scene("topics alter --topic t --partitions 2", *options).code == 0
    assert [key for key in scene.node.sent_keys() if key != DESCRIBE_CONFIGS] == [
        ALTER_CONFIGS,
        ADD_PARTITIONS,
    ]
    (resource,) = scene.node.bodies(ALTER_CONFIGS)[0].resources
    changes = {(item.name, item.config_operation, item.value) for item in resource.configs}
    assert changes == {("flush.ms", SET_CONFIG, "7"), ("retention.ms", DELETE_CONFIG, None)}
    (topic,) = scene.node.bodies(ADD_PARTITIONS)[0].topics
    assert (topic.name, topic.count, topic.assignments) == ("t", 2, None)
    described = json.loads(scene("topics describe --topic t --json").out)["topics"][0]
    assert (described["partition_count"], described["configs"]) == (2, {"flush.ms": "7"})


def test_an_assignment_is_of_new_partitions_alone(scene: Scene) -> None:
    """What is given for those that exist is not sent, and without a count it is nothing
    (A-13 as released)."""
    before = scene.node.rig.context.assignment(P0)
    assignment = ("--replica-assignment", "3:1,2:3,3:2")
    assert scene("topics alter --topic t --partitions 3", *assignment).code == 0
    (topic,) = scene.node.bodies(ADD_PARTITIONS)[0].topics
    assert [item.broker_ids for item in topic.assignments] == [(2, 3), (3, 2)]
    assert scene.node.rig.context.assignment(P0) == before
    assert scene("topics alter --topic t", *assignment).code == 1
    assert scene.node.requests == []


def test_each_topic_of_a_request_has_its_result(scene: Scene) -> None:
    """One that is refused keeps no other from its partitions (A-11 as released)."""
    assert scene("topics create --topic u --partitions 4 --replication-factor 1").code == 0
    result = scene("topics alter --topic (t|u) --partitions 3")
    assert len(scene.node.bodies(ADD_PARTITIONS)) == 1
    assert (result.code, "u" in result.out + result.err) == (1, True)
    counts = [len(scene.node.rig.context.partitions_of(name)) for name in ("t", "u")]
    assert counts == [3, 4]


def test_topics_are_deleted_in_one_request(scene: Scene) -> None:
    """Key 20 has a list of them (A-15 as released)."""
    assert scene("topics create --topic u").code == 0
    assert scene("topics delete --topic (t|u)").code == 0
    (request,) = scene.node.bodies(DELETE)
    assert [topic.name for topic in request.topics] == ["t", "u"]


def test_topics_are_listed_by_metadata_of_all(scene: Scene) -> None:
    """Its topics are null; one that is being deleted has no mark (A-20 as released, A-21 as
    released)."""
    scene("topics create --topic u")
    assert scene("topics list").out == "t\nu\n"
    assert [request.topics for request in scene.node.bodies(METADATA)] == [None]
    assert scene.node.sent_keys() == []
    scene("topics delete --topic u")
    assert "u" in scene.node.rig.context.queued_deletions
    assert scene("topics list").out == "t\n"


def test_a_topic_is_described_by_metadata_and_describe_configs(scene: Scene) -> None:
    """A node without DescribeTopicPartitions is sent Metadata with the name; settings are another
    request (A-16 as released, A-17 as released)."""
    assert scene("topics describe --topic t").code == 0
    named = [request.topics for request in scene.node.bodies(METADATA) if request.topics]
    assert [[topic.name for topic in topics] for topics in named] == [["t"]]
    (resource,) = scene.node.bodies(DESCRIBE_CONFIGS)[0].resources
    assert (resource.resource_type, resource.resource_name) == (2, "t")
    assert resource.configuration_keys is None


# -- reassignments ---------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> tuple[str, str]:
    """The option with a reassignment of t-0 to brokers 2 and 3."""
    return "--reassignment-json-file", write_assignment(tmp_path / "file", {P0: (2, 3)})


def test_a_reassignment_is_accepted_and_verified_again(scene: Scene, file: tuple[str, str]) -> None:
    """Key 45 has the partitions and not the text of the file (A-22 as released); the command is
    done when that is accepted (A-37 as released); each verify asks once for the list of what runs,
    by key 46, and does not wait (A-25 as released, A-26 as released, A-38 as released)."""
    started = scene("reassign execute", *file)
    assert (started.code, REASSIGN in scene.node.sent_keys()) == (0, True)
    (topic,) = scene.node.bodies(REASSIGN)[0].topics
    assert [(item.partition_index, item.replicas) for item in topic.partitions] == [(0, (2, 3))]
    verified = scene("reassign verify", *file)
    assert (verified.code, scene.node.sent_keys()) == (0, [LIST_REASSIGNMENTS])
    assert "Reassignment of partition t-0 is still in progress." in verified.out
    assert "t-0: replicas: 2,3,1. adding: 3. removing: 1." in scene("reassign list").out
    scene.node.rig.alter_isr(P0, 1, 2, 3)
    assert "Reassignment of partition t-0 is completed." in scene("reassign verify", *file).out
    assert scene("reassign list").out == "No partition reassignments found.\n"


def test_the_number_of_a_result_follows_from_two_responses(
    scene: Scene, file: tuple[str, str], tmp_path: Path
) -> None:
    """No response has it: what is in the list is in progress, else the replicas decide. The numbers
    are those of the tools up to 2.5 (A-27 as released, A-28 as released)."""
    other = write_assignment(tmp_path / "other", {P0: (1, 3), TopicPartition("t", 9): (1,)})

    def codes(path: str) -> list[int]:
        result = scene("reassign verify", "--reassignment-json-file", path, "--json")
        return [item["result_code"] for item in json.loads(result.out)["partitions"]]

    scene("reassign execute", *file)
    assert codes(file[1]) == [0]
    scene.node.rig.alter_isr(P0, 1, 2, 3)
    assert codes(file[1]) == [1]
    assert codes(other) == [-1, -1]


@pytest.mark.parametrize(
    "text", ["{", '{"version":2,"partitions":[]}', '{"partitions":[{"topic":"t"}]}']
)
def test_a_bad_file_is_refused_before_anything_is_sent(
    scene: Scene, tmp_path: Path, text: str
) -> None:
    """The tool parses it; what it names, the controller validates (A-23 as released)."""
    (tmp_path / "bad").write_text(text)
    assert scene("reassign execute", "--reassignment-json-file", str(tmp_path / "bad")).code == 1
    assert REASSIGN not in scene.node.sent_keys()
    assert scene.node.rig.context.reassigning == set()


def test_a_file_may_have_directories(scene: Scene, tmp_path: Path) -> None:
    """``any`` is no directory, so that the broker is not asked for one (A-22 as released)."""
    entry = {"topic": "t", "partition": 0, "replicas": [2, 3], "log_dirs": ["any", "any"]}
    (tmp_path / "file").write_text(json.dumps({"version": 1, "partitions": [entry]}))
    result = scene("reassign execute", "--reassignment-json-file", str(tmp_path / "file"))
    assert result.code == 0
    assert P0 in scene.node.rig.context.reassigning


# -- elections -------------------------------------------------------------------------------------


def test_elections_are_requested_by_key_43(scene: Scene, tmp_path: Path) -> None:
    """Partitions of a file, or null for all, and a timeout; a result of each is printed
    (A-29 as released, A-30 as released, A-39 as released)."""
    (tmp_path / "file").write_text(
        '{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":9}]}'
    )
    result = scene("elect preferred", "--path-to-json-file", str(tmp_path / "file"))
    (request,) = scene.node.bodies(ELECT)
    (topic,) = request.topic_partitions
    assert (topic.topic, topic.partitions, request.election_type) == ("t", (0, 9), 0)
    assert request.timeout_ms > 0
    assert "Valid replica already elected for partitions t-0" in result.out
    assert "t-9" in result.out
    scene("elect preferred --all-topic-partitions")
    assert [request.topic_partitions for request in scene.node.bodies(ELECT)] == [None]


def test_an_election_of_partitions_that_are_refused_with_41_is_repeated(scene: Scene) -> None:
    """A broker of ZooKeeper mode that is not the controller says so of each partition, and its
    response as a whole has no error (A-01 as released)."""
    scene.node.refusals = 1
    result = scene("elect preferred --topic t --partition 0")
    assert scene.node.sent_keys() == [ELECT, ELECT]
    assert "Valid replica already elected for partitions t-0" in result.out
