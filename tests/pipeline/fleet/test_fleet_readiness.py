"""Which clusters of a fleet can go to a release."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.fleet import fleet as app
from featurewatch.cli.errors import ExitCode
from featurewatch.pipeline.fleet.readiness import by_day, target_readiness
from featurewatch.pipeline.lake.reader import LakeReader
from tests.pipeline.history.lakes import Story, write

NEWEST = date(2026, 3, 4)


def standing(cluster: str, verdict: str, day: date = NEWEST, **fields: Any) -> dict[str, Any]:
    """A row on the way to 4.3."""
    blockers = fields.get("named", [])
    return {
        "cluster": cluster,
        "id": f"{cluster}/readiness/{day}/{fields.get('target', '4.3')}",
        "day": day,
        "target": "4.3",
        "verdict": verdict,
        "finalized": False,
        "state": "mixed",
        "blockers": len(blockers),
        "named": blockers,
        "reasons": [],
        "lossless": False,
        "back_to": ["4.2"],
        **fields,
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of clusters that are ready, not ready, there, lost, and never looked at."""
    before = NEWEST - timedelta(days=1)
    named = [f"broker {number}" for number in range(1, 8)]
    nobody = Story("nobody")
    nobody.node("broker", 1, "4.2")
    rows = [
        standing("able", "no", before, named=named[:1]),
        standing("able", "yes", lossless=True),
        standing("able", "no", target="4.2"),
        standing("behind", "no", named=named),
        standing("late", "yes", before),
        standing("lost", "yes", NEWEST - timedelta(days=2)),
        standing("there", "yes", finalized=True),
    ]
    intervals = nobody.rows["capability_intervals"]
    found = {"readiness_by_day": rows, "capability_intervals": intervals}
    return write(tmp_path_factory.mktemp("lake"), found)


def test_the_newest_word_of_each_cluster_counts(root: Path) -> None:
    """What was said of another release, or before, plays no part; what is old is unknown."""
    found = {each.cluster: each for each in target_readiness(LakeReader(str(root)), "4.3")}
    assert {name: each.verdict for name, each in found.items()} == {
        "able": "yes",
        "behind": "no",
        "late": "yes",
        "lost": "unknown",
        "nobody": "unknown",
        "there": "yes",
    }
    assert found["lost"].reasons == [
        "Nothing was heard of it since 2026-03-02: is it still followed?"
    ]
    assert found["nobody"].day is None
    assert (found["behind"].blockers, len(found["behind"].named)) == (7, 7)


def test_days_are_counted(root: Path) -> None:
    """How many clusters could go, could not, or were there, on each day."""
    days = by_day(LakeReader(str(root)), "4.3")
    assert [(str(each.day), each.yes, each.no, each.unknown, each.finalized) for each in days] == [
        ("2026-03-02", 1, 0, 0, 0),
        ("2026-03-03", 1, 1, 0, 0),
        ("2026-03-04", 1, 1, 0, 1),
    ]


def test_the_command_names_who_is_in_the_way(root: Path) -> None:
    """A line a cluster; 3 if any cannot go, whatever is not known."""
    result = CliRunner().invoke(app, ["readiness", "--target", "4.3.0", "--lake", str(root)])
    assert result.exit_code == ExitCode.NO
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert "not ready" in lines["behind"]
    assert "7: broker 1, broker 2, broker 3, broker 4, broker 5 and 2 more" in lines["behind"]
    assert "is there" in lines["there"]
    assert "without loss" in lines["able"]
    assert "unknown" in lines["nobody"]


def test_documents(root: Path) -> None:
    """A document a line: of clusters, and of days."""
    flags = ["readiness", "--target", "4.3", "--lake", str(root), "--json"]
    documents = [json.loads(line) for line in CliRunner().invoke(app, flags).stdout.splitlines()]
    assert [each["cluster"] for each in documents][:2] == ["able", "behind"]
    days = CliRunner().invoke(app, [*flags, "--by-day"]).stdout.splitlines()
    assert json.loads(days[0])["day"] == "2026-03-02"


def test_a_fleet_of_which_nothing_is_known_is_unknown(tmp_path: Path) -> None:
    """No cluster, no yes."""
    lake = write(tmp_path / "lake", {})
    result = CliRunner().invoke(app, ["readiness", "--target", "4.3", "--lake", str(lake)])
    assert result.exit_code == ExitCode.UNKNOWN


@pytest.mark.parametrize("flags", [[], ["--target", "9.9"]])
def test_a_release_must_be_one(flags: list[str]) -> None:
    """A release that there is not, or none, is wrong usage that says which there are."""
    result = CliRunner().invoke(app, ["readiness", "--lake", "nowhere", *flags])
    assert "which has 3.3 to 4.3; give one with --target" in str(result.exception)
