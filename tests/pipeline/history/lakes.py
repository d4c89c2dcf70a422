"""Lakes with a history, written as tables without Spark."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from featurewatch.controller.kraft import release_of
from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.silver.tables import FENCING, LOG_GAPS, REGISTRATIONS, SOURCE_STATES
from featurewatch.streams.types import METADATA_VERSION

Rows = dict[str, list[dict[str, Any]]]
START = datetime(2025, 11, 20, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
RELEASES = ("3.7", "3.9", "4.0", "4.2")
FEATURE = METADATA_VERSION
TABLES: dict[str, Table] = {table.name: table for table in (*GOLD, SOURCE_STATES)}
SILVER: dict[str, Table] = {table.name: table for table in (FENCING, LOG_GAPS, REGISTRATIONS)}
_PLAIN = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}


def arrow(type_: str) -> pa.DataType:
    """Translates a type of Spark's DDL to Arrow."""
    type_ = type_.strip()
    if simple := _PLAIN.get(type_):
        return simple
    container, parameters = re.fullmatch(r"(\w+)<(.*)>", type_, re.DOTALL).groups()  # type: ignore[union-attr]
    if container == "array":
        return pa.list_(arrow(parameters))
    if container == "map":
        return pa.map_(*(arrow(part) for part in _parts(parameters)))
    fields = (part.split(":", 1) for part in _parts(parameters))
    return pa.struct([(name.strip(), arrow(of)) for name, of in fields])


def _parts(types: str) -> Iterator[str]:
    """Splits at the commas outside of brackets."""
    part, depth = "", 0
    for sign in types:
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            yield part
            part = ""
        else:
            part += sign
    yield part


def write(
    lake: Path,
    rows: Mapping[str, list[dict[str, Any]]],
    without: Iterable[str] = (),
    tables: Mapping[str, Table] = TABLES,
) -> Path:
    """Adds rows to a lake that has all of ``tables`` except those in ``without``."""
    for name, table in tables.items():
        if name not in without:
            schema = pa.schema([(column, arrow(type_)) for column, type_ in table.columns.items()])
            table_rows = pa.Table.from_pylist(rows.get(name, []), schema=schema)
            write_deltalake(
                *(lake / table.path, table_rows),
                mode="append",
                partition_by=list(table.partitioned) or None,
            )
    return lake


