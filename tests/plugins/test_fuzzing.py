"""The plugin that fuzzes for a time, in a separate session."""

import re
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[2]
TESTS = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=2)
@given(st.integers())
def test_any(number):
    pass

@settings(max_examples=2)
@given(st.integers())
def test_small(number):
    assert number < 1_000
"""


def test_each_test_has_its_share_and_findings_are_stored(pytester: pytest.Pytester) -> None:
    """A test runs far more examples than it is written with; the suite then finds what failed."""
    pytester.makeini(
        "[pytest]\naddopts = -p _hypothesis_pytestplugin -p tests.plugins.fuzzing\n"
        f"pythonpath = {ROOT}"
    )
    pytester.makepyfile(TESTS)
    fuzzed = pytester.runpytest_subprocess("--fuzz-minutes", "0.05")
    fuzzed.assert_outcomes(passed=1, failed=1)
    count = re.search(r"([\d,]+)  \S+::test_any$", fuzzed.stdout.str(), re.MULTILINE)
    assert count is not None
    assert int(count[1].replace(",", "")) > 20
    assert any(path.is_file() for path in (pytester.path / "tests" / "corpus").rglob("*"))
    suite = pytester.runpytest_subprocess("-k", "small")
    suite.assert_outcomes(failed=1)
