"""The scenarios of the reference system beside this file."""

from pathlib import Path

import pytest

from tests.scenarios.reference.runner import Scenario

FILES = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(file: Path) -> None:
    """What the table says follows from each event, and nothing else; its heading names rows."""
    Scenario().play(file.read_text())


def test_there_are_scenarios() -> None:
    """An empty directory would pass for nothing."""
    assert len(FILES) >= 12


def test_a_row_that_is_wrong_fails() -> None:
    """With its line and with what really followed."""
    with pytest.raises(AssertionError, match=r"line 2.*\n.*\+b1, @0 alpha=3"):
        Scenario().play("speak later-draft\nstart b1 alpha:1-3 | +b1")
