"""The differences between releases in how their controllers change and place partitions.

They are the ``partitions`` in the files of releases (`kafka.releases`), typed.
"""

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from featurewatch.kafka.releases import from_releases, package_files

ReleaseNumber = tuple[int, int]
"""A release as (major, minor)."""

NEWEST: Final[ReleaseNumber] = (sys.maxsize, 0)
"""Has the rules of the newest file: where the release of a controller is not known."""


class CompletionRule(StrEnum):
    """What the ISR, without the removed replicas, must include for a reassignment to complete."""

    ADDING = "adding"
    """Every added replica."""
    ALL = "all"
    """Every replica that stays."""
    ADDING_UNLESS_SHRINKING = "adding-unless-shrinking"
    """Every added replica, and every one that stays if more are removed than added."""


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """How the controllers of a release change and place partitions.

    ``completion``: when a reassignment completes. ``checks_last_known``: the last known leader is
    elected only if it is usable; before, the check only logs. ``clears_late``: the last known
    leader is kept until there is another. ``cordons``: log directories can be cordoned, which
    texts about placement name.
    """

    completion: CompletionRule
    checks_last_known: bool
    clears_late: bool
    cordons: bool


@from_releases
def partition_rules(release: ReleaseNumber) -> PartitionRules:
    """The rules of a release: those of the newest file up to it, or of the oldest one.

    Learned files have none: the rules of a learned release are those of the newest before it.
    """
    found = [file for file in package_files() if "partitions" in file.content]
    at = next((file for file in reversed(found) if file.number <= release), found[0])
    values = at.content["partitions"]
    return PartitionRules(**{**values, "completion": CompletionRule(values["completion"])})
