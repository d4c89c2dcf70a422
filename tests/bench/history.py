"""``history_show_ms`` and its like: whole processes that ask a lake of a year and 1,000 clusters.

One cluster is busy: a thousand brokers, rolled three times, and fifty thousand alerts. The others
have nine nodes each. Every source spoke every three seconds; of that the lake holds the last two
hours. The tables were filled in sixty rounds, so that each file has rows of many clusters. The
baseline is a process that does nothing but import the library that reads the tables.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from featurewatch.pipeline.silver.tables import SOURCE_STATES
from tests.cli.commands import environment
from tests.paths import ROOT
from tests.pipeline.history.lakes import (
    DAY,
    FEATURE,
    HOUR,
    START,
    TABLES,
    Rows,
    Story,
    arrow,
    write,
    year,
)

CLUSTERS: Final = 1000
BROKERS: Final = 1000
ALERTS: Final = 25_000
"""That fired and were resolved, of the busy cluster; the others have forty each."""
ROUNDS: Final = 60
RUNS: Final = 9
HEARTBEAT: Final = timedelta(seconds=3)
END: Final = START + 364 * DAY
BUSY: Final = "busy"
_TIMES: Final = ("at", "since", "started", "appended_at")


def fill(lake: Path) -> int:
    """Makes the lake; the number of its rows."""
    stories = [year(BUSY, BROKERS, 5)]
    stories += [year(f"cluster-{n:04}", 6, 3, n * HOUR / 4) for n in range(CLUSTERS - 1)]
    told: Rows = defaultdict(list)
    for story in stories:
        _alerts(story, ALERTS if story.cluster == BUSY else 40)
        for name, rows in story.rows.items():
            told[name] += rows
    for rows in told.values():
        rows.sort(key=_when)
    for number in range(ROUNDS):
        parts = {
            name: rows[len(rows) * number // ROUNDS : len(rows) * (number + 1) // ROUNDS]
            for name, rows in told.items()
        }
        write(lake, parts, without=[SOURCE_STATES.name])
    heartbeats = _heartbeats(lake, [story.cluster for story in stories])
    for table in TABLES.values():
        DeltaTable(lake / table.path).create_checkpoint()
    return sum(map(len, told.values())) + heartbeats


def _when(row: dict[str, Any]) -> datetime:
    at: datetime = next(row[name] for name in _TIMES if name in row)
    return at


def _alerts(story: Story, count: int) -> None:
    end = story.at
    for number in range(count):
        node = ("broker", 101 + number % 200)
        story.at = began = START + 2 * DAY + number * (360 * DAY / count)
        story.alert("nodes-disagree", node, f"broker {node[1]} answers with other levels")
        story.at += HOUR / 60
        story.alert("nodes-disagree", node, "they agree again", since=began)
    story.at = end


def _heartbeats(lake: Path, clusters: list[str]) -> int:
    """Writes two hours of source status reports; returns the number of rows."""
    schema = pa.schema([(name, arrow(kind)) for name, kind in SOURCE_STATES.columns.items()])
    beats = int(2 * HOUR / HEARTBEAT)
    for part in range(20):
        left = range(beats - beats * part // 20, beats - beats * (part + 1) // 20, -1)
        times = [END - HEARTBEAT * (number - 1) for number in left]
        rows = len(times) * len(clusters)
        heartbeat_columns = {
            "cluster": pa.array(clusters * len(times)),
            "id": pa.array([f"{c}/kraft/following-{at:%H%M%S}" for at in times for c in clusters]),
            "seen_at": pa.array([at for at in times for _ in clusters], arrow("timestamp")),
            "day": pa.array([at.date() for at in times for _ in clusters]),
            "source": pa.array(["kraft"] * rows),
            "state": pa.array(["following"] * rows),
        }
        columns = [
            heartbeat_columns.get(field.name, pa.nulls(rows, field.type)) for field in schema
        ]
        table = pa.Table.from_arrays(columns, schema=schema)
        write_deltalake(lake / SOURCE_STATES.path, table, mode="append", partition_by=["day"])
    return beats * len(clusters)


def commands(directory: Path, lake: Path) -> dict[str, list[str]]:
    """What is asked, by the name of the measure."""
    desired = directory / "desired.yaml"
    desired.write_text(
        f"environments: {{all: {{clusters: ['*'], levels: {{{FEATURE}: 4.2, share.version: 1}}}}}}"
    )
    moment = (START + 155 * DAY).isoformat()
    at_lake = ["--lake", str(lake)]
    of_cluster = [*at_lake, "--cluster", BUSY]
    return {
        "history_show_ms": ["history", "show", *of_cluster, "--at", moment],
        "history_show_offset_ms": ["history", "show", *of_cluster, "--offset", "12000"],
        "history_diff_ms": ["history", "diff", *of_cluster, moment, "revision:8"],
        "history_upgrades_ms": ["history", "upgrades", *of_cluster],
        "history_plot_html_ms": [
            "history",
            "plot",
            *of_cluster,
            "--out",
            str(directory / "a.html"),
        ],
        "history_plot_png_ms": ["history", "plot", *of_cluster, "--out", str(directory / "a.png")],
        "fleet_list_ms": ["fleet", "list", *at_lake],
        "fleet_drift_ms": ["fleet", "drift", *at_lake, "--desired", str(desired)],
    }


def took(directory: Path, *arguments: str) -> float:
    """Milliseconds of a whole process of Python."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(directory),
        capture_output=True,
        check=False,
    )
    elapsed = (time.perf_counter() - began) * 1000
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    return elapsed


def run() -> Iterator[dict[str, Any]]:
    """A measure for each question."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        rows = fill(directory / "lake")
        for measure, command in commands(directory, directory / "lake").items():
            took(directory, "-m", "featurewatch", *command)
            queried, bare = [], []
            for _ in range(RUNS):  # in turns, since the machine may be busier at times
                queried.append(took(directory, "-m", "featurewatch", *command))
                bare.append(took(directory, "-c", "import deltalake"))
            value, baseline = statistics.median(queried), statistics.median(bare)
            yield {
                "measure": measure,
                "value": round(value),
                "baseline": round(baseline),
                "ratio": round(value / baseline, 1),
                "rows": rows,
                "clusters": CLUSTERS,
            }
