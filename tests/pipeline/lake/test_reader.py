"""The reader works without a JVM, and its errors are one line."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.history.moments import (
    AtEpoch,
    AtOffset,
    AtRevision,
    AtTime,
    Moment,
    MomentError,
    parse_moment,
)
from featurewatch.pipeline.lake.reader import ALERTS, EPOCHS, LakeReader, sql
from tests.cli.commands import environment
from tests.paths import ROOT
from tests.pipeline.history.lakes import START, Story, lake_of

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_values_are_quoted() -> None:
    """A cluster id cannot end its literal."""
    condition = sql("a = $a AND b <= $b AND c = $c", a="x' OR '1'='1", b=NOW, c=7)
    assert condition == (
        "a = 'x'' OR ''1''=''1' AND b <= TIMESTAMP '2026-11-21T12:00:00.000000+00:00' AND c = 7"
    )


def test_a_time_that_sql_has_not_is_the_nearest_one(tmp_path: Path) -> None:
    """Times outside SQL's range compare as before or after everything, in any zone."""
    lake = LakeReader(str(lake_of(tmp_path, Story("a"))))
    east, west = (timezone(timedelta(hours=hours)) for hours in (14, -14))
    for at in (datetime(1, 1, 1, tzinfo=east), datetime(1600, 1, 1, tzinfo=UTC)):
        assert lake.query("SELECT $at < $now AS before", EPOCHS, at=at, now=NOW) == [
            {"before": True}
        ]
    for at in (datetime(9999, 12, 31, 23, tzinfo=west), datetime(2999, 1, 1, tzinfo=UTC)):
        assert lake.query("SELECT $at > $now AS after", EPOCHS, at=at, now=NOW) == [{"after": True}]


def test_rows_come_as_plain_values(tmp_path: Path) -> None:
    """Maps are dictionaries, times are aware, and a quote in an id is part of it."""
    story = Story("o'brien")
    story.finalize("metadata.version", 21)
    lake = LakeReader(str(lake_of(tmp_path, story)))
    rows = lake.query(
        "SELECT finalized, at FROM epochs WHERE cluster = $cluster", EPOCHS, cluster="o'brien"
    )
    assert rows == [{"finalized": {"metadata.version": 21}, "at": START + timedelta(hours=1)}]
    assert lake.newest(EPOCHS, "at") == START + timedelta(hours=1)


def test_a_lake_without_a_table_says_how_to_fill_it(tmp_path: Path) -> None:
    """Whether the lake or only the table is missing."""
    with pytest.raises(LakeError, match=r"has no table gold/epochs: fill it .*pipeline run"):
        LakeReader(str(tmp_path / "nowhere")).query("SELECT 1 FROM epochs", EPOCHS)
    lake = LakeReader(str(lake_of(tmp_path, Story("a"), without=["alerts"])))
    with pytest.raises(LakeError, match=r"has no table gold/alerts: fill it .*pipeline run"):
        lake.query("SELECT 1 FROM alerts", ALERTS)
    assert (lake.has(EPOCHS), lake.has(ALERTS)) == (True, False)


def test_an_older_lake_says_how_to_renew_it(tmp_path: Path) -> None:
    """Maintenance adds a missing column."""
    lake = LakeReader(str(lake_of(tmp_path, Story("a"))))
    with pytest.raises(LakeError, match=r"older featurewatch.* featurewatch pipeline maintain$"):
        lake.query("SELECT tomorrow FROM epochs", EPOCHS)


def test_a_broken_lake_is_one_line(tmp_path: Path) -> None:
    """A table with a missing file, and one whose log is invalid."""
    story = Story("a")
    story.finalize("metadata.version", 21)
    lake = lake_of(tmp_path, story)
    next(iter((lake / EPOCHS).glob("*.parquet"))).unlink()
    with pytest.raises(LakeError, match=r"^the lake \S+ cannot be read \(gold/epochs\): .+$"):
        LakeReader(str(lake)).query("SELECT * FROM epochs", EPOCHS)
    next(iter((lake / ALERTS / "_delta_log").glob("*.json"))).write_text("{]")
    with pytest.raises(LakeError, match=r"^the lake \S+ cannot be read \(gold/alerts\): .+$"):
        LakeReader(str(lake)).query("SELECT * FROM alerts", ALERTS)


def test_a_torn_log_is_reported_without_the_librarys_backtrace(tmp_path: Path) -> None:
    """A log as a power failure may leave it."""
    lake = lake_of(tmp_path, Story("a"))
    log = next(iter((lake / ALERTS / "_delta_log").glob("*.json")))
    log.write_text(log.read_text()[:300])
    with pytest.raises(LakeError, match=r"cannot be read \(gold/alerts\): [^<>]+$"):
        LakeReader(str(lake)).query("SELECT * FROM alerts", ALERTS)


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2026-11-20", AtTime(datetime(2026, 11, 20, tzinfo=UTC))),
        ("2026-11-20T14:30:05+01:00", AtTime(datetime(2026, 11, 20, 13, 30, 5, tzinfo=UTC))),
        ("2026-11-20 14:30Z", AtTime(datetime(2026, 11, 20, 14, 30, tzinfo=UTC))),
        ("2 days ago", AtTime(NOW - timedelta(days=2))),
        ("90m", AtTime(NOW - timedelta(minutes=90))),
        ("Yesterday", AtTime(NOW - timedelta(days=1))),
        ("now", AtTime(NOW)),
        ("offset:17", AtOffset(17)),
        ("epoch:0", AtEpoch(0)),
        ("Revision:3", AtRevision(3)),
    ],
)
def test_moments_are_read(given: str, moment: Moment) -> None:
    """Times with a zone or in UTC, relative times, and positions."""
    assert parse_moment(given, NOW) == moment


@pytest.mark.parametrize(
    "given",
    ["", "2026-13-01", "two days ago", "offset:", "offset:-1", "level:3", "999999 weeks ago", "12"],
)
def test_what_is_no_moment_says_what_is_one(given: str) -> None:
    """The text lists the valid forms."""
    with pytest.raises(MomentError, match=r"is not a moment: give a time .*offset:N"):
        parse_moment(given, NOW)


def test_a_question_starts_no_engine(tmp_path: Path) -> None:
    """The command imports neither Spark nor pyarrow nor the worker."""
    story = Story("only")
    story.node("broker", 1, "4.0")
    story.finalize("metadata.version", 25)
    result = subprocess.run(
        [
            *(
                sys.executable,
                "-X",
                "importtime",
                "-m",
                "featurewatch",
                "history",
                "show",
                "--json",
            ),
            *("--lake", str(lake_of(tmp_path / "lake", story))),
        ],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert '"metadata.version":25' in result.stdout
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "deltalake" in imported
    assert imported & {"pyspark", "pyarrow", "faust", "confluent_kafka", "matplotlib"} == set()
