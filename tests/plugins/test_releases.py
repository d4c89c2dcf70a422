"""The plugin that chooses the releases of Kafka on which tests run."""

from pathlib import Path

import pytest

from featurewatch.stack.java.lock import jar_lock
from tests.plugins.releases import NIGHTLY

pytest_plugins = ("pytester",)

INI = f"""
[pytest]
addopts = -p tests.plugins.releases -p no:cacheprovider
pythonpath = {Path(__file__).parents[2]}
markers =
    releases
    nightly
"""
TESTS = """
import pytest

@pytest.fixture(scope="module")
def cluster(release):
    return release

@pytest.mark.releases("4.1.2", "4.3.0")
def test_marked(cluster):
    pass

def test_unmarked():
    pass

@pytest.mark.nightly
def test_of_the_night():
    pass
"""


@pytest.mark.parametrize(
    ("options", "releases"),
    [
        ([], ("4.1.2", "4.3.0")),
        (["--releases", "3.3.2,3.7.0"], ("3.3.2", "3.7.0")),
        (["--releases", "all"], NIGHTLY),
    ],
)
def test_a_marked_test_runs_once_on_each_release(
    pytester: pytest.Pytester, options: list[str], releases: tuple[str, ...]
) -> None:
    """Those of its mark, or those of the option; other tests run once, nightly ones only then."""
    pytester.makeini(INI)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-v", *options)
    is_night = bool(options)
    result.assert_outcomes(passed=len(releases) + 1 + is_night, skipped=not is_night)
    for release in releases:
        result.stdout.fnmatch_lines([f"*test_marked*{release}* PASSED*"])


def test_the_nightly_releases_are_the_ends_of_each_line() -> None:
    """The oldest and the newest patch that the lock of the jars has."""
    patches: dict[str, list[str]] = {}
    for release in sorted(jar_lock().class_paths):
        patches.setdefault(release.rpartition(".")[0], []).append(release)
    lines = ("3.3", "3.7", "3.9", "4.1", "4.3")
    assert tuple(end for line in lines for end in (patches[line][0], patches[line][-1])) == NIGHTLY
