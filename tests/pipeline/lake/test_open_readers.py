"""Readers without Spark: DuckDB with the views of ``examples/lake``, Polars and pandas."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars
import pytest
from deltalake import DeltaTable

from featurewatch.pipeline.gold.tables import EPOCHS, GOLD
from featurewatch.pipeline.history.moments import parse_moment
from featurewatch.pipeline.history.point_in_time import HistoricalState, clusters, state_at
from featurewatch.pipeline.lake.reader import LakeReader
from featurewatch.pipeline.lake.tables import MESSAGES, PROPERTIES, READER_VERSION
from featurewatch.pipeline.silver.tables import ANSWERS
from tests.formats import DIRECTORY, LAKE
from tests.paths import ROOT
from tests.pipeline.history.lakes import DAY, FEATURE, HOUR, START, Story, lake_of, write, year
from tests.python_examples import run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = ROOT / "examples" / "lake"
VIEWS = (EXAMPLES / "views.sql").read_text()
PAGE = (ROOT / "docs" / "how-to" / "read-the-lake.md").read_text()
NOW = START + 400 * DAY
MOMENTS = ("2026-01-01T00:00Z", "2026-05-15T00:00Z", "2026-10-01T00:00Z", "now")
EXTENSION = ("duckdb==1.4.4", "duckdb-ext-delta==1.4.4.20260205")
"""DuckDB's extension for Delta, as the newest release of DuckDB that PyPI has it for loads it."""


