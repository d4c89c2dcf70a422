"""docs/pipeline.md matches the registry of tables."""

import re
from pathlib import Path

from featurewatch.pipeline.gold.tables import AUDIT, GOLD
from featurewatch.pipeline.lake.tables import BRONZE
from featurewatch.pipeline.silver.tables import SILVER

DOCS = Path(__file__).parents[3] / "docs" / "pipeline.md"


def test_the_documentation_lists_the_tables() -> None:
    """Path, meaning and key of each table, in the registry's order."""
    listed = re.findall(r"^\| `(\w+/\w+)` \| (.+?) \| (.+?) \|$", DOCS.read_text(), re.MULTILINE)
    assert listed == [
        (table.path, table.about, ", ".join(f"`{name}`" for name in table.key))
        for table in (*BRONZE, *SILVER, *GOLD, AUDIT)
    ]
