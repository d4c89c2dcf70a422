"""The watcher's states and transitions as a table."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class WatcherState(StrEnum):
    """In this order after each connection."""

    OFFLINE = "offline"
    """There is no connection."""

    SYNCING = "syncing"
    """The server catches up with its leader."""

    IDENTIFYING = "identifying"
    """The cluster's id is read; it is not known yet, or is another cluster's."""

    READING = "reading"
    """A sweep reads everything."""

    FOLLOWING = "following"
    """Watches trigger the reads."""


class WatcherTrigger(StrEnum):
    """The triggers that move the watcher from one state to the next."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    SYNCED = "synced"
    STALE_SERVER = "stale server"
    """The server knows less than was read before."""

    IDENTIFIED = "identified"
    OTHER_CLUSTER = "other cluster"
    SNAPSHOT_DUE = "snapshot due"
    """Everything that was published must be published again."""

    SWEPT = "swept"


TRANSITIONS: Final[Mapping[tuple[WatcherState, WatcherTrigger], WatcherState]] = MappingProxyType(
    {
        (WatcherState.OFFLINE, WatcherTrigger.CONNECTED): WatcherState.SYNCING,
        (WatcherState.OFFLINE, WatcherTrigger.DISCONNECTED): WatcherState.OFFLINE,
        (WatcherState.SYNCING, WatcherTrigger.CONNECTED): WatcherState.SYNCING,
        (WatcherState.SYNCING, WatcherTrigger.DISCONNECTED): WatcherState.OFFLINE,
        (WatcherState.SYNCING, WatcherTrigger.SYNCED): WatcherState.IDENTIFYING,
        (WatcherState.SYNCING, WatcherTrigger.STALE_SERVER): WatcherState.SYNCING,
        (WatcherState.IDENTIFYING, WatcherTrigger.CONNECTED): WatcherState.SYNCING,
        (WatcherState.IDENTIFYING, WatcherTrigger.DISCONNECTED): WatcherState.OFFLINE,
        (WatcherState.IDENTIFYING, WatcherTrigger.STALE_SERVER): WatcherState.SYNCING,
        (WatcherState.IDENTIFYING, WatcherTrigger.IDENTIFIED): WatcherState.READING,
        (WatcherState.IDENTIFYING, WatcherTrigger.OTHER_CLUSTER): WatcherState.IDENTIFYING,
        (WatcherState.READING, WatcherTrigger.CONNECTED): WatcherState.SYNCING,
        (WatcherState.READING, WatcherTrigger.DISCONNECTED): WatcherState.OFFLINE,
        (WatcherState.READING, WatcherTrigger.STALE_SERVER): WatcherState.SYNCING,
        (WatcherState.READING, WatcherTrigger.OTHER_CLUSTER): WatcherState.IDENTIFYING,
        (WatcherState.READING, WatcherTrigger.SWEPT): WatcherState.FOLLOWING,
        (WatcherState.FOLLOWING, WatcherTrigger.CONNECTED): WatcherState.SYNCING,
        (WatcherState.FOLLOWING, WatcherTrigger.DISCONNECTED): WatcherState.OFFLINE,
        (WatcherState.FOLLOWING, WatcherTrigger.STALE_SERVER): WatcherState.SYNCING,
        (WatcherState.FOLLOWING, WatcherTrigger.OTHER_CLUSTER): WatcherState.IDENTIFYING,
        (WatcherState.FOLLOWING, WatcherTrigger.SNAPSHOT_DUE): WatcherState.READING,
    }
)
"""The state after each trigger. Pairs not listed are unreachable: requests of an earlier state are
forgotten when it is left. `scripts/draw_states.py` draws the diagram in ``zookeeper.md`` from
this table."""
