"""The times as rows of the table in which a state outlives its process, and back.

They are written before the rows of the image: what was written and not finished is taken in again,
and comes to the same times.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import orjson
from immutables import Map

from featurewatch.controller.readiness.state_timers import StateSince, StateTimers
from featurewatch.controller.readiness.upgrade_state import UpgradeState
from featurewatch.streams.types import ClusterId, FeatureName, NodeKey, Role
from featurewatch.tables.rows import PAGE, Row, keys_of_page, row_key

_STATES: Final = "times"
_PAGES: Final = "times/"


def rows_of_times(
    before: StateTimers, after: StateTimers, touched: Iterable[NodeKey], cluster: ClusterId
) -> Iterator[Row]:
    """The rows that changed; ``touched`` are the nodes of which something may have.

    The states come last: as long as there are none, all nodes are looked at.
    """
    pages = dict.fromkeys(
        (key.role, key.node_id // PAGE) for key in touched if _at(before, key) != _at(after, key)
    )
    for role, page in pages:
        away, refused, keys = after.offline, after.refused, keys_of_page(role, page)
        found = [(key.node_id, away.get(key), refused.get(key)) for key in keys]
        known = [one for one in found if one[1] is not None or one[2] is not None]
        key = row_key(cluster, f"{_PAGES}{role}/{page}")
        yield key, orjson.dumps(known) if known else None
    if after.states is not before.states:
        states = {name: list(since) for name, since in sorted(after.states.items())}
        yield row_key(cluster, _STATES), orjson.dumps(states)


def times_of_rows(rows: Mapping[str, bytes]) -> StateTimers:
    """The times that rows hold, by the rows' names."""
    states, away, refused = {}, {}, {}
    for name, value in rows.items():
        if name == _STATES:
            for feature, (state, at_ms) in orjson.loads(value).items():
                states[FeatureName(feature)] = StateSince(UpgradeState(state), at_ms)
        elif name.startswith(_PAGES):
            role = Role(name.split("/")[1])
            for node_id, gone_ms, refused_ms in orjson.loads(value):
                key = NodeKey(role, node_id)
                away.update({} if gone_ms is None else {key: gone_ms})
                refused.update({} if refused_ms is None else {key: refused_ms})
    return StateTimers(Map(states), Map(away), Map(refused))


def _at(times: StateTimers, key: NodeKey) -> tuple[int | None, int | None]:
    return times.offline.get(key), times.refused.get(key)
