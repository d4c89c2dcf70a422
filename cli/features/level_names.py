"""The names of metadata.version's levels as a release knows them, and nothing else of the table.

The same file as `controller.kraft.table` reads, for the command that must not wait for the rest.
"""

import json
import pkgutil
from functools import cache
from typing import Final

_TABLE: Final = "kraft/features.json"


@cache
def level_names(release: str) -> dict[int, str]:
    """Level to name, the unstable levels of the release with them."""
    content = pkgutil.get_data("controller", _TABLE)
    assert content is not None  # noqa: S101 - the package has its data
    table = json.loads(content)
    known = table["releases"][release]
    low, high = known["supported"]["metadata.version"]
    stable = [one for one in table["metadata.version"] if low <= one["level"] <= high]
    return {one["level"]: one["name"] for one in (*stable, *known["unstable_levels"])}
