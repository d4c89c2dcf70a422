"""The counts at the end of the demo, and the expected ones."""

import json
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

from featurewatch.cli.commands.demo.output_log import OutputLog
from featurewatch.stack.java.jars import newest_tools, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.outputs import AlertState

_DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
_LEVEL = "FEATURE_LEVEL_RECORD"


def summarize(
    cluster: Cluster, finalized: Iterable[tuple[str, int]], feed: OutputLog
) -> dict[str, Any]:
    """Counts and times.

    ``lost`` and ``duplicated`` hold the topics against the log on a node's disk, as Kafka's own
    ``kafka-dump-log`` reads it, and against the levels that were ``finalized`` in ZooKeeper.
    """
    written = Counter([*levels_on_disk(cluster), *finalized])
    published = Counter((str(change.feature), int(change.after)) for change in feed.changes)
    delays = sorted(feed.delays_ms)
    return {
        "feature_changes": len(feed.changes),
        "alerts_fired": sum(alert.state is AlertState.FIRING for alert in feed.alerts),
        "alerts_resolved": sum(alert.state is AlertState.RESOLVED for alert in feed.alerts),
        "snapshots": len(feed.snapshots),
        "dead_letters": feed.dead_letters,
        "lost": (written - published).total(),
        "duplicated": feed.duplicated,
        "commits_timed": len(delays),
        "commit_to_alert_ms_p50": round(statistics.median(delays), 1) if delays else None,
        "commit_to_alert_ms_p99": delays[int(len(delays) * 0.99)] if delays else None,
    }


def levels_on_disk(cluster: Cluster) -> list[tuple[str, int]]:
    """The changes of levels in the log of the first node, in order: (feature, level)."""
    segments = sorted(cluster.nodes[0].metadata_log.glob("*.log"))
    files = ",".join(map(str, segments))
    decoding = ("--cluster-metadata-decoder", "--files", files)
    command = tool_command(newest_tools(), _DUMP_LOG, *decoding)
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    levels: dict[str, int] = {}
    found = []
    for line in printed.splitlines():
        _, marker, payload = line.partition(" payload: ")
        if not marker or _LEVEL not in payload:
            continue
        data = json.loads(payload)["data"]
        name, level = data["name"], data["featureLevel"]
        if levels.get(name, 0) != level:
            levels[name] = level
            found.append((name, level))
    return found
