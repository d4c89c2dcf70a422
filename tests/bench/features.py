"""``features_describe_vs_kafka_features``: both commands as whole processes, on one cluster.

What is timed is what a person waits for: the process starts, asks one broker, prints, and ends.
Both run in turns. Kafka's tool is given its fastest form: no script around it, a small heap, the
compiler that starts soonest, and no logging. The two outputs are compared each time.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from featurewatch.deploy.java.jars import Cache, Jars, default_cache, tool_command
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.specs import combined

RELEASE: Final = "4.3.0"
ROUNDS: Final = 15
TIMEOUT_S: Final = 60.0
_ROOT: Final = Path(__file__).parents[2]


def run() -> Iterator[dict[str, Any]]:
    """The median of each, and how many times faster ours is."""
    Cache(default_cache()).class_path(RELEASE, Jars.TOOLS)
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as name,
        Cluster(combined([RELEASE]), Path(name) / "cluster", temporary=True) as cluster,
    ):
        where = ("--bootstrap-server", cluster.bootstrap_servers, "describe")
        ours = [sys.executable, "-m", "featurewatch", "features", *where]
        theirs = tool_command(RELEASE, "org.apache.kafka.tools.FeatureCommand", *where)
        theirs.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
        took: dict[str, list[float]] = {"ours": [], "theirs": []}
        for _ in range(ROUNDS):
            said = {}
            for who, command in (("ours", ours), ("theirs", theirs)):
                seconds, said[who] = timed(command)
                took[who].append(seconds)
            if said["ours"] != said["theirs"]:
                raise RuntimeError(f"they say different things: {said}")
    mine, peer = (statistics.median(took[who]) for who in ("ours", "theirs"))
    yield {
        "measure": "features_describe_vs_kafka_features",
        "ours_ms": round(mine * 1000),
        "kafka_features_ms": round(peer * 1000),
        "times_faster": round(peer / mine, 2),
        "times_faster_at_best": round(min(took["theirs"]) / min(took["ours"]), 2),
        "rounds": ROUNDS,
    }


def timed(command: Sequence[str]) -> tuple[float, str]:
    """The seconds of a whole process and what it printed, without the epoch, which goes on."""
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=_ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    return time.perf_counter() - started, re.sub(r"Epoch: \d+", "", done.stdout)
