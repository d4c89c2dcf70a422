"""Ids for people: runs are drawn together."""

from collections.abc import Iterable
from typing import Final

MAX_RUNS: Final = 8


def format_ids(nodes: Iterable[int]) -> str:
    """Returns each id once, runs drawn together, ``1-3, 7``; after `MAX_RUNS` only a count."""
    ordered = sorted(set(nodes))
    runs: list[list[int]] = []
    for node in ordered:
        if runs and node == runs[-1][1] + 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    shown = runs[:MAX_RUNS]
    text = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in shown)
    hidden_count = len(ordered) - sum(high - low + 1 for low, high in shown)
    return f"{text} and {hidden_count:,} more" if hidden_count else text
