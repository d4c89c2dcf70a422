"""``quorum_describe_vs_kafka_metadata_quorum``: both as whole processes, on one node of 4.3.0.

Kafka's tool has its fastest form, as in `tests.bench.features`. Offsets and times grow between two
requests: what both print is compared without digits.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.java.jars import Cache, Jars, default_cache, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from tests.bench.turns import FEATUREWATCH, line, medians, timed

RELEASE: Final = "4.3.0"
_MAIN: Final = "org.apache.kafka.tools.MetadataQuorumCommand"


def run() -> Iterator[dict[str, Any]]:
    """The median of each for ``describe --status``, and how many times faster ours is."""
    Cache(default_cache()).class_path(RELEASE, Jars.TOOLS)
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        spec = ClusterSpec([NodeSpec(1, RELEASE)], dynamic_voters=True)
        with Cluster(spec, Path(name) / "cluster", temporary=True) as cluster:
            arguments = ("--bootstrap-server", cluster.bootstrap_servers, "describe", "--status")
            ours = (*FEATUREWATCH, "quorum", *arguments)
            theirs = tool_command(RELEASE, _MAIN, *arguments)
            theirs.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
            printed, expected = (_steady(timed(command)[1]) for command in (ours, theirs))
            if printed != expected or "CurrentVoters" not in printed:
                raise RuntimeError(f"they print different things: {printed!r}, {expected!r}")
            took = medians({"ours": ours, "theirs": theirs})
    measure = "quorum_describe_vs_kafka_metadata_quorum"
    yield line(measure, took["ours"], took["theirs"], took["theirs"] / took["ours"])


def _steady(printed: str) -> str:
    """What is printed with one digit for each number that grows."""
    return re.sub(r"(HighWatermark|MaxFollowerLag\w*): +\d+", r"\1: N", printed)
