"""Which clusters of a fleet can move to a release."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.fleet import fleet
from featurewatch.cli.errors import ExitCode
from featurewatch.pipeline.fleet.readiness import by_day, target_readiness
from featurewatch.pipeline.lake.reader import LakeReader
from tests.pipeline.history.lakes import Story, write

NEWEST = date(2026, 3, 4)


def readiness_row(cluster: str, verdict: str, day: date = NEWEST, **fields: Any) -> dict[str, Any]:
    """A row about moving to 4.3."""
    blockers = fields.get("blocker_names", [])
    return {
        "cluster": cluster,
        "id": f"{cluster}/readiness/{day}/{fields.get('target', '4.3')}",
        "day": day,
        "target": "4.3",
        "verdict": verdict,
        "finalized": False,
        "state": "mixed",
        "blockers": len(blockers),
        "blocker_names": blockers,
        "reasons": [],
        "lossless": False,
        "downgrade_to": ["4.2"],
        **fields,
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with clusters that are ready, not ready, finalized, lost, or were never assessed."""
    before = NEWEST - timedelta(days=1)
    named = [f"broker {number}" for number in range(1, 8)]
    nobody = Story("nobody")
    nobody.node("broker", 1, "4.2")
    rows = [
        readiness_row("able", "no", before, blocker_names=named[:1]),
        readiness_row("able", "yes", lossless=True),
        readiness_row("able", "no", target="4.2"),
        readiness_row("behind", "no", blocker_names=named),
        readiness_row("late", "yes", before),
        readiness_row("lost", "yes", NEWEST - timedelta(days=2)),
        readiness_row("there", "yes", finalized=True),
    ]
    intervals = nobody.rows["capability_intervals"]
    tables_ = {"readiness_by_day": rows, "capability_intervals": intervals}
    return write(tmp_path_factory.mktemp("lake"), tables_)


def test_the_newest_word_of_each_cluster_counts(root: Path) -> None:
    """Rows of other releases and older rows do not count; an outdated one is unknown."""
    readiness = {row.cluster: row for row in target_readiness(LakeReader(str(root)), "4.3")}
    assert {name: row.verdict for name, row in readiness.items()} == {
        "able": "yes",
        "behind": "no",
        "late": "yes",
        "lost": "unknown",
        "nobody": "unknown",
        "there": "yes",
    }
    assert readiness["lost"].reasons == [
        "The lake has no data about it since 2026-03-02: is it still followed?"
    ]
    assert readiness["nobody"].day is None
    assert (readiness["behind"].blockers, len(readiness["behind"].blocker_names)) == (7, 7)


def test_days_are_counted(root: Path) -> None:
    """The number of clusters that could move, could not, or had the levels, for each day."""
    days = by_day(LakeReader(str(root)), "4.3")
    assert [
        (str(counts.day), counts.yes, counts.no, counts.unknown, counts.finalized)
        for counts in days
    ] == [
        ("2026-03-02", 1, 0, 0, 0),
        ("2026-03-03", 1, 1, 0, 0),
        ("2026-03-04", 1, 1, 0, 1),
    ]


def test_the_command_names_who_is_in_the_way(root: Path) -> None:
    """One line per cluster; exit code 3 if any cannot move."""
    result = CliRunner().invoke(fleet, ["readiness", "--target", "4.3.0", "--lake", str(root)])
    assert result.exit_code == ExitCode.NO
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "not ready" in lines["behind"]
    assert "7: broker 1, broker 2, broker 3, broker 4, broker 5 and 2 more" in lines["behind"]
    assert "is there" in lines["there"]
    assert "without loss" in lines["able"]
    assert "unknown" in lines["nobody"]


def test_documents(root: Path) -> None:
    """One document per line, for clusters and for days."""
    flags = ["readiness", "--target", "4.3", "--lake", str(root), "--json"]
    documents = [json.loads(line) for line in CliRunner().invoke(fleet, flags).stdout.splitlines()]
    assert [document["cluster"] for document in documents][:2] == ["able", "behind"]
    by_days = CliRunner().invoke(fleet, [*flags, "--by-day"])
    assert json.loads(by_days.stdout.splitlines()[0])["day"] == "2026-03-02"
    assert by_days.exit_code == ExitCode.NO


def test_a_fleet_of_which_nothing_is_known_is_unknown(tmp_path: Path) -> None:
    """An empty lake is unknown, not ready."""
    lake = write(tmp_path / "lake", {})
    result = CliRunner().invoke(fleet, ["readiness", "--target", "4.3", "--lake", str(lake)])
    assert result.exit_code == ExitCode.UNKNOWN


@pytest.mark.parametrize("flags", [[], ["--target", "9.9"]])
def test_a_release_must_be_one(flags: list[str]) -> None:
    """A missing or unknown release is wrong usage; the line lists the releases."""
    result = CliRunner().invoke(fleet, ["readiness", "--lake", "nowhere", *flags])
    assert "which has 3.3 to 4.4; give one with --target" in str(result.exception)
