"""A node that stands in the way of a level, told as text and as data."""

from typing import Any

from controller.compatibility import Blocker


def described(blocker: Blocker) -> dict[str, Any]:
    """Its fields, and ``text`` for people."""
    name = f"{blocker.node.role} {blocker.node.node_id}"
    bounds = "nothing of it" if blocker.range is None else f"{blocker.range[0]}-{blocker.range[1]}"
    fenced = " (fenced)" if blocker.fenced else ""
    text = f"{name}{fenced} supports {bounds}" if blocker.registered else f"{name} never registered"
    return {
        "role": str(blocker.node.role),
        "node": blocker.node.node_id,
        "range": blocker.range,
        "registered": blocker.registered,
        "fenced": blocker.fenced,
        "text": text,
    }
