"""Moves between the directories of a broker, by Kafka's tool and by ``featurewatch``."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from tests.conformance.kafka_tools import REASSIGN, CommandResult, KafkaTools, OurCommand
from tests.conformance.partition_tools.running import fill
from tests.conformance.partition_tools.tools import PartitionTools, make_topic
from tests.process_logs import started
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.form("released")]

FILE = "--reassignment-json-file"
THROTTLE = "--replica-alter-log-dirs-throttle"
TOPIC = "moved"


def test_moves_between_directories_are_printed_as_by_the_tool(
    ours: OurCommand, tools_of: Callable[[str], KafkaTools], stack_cache: Cache, tmp_path: Path
) -> None:
    """A replica with data goes to the other directory, throttled so that its move is seen, and back
    by the other command: execute, verify on the way and at the end, and a directory that there is
    not (A-22 as released, A-25 as released, A-26 as released)."""
    directory = tmp_path / "cluster"
    homes = [directory / "node-1" / "data", tmp_path / "other"]
    properties = {"log.dirs": ",".join(map(str, homes))}
    spec = ClusterSpec([NodeSpec(1, "4.3.0", properties=properties)])
    tools = PartitionTools(tools_of("4.3.0"))
    with started(Cluster(spec, directory, cache=stack_cache, temporary=True)) as cluster:
        servers = cluster.bootstrap_servers
        make_topic(servers, TOPIC, [1])
        fill(servers, TOPIC)

        def assignment(home: Path) -> str:
            entry = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [str(home)]}
            file = tmp_path / f"to-{home.name}"
            file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
            return str(file)

        def run(by_ours: bool, action: str, home: Path, *options: str) -> CommandResult:
            line = ("--bootstrap-server", servers, FILE, assignment(home), *options)
            if by_ours:
                return ours.as_the_tool("reassign", action, *line)
            return tools(REASSIGN, f"--{action}", *line)

        def here() -> Path:
            return next(home for home in homes if (home / f"{TOPIC}-0").exists())

        steps = {}
        for by_ours in (False, True):
            away = homes[1 - homes.index(here())]
            results = [run(by_ours, "execute", away, THROTTLE, "100000")]
            results.append(run(by_ours, "verify", away))
            results.append(run(by_ours, "execute", away, THROTTLE, "1000000000"))
            assert eventually(lambda: here() == away)  # noqa: B023
            results.append(run(by_ours, "verify", away))
            results.append(run(by_ours, "execute", tmp_path / "absent"))
            steps[by_ours] = [generic(result, homes) for result in results]
        assert steps[True] == steps[False]
        printed = [result.out for result in steps[False]]
        assert "Successfully started moving log directory to" in printed[0]
        assert f"Reassignment of replica {TOPIC}-0-1 is still in progress." in printed[1]
        assert f"Reassignment of replica {TOPIC}-0-1 completed successfully." in printed[3]
        assert "Failed to alter dir" in printed[4]


def generic(result: CommandResult, homes: list[Path]) -> CommandResult:
    """A result without the directory, which is another one on the way back."""
    names = "|".join(re.escape(str(home)) for home in homes)
    return CommandResult(result.code, re.sub(names, "DIRECTORY", result.out), result.err)
