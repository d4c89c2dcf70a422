"""Directory ids that name no log directory (``org.apache.kafka.common.DirectoryId``)."""

from collections.abc import Container
from typing import Final

MIGRATING: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The replica is in some directory; it was placed at a level that has no directories. Id 0."""
UNASSIGNED: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The broker has not said yet where it places the replica. Id 1."""
LOST: Final = "AAAAAAAAAAAAAAAAAAAAAg"
"""The replica is in a directory that is offline. Id 2."""


def is_online(directory: str, online: Container[str] | None) -> bool:
    """Whether the directory of a replica works, as far as is known (``DirectoryId.isOnline``).

    ``online`` are the ids that its broker has registered; empty or None: it names none.
    """
    if directory in (MIGRATING, UNASSIGNED):
        return True
    return directory != LOST and (not online or directory in online)
