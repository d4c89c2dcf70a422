"""Operations on a real cluster, and rehearsals of them."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.cli.app import app
from featurewatch.kafka.messages import AlterPartitionReassignmentsRequestV0
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.wire.connection import BlockingConnection
from tests.waiting import eventually

Json = dict[str, Any]
State = tuple[int, tuple[int, ...], frozenset[int]]
"""Leader, replicas in order, and ISR."""

TOPICS = {
    "pairs": [[2, 3], [3, 4], [4, 2], [3, 2]],
    "single": [[2], [3], [4]],
    "strict": [[2, 3], [3, 4]],
}
"""The replicas of each partition; of ``strict`` two must be in sync."""


@dataclass
class Rehearsed:
    """A real cluster, how it is read, and its topics."""

    cluster: Cluster
    options: tuple[str, ...]

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})

    def create_topics(self) -> None:
        """Creates `TOPICS`."""
        new = [
            NewTopic(
                name,
                len(replicas),
                replica_assignment=replicas,
                config={"min.insync.replicas": "2"} if name == "strict" else {},
            )
            for name, replicas in TOPICS.items()
        ]
        for future in self.admin.create_topics(new, request_timeout=30).values():
            future.result(30)
        partition_count = sum(map(len, TOPICS.values()))
        assert eventually(lambda: len(self.states()) == partition_count)

    def steps(self, *steps: str) -> list[Json]:
        """The outcomes of a rehearsal, as JSON."""
        arguments = [argument for step in steps for argument in ("-s", step)]
        result = CliRunner().invoke(app, ["rehearse", *self.options, *arguments, "--json"])
        assert result.exit_code in (0, 3), (result.output, result.exception)
        outcomes: list[Json] = json.loads(result.output)["steps"]
        return outcomes

    def states(self) -> dict[tuple[str, int], State]:
        """The partitions as a broker returns them."""
        topics = self.admin.list_topics(timeout=60).topics
        return {
            (name, number): (partition.leader, tuple(partition.replicas), frozenset(partition.isrs))
            for name in TOPICS
            if name in topics
            for number, partition in topics[name].partitions.items()
        }

    def compare(self, step: str, operation: Callable[[], object]) -> Json:
        """Rehearses a step, does it, and waits until the cluster is as was said; the outcome."""
        expected, (outcome,) = self.states(), self.steps(step)
        assert outcome["verdict"] == "accepted", outcome
        expected |= {
            (change["topic"], change["partition"]): _state(change["after"])
            for change in outcome["partitions"]["changes"]
            if change["topic"] in TOPICS
        }
        operation()
        deadline = time.monotonic() + 90
        while (actual := self.states()) != expected:
            assert time.monotonic() < deadline, f"{step}: {differences(expected, actual)}"
            time.sleep(0.1)
        return outcome

    def elect_preferred(self) -> None:
        """Elects the preferred leaders."""
        partitions = [TopicPartition(*partition) for partition in self.states()]
        self.admin.elect_leaders(ElectionType.PREFERRED, partitions).result(30)

    def reassign(self, address: str, targets: Mapping[tuple[str, int], list[int]]) -> None:
        """Requests new replicas of partitions, of the broker at an address."""
        form = AlterPartitionReassignmentsRequestV0
        topics = tuple(
            form.ReassignableTopic(
                name=name,
                partitions=tuple(
                    form.ReassignablePartition(partition_index=number, replicas=tuple(replicas))
                    for (topic, number), replicas in targets.items()
                    if topic == name
                ),
            )
            for name in dict.fromkeys(name for name, _ in targets)
        )
        host, _, port = address.rpartition(":")
        with BlockingConnection(host, int(port), timeout_s=30) as broker:
            answer = broker.request(form(topics=topics))
        codes = [
            partition.error_code for topic in answer.responses for partition in topic.partitions
        ]
        assert not any([answer.error_code, *codes]), answer


def differences(expected: Mapping[Any, State], actual: Mapping[Any, State]) -> list[str]:
    """The partitions in which a cluster is not as was said."""
    return [
        f"{key}: rehearsed {expected[key]}, really {actual.get(key)}"
        for key in expected
        if expected[key] != actual.get(key)
    ]


def _state(after: Json) -> State:
    return after["leader"], tuple(after["replicas"]), frozenset(after["isr"])


def reassignment_json(targets: Mapping[tuple[str, int], list[int]]) -> str:
    """A file of kafka-reassign-partitions."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for (topic, number), replicas in targets.items()
    ]
    return json.dumps({"version": 1, "partitions": partitions})
