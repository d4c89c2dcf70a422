"""How many rows the tables of a lake have that others fill."""

from pathlib import Path
from typing import Final

from deltalake import DeltaTable

_counted: Final[dict[Path, tuple[str, int]]] = {}
"""The newest commit in a table's log, and the number of rows since then."""


def row_count(root: Path, path: str) -> int:
    """Returns the number of rows of a table, from its log.

    The log is read if a commit has come: who asks fifty times a second would otherwise take half a
    core from those whose time is measured.
    """
    table = root / path
    newest = max((file.name for file in (table / "_delta_log").glob("*.json")), default="")
    if not newest:
        return 0
    if table not in _counted or _counted[table][0] != newest:
        _counted[table] = newest, int(DeltaTable(table).count())
    return _counted[table][1]
