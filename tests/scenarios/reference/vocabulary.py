"""The words of a scenario for responses and changes."""

import json
from collections.abc import Iterator, Mapping

from featurewatch.reference.zookeeper.machines.requests import (
    FeaturesResponse,
    Response,
    UpdateMetadata,
)
from tests.simulation.reference.claims import levels_in
from tests.simulation.reference.tree import Node, Tree


def response_words(response: Response) -> str:
    """A client's response."""
    if isinstance(response, FeaturesResponse):
        spans = sorted(response.supported.items())
        ranges = "".join(f" {name}:{low}-{high}" for name, (low, high) in spans)
        return f"finalized @{response.epoch}{_levels(response.finalized)} supported{ranges}"
    if response.unknown:
        return "unknown"
    if response.finalized is not None:
        return f"ok with {whole_set(response.finalized)}"
    if response.results:
        words = (f"{r.feature}:{r.error.name if r.error else 'ok'}" for r in response.results)
        return " ".join(words)
    return response.error.name if response.error else "ok"


def whole_set(message: UpdateMetadata) -> str:
    """The levels and their epoch."""
    return f"@{message.epoch}{_levels(message.features)}"


def _levels(levels: Mapping[str, int]) -> str:
    return "".join(f" {name}={level}" for name, level in sorted(levels.items()))


def written(before: Tree, after: Tree) -> Iterator[str]:
    """The changes of brokers and levels by a transaction."""
    for path in sorted({*before, *after}):
        old: Node | None = before.get(path)
        new: Node | None = after.get(path)
        if old == new:
            continue
        if path.startswith("/brokers/ids/"):
            broker = f"b{path.rpartition('/')[2]}"
            yield from [f"-{broker}"] * (old is not None)
            yield from [f"+{broker}"] * (new is not None)
        elif path.startswith("/feature"):
            yield _features(path, new)


def _features(path: str, new: Node | None) -> str:
    if new is None:
        return f"no {path}"
    try:
        status = json.loads(new.data).get("status", 1)
        if status != 1:
            return f"off {path}" if status == 0 else f"junk {path}"
        levels = levels_in(new.data)
    except (ValueError, KeyError):
        return f"junk {path}"
    return f"@{new.stat.version}{_levels(levels)}"
