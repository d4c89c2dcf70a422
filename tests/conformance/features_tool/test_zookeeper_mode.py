"""The same texts where there is no KRaft: on Kafka's brokers in ZooKeeper mode, and on those of the
reference system, which have features to change."""

import time
from collections.abc import Iterator

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conformance.kafka_tools import (
    COMPAT,
    CommandResult,
    KafkaTool,
    OurCommand,
)
from tests.reference.zookeeper.process import reference_process

pytestmark = pytest.mark.stack

STEPS = (
    "describe",
    "upgrade --feature group.version=2",
    "downgrade --feature group.version=1 --dry-run",
    "downgrade --feature group.version=1",
    "downgrade --feature group.version=1",
    "disable --feature transaction.version",
    "disable --feature transaction.version --unsafe",
    "upgrade --feature unheard=1",
    "describe",
    "upgrade --feature group.version=3",
    "upgrade --feature transaction.version=2",
    "describe",
)


@pytest.fixture
def servers(ensemble: Ensemble) -> Iterator[list[str]]:
    """The nodes of a cluster of two, one of which is the controller."""
    chroot = f"{ensemble.connect_string}/tool-{time.time_ns()}"
    features = ["group.version=1-3", "transaction.version=1-2"]
    with reference_process(chroot, "--brokers", "2", features=features) as process:
        yield list(process.ready().values())


def wait_until_equal(ours: OurCommand, servers: list[str]) -> None:
    """Every node has the levels of the last change, which a broker reads a moment later."""
    deadline = time.monotonic() + 60
    while len({ours("--bootstrap-server", server, "describe").out for server in servers}) > 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("tool", ["3.9.1"], indirect=True)  # the last that knows ZooKeeper
def test_the_texts_are_the_tools_in_zookeeper_mode(
    tool: KafkaTool, ours: OurCommand, servers: list[str]
) -> None:
    """The same steps from the same levels by either, whichever node is asked: the same texts, and
    epochs that grow alike; what is redundant is refused here (F-48, M-02)."""
    compat = ("--compat", COMPAT[tool.release])

    def walked(by_ours: bool, server: str) -> list[CommandResult]:
        where = ("--bootstrap-server", server)
        compared = []
        for step in STEPS:
            if step == "describe":
                wait_until_equal(ours, servers)
            arguments = (*where, *step.split())
            compared.append(ours(*compat, *arguments) if by_ours else tool(*arguments))
        return compared

    expected, results, again = (
        walked(False, servers[0]),
        walked(True, servers[0]),
        walked(True, servers[1]),
    )
    grown = 4  # so many changes are in a walk
    for number, (result, two, three) in enumerate(zip(expected, results, again, strict=True)):
        if STEPS[number] != "describe":
            assert result == two == three, STEPS[number]
            continue
        epochs = [
            int(description.out.split("Epoch: ")[1].split()[0])
            for description in (result, two, three)
        ]
        assert [epoch - epochs[0] for epoch in epochs] == [0, grown, 2 * grown]
        texts = {
            description.out.replace(f"Epoch: {epoch}\n", "")
            for description, epoch in zip((result, two, three), epochs, strict=True)
        }
        assert len(texts) == 1
    assert sum(output.code == 0 for output in expected) == len(STEPS) - 4


ASKED_OF_KAFKA = (
    "describe",
    "upgrade --feature group.version=1",
    "upgrade --feature metadata.version=21 --dry-run",
    "upgrade --metadata 3.9",
    "upgrade --feature unheard=1 --feature group.version=1",
    "downgrade --feature group.version=1",
    "downgrade --metadata 3.8 --unsafe --dry-run",
    "disable --feature transaction.version",
    "disable --feature transaction.version --unsafe",
)


@pytest.mark.parametrize("tool", ["3.9.1"], indirect=True)
def test_the_texts_are_the_tools_on_kafkas_own_brokers(
    tool: KafkaTool, ours: OurCommand, zookeeper_391: Cluster
) -> None:
    """A broker in ZooKeeper mode supports no feature: what it is asked for it refuses, and both say
    so with its words (M-02)."""
    where = ("--bootstrap-server", zookeeper_391.bootstrap_servers)
    for line in ASKED_OF_KAFKA:
        expected = tool(*where, *line.split())
        assert ours("--compat", COMPAT[tool.release], *where, *line.split()) == expected, line
        assert (expected.code == 0) == (line == "describe"), expected
