"""A release is one file: what one dropped into a directory changes, and what is refused."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from featurewatch.controller.kraft.release_rules import compared, rules_of
from featurewatch.controller.kraft.releases import production_levels, release_of, releases
from featurewatch.controller.levels import level_name
from featurewatch.controller.partitions.release_rules import NEWEST as NEWEST_RULES
from featurewatch.controller.partitions.release_rules import CompletionRule, partition_rules
from featurewatch.kafka import releases as kafka_releases
from featurewatch.kafka.releases import learned_notes, newest_patch, release_files, reread
from featurewatch.kafka.releases.compose import text
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel

NEWEST = release_files()[-1]
LEVEL = NEWEST.content["supported"]["metadata.version"][1] + 5
RELEASE = "99.1"


def made_up(**changes: Any) -> dict[str, Any]:
    """The file of a release that there is not: a level, a gate and a record that no other has."""
    numbers = range(production_levels()[-1].level + 1, LEVEL + 1)
    content = {
        key: value for key, value in NEWEST.content.items() if key not in ("rules", "consequences")
    }
    content |= {
        "release": RELEASE,
        "kafka": f"{RELEASE}.0",
        "supported": {**content["supported"], "metadata.version": [7, LEVEL]},
        "unstable": {**content["unstable"], "metadata.version": [7, LEVEL]},
        "floors": {**content["floors"], **{str(it): it for it in numbers}},
        "levels": [
            {"level": it, "name": f"99.1-IV{it}", "release": RELEASE, "changes_metadata": True}
            for it in numbers
        ],
        "gates": {"isOdd": {str(LEVEL): True}},
        "records": [{"key": 99, "type": "ODD_RECORD", "versions": "0-3", "fields": []}],
        "controls": [],
        "requests": {},
        "learned": {"from": "a directory", "at": "2026-11-25T12:00:00Z", "left_out": []},
    }
    return content | changes


@contextmanager
def _uses(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The block has the learned tables of a directory; nothing of them stays afterwards."""
    with monkeypatch.context() as changed:
        changed.setenv(VARIABLE, str(directory))
        reread()
        yield
    reread()
    assert RELEASE not in releases()
    assert level_name(METADATA_VERSION, FeatureLevel(LEVEL)).startswith(f"{LEVEL} (newer than")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with the made-up release, in use."""
    (tmp_path / f"{RELEASE}.json").write_text(text(made_up()))
    (tmp_path / "notes.txt").write_text("")
    with _uses(tmp_path, monkeypatch):
        yield tmp_path


def test_a_dropped_file_is_a_release_everywhere(directory: Path) -> None:
    """Levels, names, ranges, gates, rules and records have it."""
    release = release_of(RELEASE)
    assert [*releases()][-1] == RELEASE
    assert release is releases()[RELEASE]
    assert release.ranges()[METADATA_VERSION] == (7, LEVEL)
    assert level_name(METADATA_VERSION, FeatureLevel(LEVEL)) == f"{LEVEL} (99.1-IV{LEVEL})"
    assert release.gate(LEVEL, "isOdd") and not release.gate(LEVEL - 1, "isOdd", False)
    assert record_table().records[99].newest == 3
    assert release_files()[-1].is_learned and not release_files()[-2].is_learned


def test_a_learned_release_decides_as_the_newest_does(directory: Path) -> None:
    """Its own rules are unknown, and so it does not count as compared."""
    learned, newest = rules_of(RELEASE), rules_of(NEWEST.release)
    assert (learned.all_or_nothing, learned.default_level) == (True, newest.default_level)
    assert not learned.compared
    assert RELEASE not in compared()


def test_the_stack_does_not_start_what_was_learned(directory: Path) -> None:
    """Its default is the newest release of the package, whose jars are locked."""
    assert newest_patch() == NEWEST.content["kafka"]


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", "{}", json.dumps({"release": "odd"}), json.dumps({"release": 99.1})],
)
def test_an_invalid_file_changes_nothing(
    tmp_path: Path,
    content: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line in the log names it."""
    (tmp_path / f"{RELEASE}.json").write_text(content)
    before = release_files()
    with _uses(tmp_path, monkeypatch):
        assert release_files() == before
    (line,) = caplog.messages
    assert f"{RELEASE}.json is ignored: " in line


def test_the_file_of_the_package_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A directory cannot replace what the package knows."""
    changed = {**NEWEST.content, "minimum": 1}
    (tmp_path / f"{NEWEST.release}.json").write_text(json.dumps(changed))
    with _uses(tmp_path, monkeypatch):
        assert release_files()[-1] == NEWEST
    assert "has its own tables" in caplog.text


def test_the_files_are_in_the_order_of_releases() -> None:
    """Each has the whole range of levels that the levels of the files before lead up to."""
    numbers = [file.number for file in release_files()]
    assert numbers == sorted(numbers) and numbers[0] == (3, 3)


def test_a_file_is_written_as_it_was_read() -> None:
    """The text of each is what the script writes, and its jars have digests."""
    for file in release_files():
        assert Path(file.directory, f"{file.release}.json").read_text() == text(file.content)
        assert len(file.content["sources"]) == 3


def test_a_learned_release_changes_partitions_as_the_newest_does(directory: Path) -> None:
    """Rules of partitions are those of the newest file up to a release that has any."""
    assert partition_rules((99, 1)) == partition_rules(NEWEST_RULES)
    assert partition_rules((99, 1)).completion is CompletionRule.ADDING_UNLESS_SHRINKING
    found = [partition_rules(number).completion for number in ((3, 3), (3, 7), (3, 8), (4, 2))]
    assert [*map(str, found)] == ["adding", "adding", "all", "all"]
    assert partition_rules((0, 0)) == partition_rules((3, 3))


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["features", "--help"]])
def test_commands_that_show_no_release_read_no_file(arguments: list[str]) -> None:
    """They start as soon as if there were none."""
    program = (
        "import sys\n"
        "def look(event, arguments):\n"
        "    if event == 'open' and str(arguments[0]).endswith('.json'):\n"
        "        sys.stderr.write(f'{arguments[0]}\\n')\n"
        "sys.addaudithook(look)\n"
        "from featurewatch.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_learned_files_notes_of_them_read_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every printed state asks for them."""
    with _uses(tmp_path / "missing", monkeypatch), monkeypatch.context() as patch:
        patch.setattr(kafka_releases, "read_file", pytest.fail)
        assert learned_notes() == {}