def example() -> Any:
    """The module ``examples/lake/query.py``."""
    spec = importlib.util.spec_from_file_location("query", EXAMPLES / "query.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(node_id: int, at: datetime, **fields: Any) -> dict[str, Any]:
    """What a node of the cluster ``orders`` answered."""
    row = {"cluster": "orders", "id": f"{node_id}@{at}", "index": 0, "at": at, "seen_at": at}
    row |= {"day": at.date(), "topic": "api-versions", "partition": 0, "offset": 0}
    return row | {"role": "broker", "node_id": node_id, "address": f"kafka-{node_id}:9092"} | fields


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three clusters: one has a broker that no longer fits, and one that is silent."""
    first, other, small = year("orders"), year("billing", shift=9 * DAY), Story("small")
    first.node("broker", 100, "3.9")
    for story in (first, other, small):
        story.heartbeat(NOW - HOUR)
    small.node("broker", 1, "3.9")
    small.finalize(FEATURE, 19)
    lake = lake_of(tmp_path_factory.mktemp("lake"), first, other, small)
    answers = [
        answer(101, NOW - 2 * HOUR, answered=False, gone=False, detail="timed out"),
        answer(101, NOW - HOUR, answered=True),
        answer(102, NOW - 2 * HOUR, answered=True),
        answer(102, NOW - HOUR, answered=False, gone=False, detail="connection refused"),
        answer(103, NOW - HOUR, answered=False, gone=True, detail="left"),
    ]
    return write(lake, {"answers": answers}, tables={"answers": ANSWERS})


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that the pipeline filled; tables that are newer are empty, as the pipeline creates
    them."""
    directory = tmp_path_factory.mktemp("frozen")
    with tarfile.open(max(DIRECTORY.iterdir()) / LAKE) as archive:
        archive.extractall(directory, filter="data")
    lake = directory / "lake"
    newer = {table.name: table for table in GOLD if not (lake / table.path).exists()}
    return write(lake, {name: [] for name in newer}, tables=newer)


class Questions:
    """Questions to a lake by the views."""

    def __init__(self, root: Path) -> None:
        self._connection = example().connect(str(root))

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows of an answer; ``values`` are those of ``$name``."""
        found: list[tuple[Any, ...]] = self._connection.execute(query, values or None).fetchall()
        return found


@pytest.fixture(scope="module")
def ask(root: Path) -> Questions:
    """Questions to the lake of three clusters."""
    return Questions(root)


def states(root: Path, moment: str = "now") -> list[HistoricalState]:
    """What ``featurewatch history`` says of each cluster."""
    lake = LakeReader(str(root))
    return [state_at(lake, it, parse_moment(moment, NOW), NOW) for it in clusters(lake)]


def levels(found: Iterable[HistoricalState]) -> set[tuple[str, str, int]]:
    """Levels by cluster and feature."""
    return {(it.cluster, *pair) for it in found for pair in it.levels.items()}


@pytest.mark.parametrize("moment", MOMENTS)
def test_levels_are_those_of_the_history(root: Path, ask: Questions, moment: str) -> None:
    """At any moment."""
    at = NOW if moment == "now" else datetime.fromisoformat(moment)
    found = ask.rows("SELECT cluster, feature, level FROM levels_at($at)", at=at)
    expected = levels(states(root, moment))
    assert set(found) == expected
    assert len(found) == len(expected) > 0


@pytest.mark.parametrize("lake", ["root", "frozen"])
def test_the_present_is_that_of_the_history(lake: str, request: pytest.FixtureRequest) -> None:
    """Levels, incompatible nodes, alerts and software, also of a lake that the pipeline filled."""
    root = request.getfixturevalue(lake)
    ask, expected = Questions(root), states(root)
    assert set(ask.rows("SELECT cluster, feature, level FROM current_levels")) == levels(expected)
    bad = ask.rows("SELECT cluster, role, node_id, feature, level, since FROM incompatible_now")
    names = ("role", "node_id", "feature", "level", "since")
    assert sorted(bad) == sorted(
        (it.cluster, *(row[name] for name in names)) for it in expected for row in it.incompatible
    )
    assert bad
    firing = ask.rows("SELECT cluster, alert_id, since FROM alerts_now")
    assert sorted(firing) == sorted(
        (it.cluster, row["id"], row["since"]) for it in expected for row in it.alerts
    )
    nodes = ask.rows("SELECT role, coalesce(release, ''), nodes FROM software")
    counted: dict[tuple[str, str], int] = {}
    for of in (cls for it in expected for cls in it.classes):
        key = (of.role, of.release or "")
        counted[key] = counted.get(key, 0) + len(of.nodes)
    assert {(role, release): count for role, release, count in nodes} == counted


def test_who_changed_a_level(ask: Questions) -> None:
    """The controller is known; what a snapshot showed has none."""
    first = ask.rows("FROM level_changes WHERE cluster = 'small'")
    assert [row[:5] for row in first] == [("small", FEATURE, 0, 19, "finalized")]
    assert first[0][6:] == (1, 1)
    since = ask.rows("SELECT since FROM current_levels WHERE cluster = 'small'")
    assert since == [(first[0][5],)]


def test_the_slowest_node_of_an_upgrade(ask: Questions) -> None:
    """Each waits for the one before it; the first one for none."""
    rows = ask.rows("SELECT upgrade, waited FROM slowest_nodes WHERE cluster = 'orders'")
    waits = [waited for _, waited in rows if waited is not None]
    assert waits == sorted(waits, reverse=True)
    assert len({upgrade for upgrade, _ in rows}) == len(rows) - len(waits) == 3
    assert waits[0] == timedelta(hours=4)


def test_a_cluster_that_drifted(ask: Questions) -> None:
    """Its level differs from that of most clusters, or is not finalized."""
    rows = ask.rows("SELECT cluster, feature, level, usual_level FROM drifted_levels")
    assert {row[0] for row in rows} == {"small"}
    assert ("small", FEATURE, 19, 29) in rows
    assert ("small", "transaction.version", None, 2) in rows


def test_levels_that_can_be_raised(ask: Questions) -> None:
    """One old broker is enough that a level cannot, and a feature that it lacks neither."""
    rows = {
        (cluster, feature): rest for cluster, feature, *rest in ask.rows("FROM supported_levels")
    }
    assert rows["small", FEATURE] == [19, 21, True]
    assert rows["orders", FEATURE] == [29, 21, False]
    assert rows["billing", "eligible.leader.replicas.version"] == [None, 1, True]
    assert rows["orders", "eligible.leader.replicas.version"] == [None, 0, False]


def test_alerts_are_counted_once(root: Path, ask: Questions) -> None:
    """In the week in which they fired, however often they changed."""
    table = DeltaTable(f"{root}/gold/alerts").to_pyarrow_table().to_pylist()
    weeks: dict[tuple[datetime, str], set[Any]] = {}
    for row in table:
        day = row["since"].astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        week = day - timedelta(days=day.weekday())
        weeks.setdefault((week, row["rule"]), set()).add((row["alert_id"], row["since"]))
    found = {(week, rule): fired for week, rule, fired, _ in ask.rows("FROM alerts_per_week")}
    assert found == {key: len(of) for key, of in weeks.items()}
    assert sum(found.values()) < len(table)


def test_nodes_that_are_not_reached(ask: Questions) -> None:
    """By their newest answer, unless they have left."""
    rows = ask.rows("SELECT node_id, detail FROM unreached_nodes")
    assert rows == [(102, "connection refused")]


def test_how_far_a_cluster_is_followed(ask: Questions) -> None:
    """Each row of levels says it, so that old ones are not taken for the present."""
    assert {row[:4] for row in ask.rows("FROM followed_until")} == {
        (cluster, "kraft", "following", NOW - HOUR) for cluster in ("orders", "billing", "small")
    }
    assert ask.rows("SELECT DISTINCT followed_until FROM current_levels") == [(NOW - HOUR,)]


def test_readiness_is_that_of_the_newest_day(frozen: Path) -> None:
    """One row for each release."""
    rows = Questions(frozen).rows("SELECT target, verdict, day FROM readiness_now")
    table = DeltaTable(f"{frozen}/gold/readiness_by_day").to_pyarrow_table().to_pylist()
    newest = max(row["day"] for row in table)
    expected = [
        (row["target"], row["verdict"], row["day"]) for row in table if row["day"] == newest
    ]
    assert sorted(rows) == sorted(expected)


def test_each_view_is_on_the_page() -> None:
    """With its question, and each is one of the file."""
    views = set(re.findall(r"CREATE OR REPLACE (?:VIEW|MACRO) (\w+)", VIEWS))
    assert set(re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)) == views


def test_the_example_knows_all_of_gold() -> None:
    """Both ways declare the same tables."""
    tables = example().TABLES
    assert {f"gold/{name}" for name in tables["gold"]} == {table.path for table in GOLD}
    declared = re.findall(
        r"VIEW (\w+)\.(\w+) AS\n    FROM delta_scan\(\S+ \|\| '/(\w+)/(\w+)'",
        (EXAMPLES / "tables.sql").read_text(),
    )
    assert all((schema, name) == tuple(path) for schema, name, *path in declared)
    expected = [(schema, name) for schema, names in tables.items() for name in names]
    assert [(schema, name) for schema, name, *_ in declared] == expected


@pytest.mark.parametrize("table", [*GOLD, ANSWERS], ids=lambda table: table.path)
def test_polars_and_pandas_read_each_table(frozen: Path, table: Any) -> None:
    """All rows and columns, maps and structures included."""
    path = f"{frozen}/{table.path}"
    count = DeltaTable(path).count()
    assert polars.scan_delta(path).collect().shape == (count, len(table.columns))
    assert DeltaTable(path).to_pandas().shape == (count, len(table.columns))


@pytest.mark.parametrize("lake", ["root", "frozen"])
def test_tables_need_no_feature_of_readers(lake: str, request: pytest.FixtureRequest) -> None:
    """By their protocol: any reader of Delta has it."""
    root = request.getfixturevalue(lake)
    tables = [path.parent for path in root.glob("*/*/_delta_log")]
    assert len(tables) >= len(GOLD)
    for path in tables:
        protocol = DeltaTable(str(path)).protocol()
        assert protocol.min_reader_version == READER_VERSION, path
        assert not protocol.reader_features, path


def test_new_tables_turn_features_off(tmp_path: Path) -> None:
    """Those that this process creates."""
    pytest.importorskip("pyspark")
    from pyspark.sql.types import StringType, StructField, StructType

    from featurewatch.pipeline.lake import local_writer

    columns = StructType([StructField("cluster", StringType())])
    local_writer.create(tmp_path / "table", columns, (), "a table")
    table = DeltaTable(tmp_path / "table")
    assert table.protocol().min_reader_version == READER_VERSION
    assert table.metadata().configuration == PROPERTIES


@pytest.mark.nightly
@pytest.mark.stack
def test_sparks_defaults_turn_no_feature_on(spark: "SparkSession", tmp_path: Path) -> None:
    """In a lake of a store, whose tables Spark creates, on a cluster with other defaults."""
    from featurewatch.pipeline.lake.lake import Lake
    from featurewatch.pipeline.spark.queries import with_settings

    class Store(Lake):
        directory = None

    defaults = "spark.databricks.delta.properties.defaults"
    settings = {
        f"{defaults}.enableDeletionVectors": "true",
        f"{defaults}.columnMapping.mode": "name",
    }
    with with_settings(spark, settings):
        lake = Store(spark, str(tmp_path / "lake"))
        for table in (MESSAGES, EPOCHS):
            lake.ensure_table(table)
            created = DeltaTable(lake.path(table))
            assert created.protocol().min_reader_version == READER_VERSION
            assert created.metadata().configuration.items() >= PROPERTIES.items()


@pytest.mark.nightly
@pytest.mark.network
def test_duckdbs_extension_reads_the_same(root: Path, ask: Questions, tmp_path: Path) -> None:
    """By ``tables.sql``: the answer of each view is that of the other way."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if uv := shutil.which("uv"):
        pip = (uv, "pip", "install", "--quiet", "--python", sys.executable)
    packages = tmp_path / "packages"
    subprocess.run([*pip, "--no-deps", "--target", packages, *EXTENSION], check=True)
    (extension,) = packages.rglob("delta.duckdb_extension")
    views = sorted(set(re.findall(r"CREATE OR REPLACE VIEW (\w+)", VIEWS)))
    program = f"""
import sys; sys.path.insert(0, {str(packages)!r})
import json, duckdb
assert duckdb.__version__ == {EXTENSION[0].partition("==")[2]!r}
con = duckdb.connect()
con.execute("LOAD '{extension}'")
con.execute("SET VARIABLE lake = '{root}'")
for name in ("tables.sql", "views.sql"):
    con.execute(open("{EXAMPLES}/" + name).read())
rows = {{view: con.sql("FROM " + view).fetchall() for view in {views}}}
print(json.dumps(rows, default=str))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in views:
        expected = json.loads(json.dumps(ask.rows(f"FROM {name}"), default=str))
        assert sorted(map(str, found[name])) == sorted(map(str, expected)), name
        assert expected or name == "readiness_now"


RUN = re.findall(r"<!-- run: (\w+) -->\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("source", "shown"), [it[1:] for it in RUN], ids=[it[0] for it in RUN])
def test_an_example_prints_what_the_page_shows(root: Path, source: str, shown: str) -> None:
    """As it is written, with the path of a lake."""
    assert "/data/lake" in source
    printed = StringIO()
    with redirect_stdout(printed):
        run_example(source.replace("/data/lake", str(root)), {})
    assert printed.getvalue() == shown


def test_the_command_of_the_page_prints_an_answer(root: Path) -> None:
    """In a process that imports neither Spark nor featurewatch."""
    (question,) = re.findall(r'query\.py /data/lake "(FROM software)"', PAGE)
    program = (
        "import runpy, sys; sys.argv[0] = 'query.py';"
        f" runpy.run_path({str(EXAMPLES / 'query.py')!r}, run_name='__main__');"
        " assert not {'pyspark', 'featurewatch'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(root), question],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "clusters" in done.stdout
    assert "3.9" in done.stdout
