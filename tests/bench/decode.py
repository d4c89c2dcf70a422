"""``decode_vs_dump_log`` and ``follow_vs_dump_log``: this decoder against Kafka's own tool.

A real controller writes a log of more than 300,000 records. ``kafka-dump-log
--cluster-metadata-decoder`` prints it, started as ``kafka-run-class.sh`` starts it; so does this
project's decoder, all records or only what a monitor needs. Whole processes are timed, start-up
included, in turns; the best of each counts.

Usage: ``python -m tests.bench.decode``.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from featurewatch.stack.java.jars import Cache, Jars, default_cache
from featurewatch.stack.java.runtime import java
from tests.bench.decode_log import write_log
from tests.bench.turns import environment

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 160_000
ROUNDS = 3

# KAFKA_HEAP_OPTS and KAFKA_JVM_PERFORMANCE_OPTS of kafka-run-class.sh.
JVM_OPTIONS = (
    *("-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)


def commands(log: Path) -> dict[str, list[str]]:
    """What is compared, by name."""
    jars = Cache(default_cache()).class_path("4.3.0", Jars.TOOLS)
    tool = "org.apache.kafka.tools.DumpLogSegments"
    start = [str(java()), *JVM_OPTIONS, "-cp", os.pathsep.join(map(str, jars)), tool]
    ours = [sys.executable, "-m", "tests.bench.decode_print"]
    return {
        "dump_log": [*start, "--cluster-metadata-decoder", "--files", str(log)],
        "decode": [*ours, "all", str(log)],
        "follow": [*ours, "default", str(log)],
    }


def timed(command: Sequence[str], output: Path) -> tuple[float, int]:
    """Seconds for a whole process, and how many records it printed."""
    with output.open("wb") as out:
        begin = time.perf_counter()
        subprocess.run(
            command,
            cwd=ROOT,
            env=environment(),
            stdout=out,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        seconds = time.perf_counter() - begin
    with output.open("rb") as lines:
        return seconds, sum(line.startswith((b"| offset", b'{"offset"')) for line in lines)


def run(partitions: int = PARTITIONS) -> Iterator[dict[str, Any]]:
    """Both measures, in records a second."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        log = write_log(Path(name), partitions)
        best: dict[str, float] = {}
        printed: dict[str, int] = {}
        for _ in range(ROUNDS):
            for what, command in commands(log).items():
                seconds, printed[what] = timed(command, Path(name) / "out")
                best[what] = min(seconds, best.get(what, seconds))
    if printed["decode"] != printed["dump_log"]:
        raise RuntimeError(f"not the same records were printed: {printed}")
    records = printed["dump_log"]
    for what in ("decode", "follow"):
        yield {
            "measure": f"{what}_vs_dump_log",
            "value": round(records / best[what]),
            "baseline": round(records / best["dump_log"]),
            "ratio": round(best["dump_log"] / best[what], 2),
            "unit": "records/s",
            "records": records,
            "seconds": round(best[what], 3),
            "baseline_seconds": round(best["dump_log"], 3),
        }


if __name__ == "__main__":
    for measured in run():
        sys.stdout.write(orjson.dumps(measured).decode() + "\n")
