"""What the observer of the znodes is about."""

from enum import StrEnum


class WatcherState(StrEnum):
    """In this order after each connection."""

    OFFLINE = "offline"
    """There is no connection."""
    SYNCING = "syncing"
    """The server catches up with its leader."""
    IDENTIFYING = "identifying"
    """Whose znodes these are is not known yet, or they are another cluster's."""
    READING = "reading"
    """Everything is read anew."""
    FOLLOWING = "following"
    """Watches tell what is to be read."""
