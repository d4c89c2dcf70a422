"""Converts state timers to rows of the state table and back.

They are written before the rows of the image: after an incomplete write the event is applied again,
with the same result.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import orjson
from immutables import Map

from featurewatch.common.json_bytes import json_bytes
from featurewatch.monitor.quorum.timers import (
    NO_QUORUM_TIMERS,
    timers_from_row,
    timers_to_row,
)
from featurewatch.monitor.readiness.state_timers import StateSince, StateTimers
from featurewatch.monitor.readiness.upgrade_state import UpgradeState
from featurewatch.streams.types import ClusterId, FeatureName, NodeKey, Role
from featurewatch.tables.rows import PAGE, Row, keys_of_page, row_key

TIMERS: Final = "timers"
"""The family of these rows; its own name is the row of the states."""

QUORUM_TIMERS: Final = "quorum-timers"
"""The name of the row of the quorum's timers."""


def rows_of_timers(
    before: StateTimers, after: StateTimers, touched: Iterable[NodeKey], cluster: ClusterId
) -> Iterator[Row]:
    """The rows that changed; ``touched`` are the nodes whose timers may have changed.

    The row of the states comes last: while it is missing, all nodes are evaluated.
    """
    pages = dict.fromkeys(
        (key.role, key.node_id // PAGE)
        for key in touched
        if _timers_of(before, key) != _timers_of(after, key)
    )
    for role, page in pages:
        offline, refused, keys = after.offline, after.refused, keys_of_page(role, page)
        entries = [(key.node_id, offline.get(key), refused.get(key)) for key in keys]
        nonempty = [entry for entry in entries if entry[1] is not None or entry[2] is not None]
        key = row_key(cluster, f"{TIMERS}/{role}/{page}")
        yield key, json_bytes(nonempty) if nonempty else None
    if after.quorum is not before.quorum:
        quorum = timers_to_row(after.quorum)
        yield row_key(cluster, QUORUM_TIMERS), json_bytes(quorum) if quorum else None
    if after.states is not before.states:
        states = {name: list(since) for name, since in sorted(after.states.items())}
        yield row_key(cluster, TIMERS), json_bytes(states) if states else None


def timers_of_rows(rows: Mapping[str, bytes]) -> StateTimers:
    """The timers in rows, given by row name."""
    states, offline, refused, quorum = {}, {}, {}, NO_QUORUM_TIMERS
    for name, value in rows.items():
        if name == TIMERS:
            for feature, (state, at_ms) in orjson.loads(value).items():
                states[FeatureName(feature)] = StateSince(UpgradeState(state), at_ms)
        elif name == QUORUM_TIMERS:
            quorum = timers_from_row(orjson.loads(value))
        elif name.startswith(f"{TIMERS}/"):
            role = Role(name.split("/")[1])
            for node_id, offline_ms, refused_ms in orjson.loads(value):
                key = NodeKey(role, node_id)
                offline.update({} if offline_ms is None else {key: offline_ms})
                refused.update({} if refused_ms is None else {key: refused_ms})
    return StateTimers(Map(states), Map(offline), Map(refused), quorum)


def _timers_of(times: StateTimers, key: NodeKey) -> tuple[int | None, int | None]:
    return times.offline.get(key), times.refused.get(key)
