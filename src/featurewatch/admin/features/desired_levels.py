"""What must be requested so that a cluster has its desired levels. Pure.

A level that is there already needs no request, so a second run requests nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.streams.types import KRAFT_VERSION, FeatureLevel, FeatureName, UpgradeType


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A level that is not as desired; 0 stands for a feature that is not finalized."""

    feature: FeatureName
    before: FeatureLevel
    after: FeatureLevel

    @property
    def lowers(self) -> bool:
        """Whether it is a downgrade."""
        return self.after < self.before


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """The changes of one cluster, and the desired levels that it has; both by name.

    ``unsupported`` are features that the node does not have and that should be finalized.
    """

    changes: tuple[LevelChange, ...]
    kept: tuple[tuple[FeatureName, FeatureLevel], ...]
    unsupported: tuple[FeatureName, ...]

    @property
    def lowered(self) -> tuple[LevelChange, ...]:
        """The changes that are downgrades."""
        return tuple(change for change in self.changes if change.lowers)

    def requests(self, *, unsafe: bool = False) -> tuple[tuple[FeatureUpdate, ...], ...]:
        """The updates of each request, in order.

        kraft.version has its own request, the last: from 4.1 on, one that is refused for another
        feature may have raised kraft.version all the same, and there is no way back.
        """
        down = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
        updates = [
            FeatureUpdate(change.feature, change.after, down if change.lowers else _UP)
            for change in self.changes
        ]
        parts = (
            tuple(update for update in updates if update.feature != KRAFT_VERSION),
            tuple(update for update in updates if update.feature == KRAFT_VERSION),
        )
        return tuple(part for part in parts if part)


_UP = UpgradeType.UPGRADE


def plan_levels(metadata: FeatureMetadata, desired: Mapping[str, int]) -> LevelPlan:
    """Compares the levels of a cluster, as one of its nodes has them, with the desired ones.

    Features that are not desired at any level stay as they are.
    """
    changes, kept, unsupported = [], [], []
    for name, number in sorted(desired.items()):
        feature, level = FeatureName(name), FeatureLevel(number)
        before = metadata.finalized.get(feature, FeatureLevel(0))
        if level == before:
            kept.append((feature, level))
        elif level and feature not in metadata.supported:
            unsupported.append(feature)
        else:
            changes.append(LevelChange(feature, before, level))
    return LevelPlan(tuple(changes), tuple(kept), tuple(unsupported))
