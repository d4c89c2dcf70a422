"""The scenarios beside this file, each played once and once more with a restart at every row."""

from pathlib import Path

import pytest

from tests.plugins.requirements import with_rows
from tests.scenarios.runner import SCENARIO_FILES, Scenario


@pytest.mark.parametrize("file", with_rows(SCENARIO_FILES))
def test_scenario(file: Path) -> None:
    """What the table says follows from each event, and nothing else; its heading names rows."""
    Scenario().play(file.read_text())


@pytest.mark.parametrize("file", SCENARIO_FILES, ids=lambda file: file.stem)
def test_scenario_with_restarts(file: Path) -> None:
    """The same with the state loaded from its rows after each event."""
    rows = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    Scenario().play("\n".join(f"{row}\ncrash |" for row in rows if row.strip()))


def test_there_are_scenarios() -> None:
    """An empty directory would pass for nothing."""
    assert len(SCENARIO_FILES) >= 12


def test_a_row_that_is_wrong_fails() -> None:
    """With its line and with what really followed."""
    with pytest.raises(AssertionError, match=r"line 1.*\n.*mv 0>21, rev 1"):
        Scenario().play("commit 5 mv=21 | mv 0>20, rev 1")
