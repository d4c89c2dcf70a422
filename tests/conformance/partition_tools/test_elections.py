"""What ``kafka-leader-election`` prints, from ``featurewatch elect``."""

import asyncio
import json
from pathlib import Path

import pytest

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.elections.client import ElectionAdmin
from featurewatch.admin.elections.status import ElectionStatus
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.address import parse_addresses
from tests.conformance.kafka_tools import ELECT, CommandResult, OurCommand
from tests.conformance.partition_tools.conftest import ToolScene
from tests.conformance.partition_tools.election_lines import FILES, KINDS, TOPIC, invocations
from tests.conformance.partition_tools.tools import make_topic, move
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]


@pytest.mark.parametrize("kind", KINDS)
def test_elections_are_printed_as_by_the_tool(
    scene: ToolScene, ours: OurCommand, tmp_path: Path, kind: str
) -> None:
    """Elections that are needed and not, partitions that there are not, files and options that are
    wrong: stdout, the error and the exit code (A-29 as released, A-30 as released, A-39 as
    released, A-42 as released)."""
    topic = f"{TOPIC}-{kind}"
    make_topic(scene.servers, topic, [1, 2], [2, 3], [3, 1])
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace('"elected"', json.dumps(topic)))
    different = {}
    for options in invocations(tmp_path, topic):
        where = ("--bootstrap-server", scene.servers, *options)
        expected = scene.tools(ELECT, "--election-type", kind, *where)
        result = ours.as_the_tool("elect", kind, *where, *scene.compat)
        if result != expected:
            different[options] = (expected, result)
    assert different == {}


def statuses(servers: str, *partitions: TopicPartition) -> list[ElectionStatus]:
    """The state of each partition's election."""

    async def read() -> dict[TopicPartition, ElectionStatus]:
        async with ElectionAdmin(Bootstrap(parse_addresses(servers))) as admin:
            return await admin.verify(partitions)

    return [*asyncio.run(read()).values()]


def test_the_preferred_replicas_lead_when_the_command_returns(
    scene: ToolScene, ours: OurCommand, tmp_path: Path
) -> None:
    """A reassignment that only changes the order leaves the leader; then the election that both do
    prints the same, and a dry run finds no election that is needed (A-31, A-39 as released,
    A-40)."""
    topic = "reordered"
    make_topic(scene.servers, topic, [1, 2], [2, 1])
    first, second, absent = (TopicPartition(topic, number) for number in (0, 1, 9))
    file = tmp_path / "both"
    entries = [{"topic": topic, "partition": number} for number in (0, 1)]
    file.write_text(json.dumps({"partitions": entries}))
    options = ("--bootstrap-server", scene.servers, "--path-to-json-file", str(file))
    results: list[CommandResult] = []

    def preview() -> str:
        return ours.as_the_tool("elect", "preferred", *options, "--dry-run").out

    for turn, by_ours in enumerate((False, True)):
        ids = ((2, 1), (1, 2)) if turn == 0 else ((1, 2), (2, 1))
        move(scene.servers, {first: ids[0], second: ids[1]})
        wanted = (
            f"{first}: leader {ids[1][0]} -> {ids[0][0]}\n"
            f"{second}: leader {ids[0][0]} -> {ids[1][0]}\n"
        )
        # The broker that is read may know of the new order later than the controller.
        assert eventually(lambda: preview() == wanted, 60)  # noqa: B023
        assert statuses(scene.servers, first, second, absent) == [
            ElectionStatus.IN_PROGRESS,
            ElectionStatus.IN_PROGRESS,
            ElectionStatus.FAILED,
        ]
        if by_ours:
            results.append(ours.as_the_tool("elect", "preferred", *options, *scene.compat))
            assert preview() == f"{first}: \n{second}: \n"
        else:
            results.append(scene.tools(ELECT, "--election-type", "preferred", *options))
            assert eventually(lambda: preview() == f"{first}: \n{second}: \n", 60)
        assert statuses(scene.servers, first, second) == [ElectionStatus.COMPLETED] * 2
    assert results[0] == results[1]
    assert results[0].out.startswith("Successfully completed leader election (PREFERRED)")