class Story:
    """The history of one cluster as rows of gold; each event takes the next offsets of the log."""

    def __init__(self, cluster: str, at: datetime = START) -> None:
        self.cluster = cluster
        self.at = at
        self.rows: Rows = defaultdict(list)
        self.levels: dict[str, int] = {}
        self.offset = 0
        self._nodes: dict[tuple[str, int], dict[str, Any]] = {}
        self._bad: dict[tuple[str, int], dict[str, Any]] = {}
        self._revision = 0
        self._leader = 0

    def cause(self) -> str:
        """Takes the next offsets and returns the id of their commit."""
        self.offset += 10
        return f"{self.cluster}/kraft/{self.offset - 9}-{self.offset}"

    def node(self, role: str, node_id: int, release: str | None, after: timedelta = HOUR) -> None:
        """A node starts with a release, after some time; None: it leaves for good."""
        self.at += after
        cause, key = self.cause(), (role, node_id)
        if previous := self._nodes.pop(key, None):
            previous.update(until=self.at, until_cause=cause)
        if exclusion := self._bad.pop(key, None):
            self.alert("incompatible-node", key, exclusion["reason"], since=exclusion["since"])
            exclusion.update(until=self.at, until_cause=cause)
        if release is None:
            return
        ranges = {name: list(of) for name, of in release_of(release).ranges().items()}
        row = {
            "cluster": self.cluster,
            "id": f"{cause}/{role}-{node_id}",
            "role": role,
            "node_id": node_id,
            "ranges": ranges,
            "complete": True,
            "release": release,
            "since": self.at,
            "until": None,
            "since_cause": cause,
            "until_cause": None,
        }
        self._nodes[key] = row
        self.rows["capability_intervals"].append(row)
        if (level := self.levels.get(FEATURE, 0)) > ranges[FEATURE][1]:
            reason = f"{role} {node_id} supports {FEATURE} up to {ranges[FEATURE][1]}, not {level}"
            self.alert("incompatible-node", key, reason)
            self._bad[key] = {
                "cluster": self.cluster,
                "id": f"{cause}/{role}-{node_id}/{FEATURE}",
                "role": role,
                "node_id": node_id,
                "feature": FEATURE,
                "level": level,
                "range": ranges[FEATURE],
                "verdict": "no",
                "reason": reason,
                "since": self.at,
                "until": None,
                "since_cause": cause,
                "until_cause": None,
            }
            self.rows["incompatibilities"].append(self._bad[key])

    def alert(
        self, rule: str, node: tuple[str, int], summary: str, *, since: datetime | None = None
    ) -> None:
        """An alert fires, or is resolved if ``since`` is given."""
        alert_id = f"{self.cluster}/{rule}/{node[0]}-{node[1]}"
        state = "firing" if since is None else "resolved"
        cause = f"{self.cluster}/kraft/{self.offset - 9}-{self.offset}"
        self.rows["alerts"].append(
            {
                "cluster": self.cluster,
                "id": f"{alert_id}@{cause}/{state}",
                "alert_id": alert_id,
                "rule": rule,
                "severity": "critical",
                "state": state,
                "summary": summary,
                "subject": {"role": node[0], "node": str(node[1])},
                "evidence": "{}",
                "since": since or self.at,
                "at": self.at,
                "cause": cause,
            }
        )

    def finalize(self, feature: str, level: int, after: timedelta = HOUR) -> None:
        """A level is finalized after some time (0: removed)."""
        self.at += after
        self.cause()
        before = self.levels.pop(feature, 0)
        if level:
            self.levels[feature] = level
        self._revision += 1
        kind = "removed" if not level else "finalized" if not before else "upgraded"
        common = {
            "cluster": self.cluster,
            "epoch": self.offset,
            "revision": self._revision,
            "provenance": {"offset": self.offset, "leader_epoch": 3},
        }
        self.rows["feature_changes"].append(
            {
                **common,
                "id": f"{self.cluster}/change/{feature}/{self._revision}",
                "feature": feature,
                "before": before,
                "after": level,
                "kind": kind,
                "from_snapshot": False,
                "appended_at": self.at,
                "seen_at": self.at,
            }
        )
        self.rows["epochs"].append(
            {
                **common,
                "id": f"{self.cluster}/revision/{self._revision}",
                "at": self.at,
                "ready": True,
                "leader_id": 1,
                "leader_epoch": 3,
                "classes": [],
                "finalized": dict(self.levels),
                "incompatible": [],
                "sources": {},
                "digest": f"{self._revision:064x}",
            }
        )

    def operation(self, phase: str, summary: str, after: timedelta = HOUR) -> None:
        """A step of a reassignment, after some time."""
        self.at += after
        self.cause()
        operation = f"{self.cluster}/reassignment/t/0"
        self.rows["operations"].append(
            {
                "cluster": self.cluster,
                "id": f"{operation}/{phase}/{self.offset}",
                "operation": operation,
                "kind": "reassignment",
                "phase": phase,
                "reason": "",
                "topic": "payments",
                "partition": 0,
                "broker": -1,
                "summary": summary,
                "details": '{"target":[4,5]}',
                "offset": self.offset,
                "leader_epoch": 3,
                "appended_at": self.at,
                "seen_at": self.at,
            }
        )

    def roll(self, release: str, after: timedelta, step: timedelta = HOUR) -> None:
        """All nodes are restarted with a release, one after the other, and its level is
        finalized."""
        self.at += after
        nodes, first = [*self._nodes], self.at + step
        old_releases = sorted({row["release"] for row in self._nodes.values()})
        arrivals = []
        for role, node_id in nodes:
            self.node(role, node_id, release, step)
            arrival = {"role": role, "node_id": node_id, "at": self.at, "release": release}
            arrivals.append(arrival)
        rolled, old_level = self.at, self.levels.get(FEATURE, 0)
        level = release_of(release).ranges()[FEATURE][1]
        self.finalize(FEATURE, level, 2 * step)
        self.rows["upgrades"].append(
            {
                "cluster": self.cluster,
                "id": f"{self.cluster}/roll/{self.offset}",
                "direction": "upgrade",
                "state": "finalized",
                "from_releases": old_releases,
                "to_releases": [release],
                "started": first,
                "rolled": rolled,
                "finalized": self.at,
                "ended": self.at,
                "nodes": arrivals,
                "duration_s": int((self.at - first).total_seconds()),
                "levels": {FEATURE: [old_level, level]},
                "rollback_path": {
                    "lossless": False,
                    "to": old_releases[0],
                    "reason": f"{level} loses metadata",
                },
            }
        )

    def heartbeat(self, at: datetime) -> None:
        """A heartbeat of its source."""
        row = {
            "cluster": self.cluster,
            "id": f"{self.cluster}/kraft/following-{at.timestamp():.0f}",
            "index": 0,
            "at": at,
            "seen_at": at,
            "day": at.date(),
            "source": "kraft",
            "topic": "featurewatch.metadata-log",
            "partition": 0,
            "offset": 0,
            "state": "following",
            "log_offset": self.offset,
            "leader_id": 1,
            "detail": "",
        }
        self.rows["source_states"].append(row)


def year(cluster: str, brokers: int = 3, controllers: int = 3, shift: timedelta = DAY) -> Story:
    """A cluster that starts with 3.7, is rolled to 3.9, 4.0 and 4.2 within a year, and once has an
    old broker that no longer fits."""
    story = Story(cluster, START + shift)
    step = DAY / (brokers + controllers)
    for node_id in range(1, controllers + 1):
        story.node("controller", node_id, "3.7", timedelta(seconds=5))
    for node_id in range(101, 101 + brokers):
        story.node("broker", node_id, "3.7", timedelta(seconds=5))
    story.finalize(FEATURE, 19, timedelta(seconds=30))
    story.roll("3.9", 60 * DAY, step)
    story.finalize("kraft.version", 1, 3 * DAY)
    story.roll("4.0", 100 * DAY, step)
    story.finalize("transaction.version", 2, DAY)
    story.finalize("group.version", 1, DAY)
    story.node("broker", 100, "3.9", 5 * DAY)
    story.node("broker", 100, None, 2 * DAY)
    story.roll("4.2", 90 * DAY, step)
    story.finalize("share.version", 1, 10 * DAY)
    return story


def lake_of(lake: Path, *stories: Story, without: Iterable[str] = ()) -> Path:
    """Writes the histories of some clusters to a lake."""
    rows: Rows = defaultdict(list)
    for story in stories:
        for name, table_rows in story.rows.items():
            rows[name] += table_rows
    return write(lake, rows, without)
