"""Plays the scenarios of the reference system in this folder."""

from pathlib import Path

import pytest

from tests.plugins.requirements import with_rows
from tests.scenarios.reference.runner import Scenario

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("file", with_rows(FILES))
def test_scenario(file: Path) -> None:
    """Exactly the expected events follow from each row; the heading names the specification's
    rows."""
    Scenario().play(file.read_text())


def test_there_are_scenarios() -> None:
    """An empty folder would pass without testing anything."""
    assert len(FILES) >= 12


def test_a_row_that_is_wrong_fails() -> None:
    """The failure has the line and the actual events."""
    with pytest.raises(AssertionError, match=r"line 2.*\n.*\+b1, @0 alpha=3"):
        Scenario().play("speak later-draft\nstart b1 alpha:1-3 | +b1")
