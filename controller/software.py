"""What software a node runs, as far as its supported ranges tell it.

Registrations name no release. Each release of Kafka has had its own range of metadata.version, and
so a node's range names the release; patch releases have the same and cannot be told apart.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from controller.readiness.software import release_of_capabilities
from streams.types import METADATA_VERSION, FeatureName, Range
from tables.nodes import Capabilities


class Direction(StrEnum):
    """Which way software or levels went."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"

    @property
    def sign(self) -> int:
        """1 up, -1 down."""
        return 1 if self is Direction.UPGRADE else -1


_NOT_AT_ALL: Final[Range] = (0, 0)


def release_name(known: Capabilities) -> str | None:
    """The release that a node runs, ``4.3``; None where its ranges are no release's."""
    found = release_of_capabilities(known)
    return None if found is None else found.name


def software_name(known: Capabilities) -> str:
    """The release, or what is known in its place: ``metadata.version 7-99``, ``unknown``."""
    name = release_name(known)
    if name is not None:
        return name
    bounds = known.ranges.get(METADATA_VERSION)
    return "unknown" if bounds is None else f"{METADATA_VERSION} {bounds[0]}-{bounds[1]}"


def identifies_software(known: Capabilities) -> bool:
    """Whether anything can be concluded: not from an unreadable node, nor from a broken range."""
    return not known.broken and (bool(known.ranges) or known.complete)


@lru_cache(maxsize=65536)
def direction_of(before: Capabilities, after: Capabilities) -> Direction | None:
    """Whether a node that supported one and supports the other went up or down; None: neither.

    metadata.version decides where it differs, then all features together, then how far back they
    reach: newer releases give up old levels. Where an answer may have left features out, those that
    only one of the two names say nothing.
    """
    one, other = before.ranges, after.ranges
    shared = before.complete and after.complete
    names = {*one, *other} if shared else {*one} & {*other}
    for features in ({METADATA_VERSION} & names, names):
        for end in (1, 0):
            signs = {_sign(_end(other, name, end) - _end(one, name, end)) for name in features}
            if {1, -1} <= signs:
                return None
            if signs - {0}:
                return Direction.UPGRADE if 1 in signs else Direction.DOWNGRADE
    return None


def _end(ranges: Mapping[FeatureName, Range], name: FeatureName, end: int) -> int:
    return ranges.get(name, _NOT_AT_ALL)[end]


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
