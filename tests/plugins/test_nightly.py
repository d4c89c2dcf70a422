"""The plugin that leaves tests and cases to the night."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from featurewatch.stack.java.lock import jar_lock
from tests.paths import ROOT
from tests.plugins.nightly import RELEASES

TESTS = """
import pytest
from hypothesis import given, settings, strategies as st
from tests.plugins.nightly import case_count, case_seeds

@pytest.fixture(scope="module")
def cluster(release):
    return release

@pytest.mark.releases("4.1.2", "4.3.0")
def test_marked(cluster):
    pass

@pytest.mark.nightly
def test_of_the_night():
    pass

def test_seeds():
    print("seeds", case_count(50), case_seeds(20))

@pytest.mark.parametrize("case", "ab")
@given(st.integers(0, 10**9))
def test_drawn(case, number):
    print("drawn", case, number)

@settings(max_examples=24)
@given(st.integers(0, 10**9))
def test_drawn_rarely(number):
    print("drawn rarely", number)
"""


def test_two_runs_by_day_are_the_same_and_one_by_night_is_larger(tmp_path: Path) -> None:
    """By day a tenth of the cases and a third of the examples are tried, with the same seeds.

    A marked test runs on the mark's releases, the option's, or those of the night. The sessions
    are shared, since each takes a second and a half of a processor.
    """
    named = ("--releases", "3.3.2,3.7.0")
    day, again, night = (_session(tmp_path, "-sv", *more) for more in ((), named, ("--nightly",)))
    chosen = [line for line in day.splitlines() if "drawn " in line or "seeds " in line]
    assert "seeds 5 range(0, 2)" in day
    assert chosen == [line for line in again.splitlines() if "drawn " in line or "seeds " in line]
    assert "1 deselected" in day
    assert "seeds 50 range(" in night
    assert "range(0, 20)" not in night
    assert "deselected" not in night
    for output, examples, rare in ((day, 33, 20), (night, 100, 24)):
        drawn = Counter(re.findall(r"drawn (\w+) \d+$", output, re.MULTILINE))
        assert drawn == {"a": examples, "b": examples, "rarely": rare}
    for output, releases in (
        (day, ["4.1.2", "4.3.0"]),
        (again, ["3.3.2", "3.7.0"]),
        (night, [*RELEASES]),
    ):
        assert re.findall(r"::test_marked\[(.+?)\] ", output) == releases


def _session(directory: Path, *options: str) -> str:
    (directory / "test_some.py").write_text(TESTS)
    (directory / "pytest.ini").write_text(
        "[pytest]\naddopts = -p tests.plugins.nightly -p no:cacheprovider\n"
        f"pythonpath = {ROOT}\nmarkers =\n releases\n nightly\n"
    )
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_nightly_releases_are_the_ends_of_each_line() -> None:
    """Each line has its oldest and its newest patch that the lock of the jars has; the newest line
    has one."""
    patches: dict[str, list[str]] = {}
    for release in sorted(jar_lock().class_paths):
        patches.setdefault(release.rpartition(".")[0], []).append(release)
    lines = ("3.3", "3.7", "3.9", "4.1", "4.3", "4.4")
    ends = [end for line in lines for end in (patches[line][0], patches[line][-1])]
    assert tuple(dict.fromkeys(ends)) == RELEASES
