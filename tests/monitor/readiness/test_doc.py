"""``docs/how-to/readiness.md`` matches the code."""

import re
from pathlib import Path

from featurewatch.monitor.readiness import UpgradeState

TEXT = (Path(__file__).parents[3] / "docs" / "how-to" / "readiness.md").read_text()


def test_the_documented_states_are_those_of_the_code() -> None:
    """Each state is listed, and no other."""
    documented = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", TEXT, re.MULTILINE)
    assert documented == [str(state) for state in UpgradeState]
