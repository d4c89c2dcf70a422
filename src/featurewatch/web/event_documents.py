"""The documents that events carry, so that clients need not fetch what changed. Pure.

An event has a document only if that is small: it is sent to every client, whatever it shows. A
client fetches what an event does not carry.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import orjson

from featurewatch.streams.outputs import Snapshot
from featurewatch.web.documents import ClusterFacts, cluster_document
from featurewatch.web.history.cluster_history import ClusterHistory
from featurewatch.web.history.differences import revision_row

MAX_CARRIED_BYTES: Final = 16 << 10
"""Of the document in one event."""

MAX_CARRIED_NODES: Final = 1_000
"""A cluster with more nodes is not encoded in order to learn that it is too large."""

MAX_CARRIED_STEPS: Final = 20


def state_event(row: Mapping[str, Any], facts: ClusterFacts) -> dict[str, Any]:
    """A cluster's row, with the other fields of its document in ``document``, or without them."""
    if _node_count(facts.snapshot) > MAX_CARRIED_NODES:
        return dict(row)
    document = cluster_document(facts)
    rest = {name: value for name, value in document.items() if name not in row}
    return {**row, "document": rest} if _is_small(rest) else dict(row)


def revisions_event(history: ClusterHistory, cluster: str) -> dict[str, Any]:
    """The newest revision of a cluster, as a row of their list."""
    rows = [revision_row(snapshot) for snapshot in history.revisions(cluster, 1)]
    return _with_items(cluster, rows)


def operations_event(history: ClusterHistory, cluster: str) -> dict[str, Any]:
    """The newest steps of a cluster's operations, newest first: those before may be missed."""
    return _with_items(cluster, [*map(asdict, history.operations(cluster, MAX_CARRIED_STEPS))])


def _with_items(cluster: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"cluster": cluster, "items": items} if _is_small(items) else {"cluster": cluster}


def _is_small(document: Any) -> bool:
    encoded = orjson.dumps(document, default=list, option=orjson.OPT_NON_STR_KEYS)
    return len(encoded) <= MAX_CARRIED_BYTES


def _node_count(snapshot: Snapshot) -> int:
    return sum(len(item.nodes) for item in snapshot.classes)
