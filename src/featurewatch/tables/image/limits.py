"""The limits of an image of one cluster.

Whoever answers as a cluster decides what its log and its nodes contain. Kafka's own clusters stay
far below these numbers. What exceeds them is unreadable: it is counted, and an alert says so.
"""

from collections.abc import Iterable, Sized
from typing import Final

from featurewatch.streams.types import NodeKey

MAX_NODES: Final = 20_000
"""Registered nodes."""

MAX_CLASSES: Final = 100
"""Different sets of supported ranges, by role: what a change of a level costs grows with them."""

MAX_FEATURES: Final = 100
"""Finalized features, and the features that one node supports. Kafka 4.4 has fewer than ten."""

MAX_NAME_CHARS: Final = 255
"""Characters of a feature's name and of an incarnation id."""

MAX_VOTERS: Final = 1000
"""Voters of the controller quorum, and its observers."""

MAX_ENDPOINTS: Final = 16
"""Listeners of one voter. A real one has one or two."""

MAX_ISSUES: Final = 1000
"""Znodes that could not be read, or of which versions were missed."""


class BeyondLimitError(ValueError):
    """A cluster has more of something than an image holds."""


def check_number(things: Sized, limit: int, name: str) -> None:
    """Raises `BeyondLimitError` if there are more than ``limit``; ``name`` is their plural."""
    if len(things) > limit:
        raise BeyondLimitError(f"{len(things)} {name} are more than the {limit} that are followed")


def check_features(names: Iterable[str], count: int) -> None:
    """Raises `BeyondLimitError` if there are too many features, or one has too long a name."""
    if count > MAX_FEATURES:
        raise BeyondLimitError(
            f"{count} features are more than the {MAX_FEATURES} that are followed"
        )
    longest = max(map(len, names), default=0)
    if longest > MAX_NAME_CHARS:
        raise BeyondLimitError(
            f"a feature's name of {longest} characters is longer than {MAX_NAME_CHARS}"
        )


def check_node(key: NodeKey, nodes: int, classes: int) -> None:
    """Raises `BeyondLimitError` if a node is one too many, or its ranges are.

    ``nodes`` and ``classes`` are the numbers so far, or 0 where the node adds none.
    """
    if nodes >= MAX_NODES:
        raise BeyondLimitError(f"{key} is beyond the {MAX_NODES} nodes that are followed")
    if classes >= MAX_CLASSES:
        raise BeyondLimitError(
            f"the ranges of {key} are beyond the {MAX_CLASSES} different ones that are followed"
        )
