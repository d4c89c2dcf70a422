"""What ``kafka-reassign-partitions`` prints of what changes nothing, from ``featurewatch``."""

from pathlib import Path

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from tests.conformance.kafka_tools import REASSIGN, OurCommand
from tests.conformance.partition_tools.conftest import ToolScene
from tests.conformance.partition_tools.reassign_lines import FILES, TOPIC, TOPICS, invocations
from tests.conformance.partition_tools.tools import make_topic, move

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with the files."""
    for name, text in {**FILES, **TOPICS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_changes_nothing_is_printed_as_by_the_tool(
    scene: ToolScene, ours: OurCommand, files: Path
) -> None:
    """Every file that is wrong, every partition, topic and broker that is not there, missing
    options, and what nobody reassigns: stdout, the error and the exit code (A-22 as released,
    A-23 as released)."""
    make_topic(scene.servers, TOPIC, [1, 2], [2, 3])
    different = {}
    tried = invocations(files)
    assert len(tried) > 60
    for action, *options in tried:
        where = ("--bootstrap-server", scene.servers, *options)
        expected = scene.tools(REASSIGN, f"--{action}", *where)
        result = ours.as_the_tool("reassign", action, *where, *scene.compat)
        if action == "cancel" and "--preserve-throttles" in options:
            result = result.__class__(result.code, result.out.removesuffix("\n"), result.err)
        if result != expected:
            different[(action, *options)] = (expected, result)
    assert different == {}
    move(scene.servers, {TopicPartition(TOPIC, 0): (1,), TopicPartition(TOPIC, 1): (1,)})
