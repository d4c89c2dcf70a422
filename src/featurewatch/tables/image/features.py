"""The finalized levels, and three numbers that must not be confused: level, epoch, revision."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.outputs import ChangeKind, change_kind
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.provenance import (
    NO_PROVENANCE,
    Provenance,
    provenance_from_row,
    provenance_to_row,
)


@dataclass(frozen=True, slots=True)
class FeaturesImage:
    """The finalized levels of a cluster; a feature that is absent is not finalized.

    A level of 0 is there only if a features znode of the early draft of KIP-584 finalizes it.
    ``epoch`` is the cluster's own version of the set: for a metadata log the offset of the last
    commit that changed it, as Kafka's controllers report it, and for ZooKeeper the version of the
    features znode (-1: it does not exist or is disabled). ``revision`` is featurewatch's counter of
    the commits that changed a level. Neither is the level of any feature (KIP-584).
    """

    levels: Map[FeatureName, FeatureLevel]
    epoch: int
    revision: int
    provenance: Provenance

    def with_changes(
        self, changes: Mapping[FeatureName, FeatureLevel], epoch: int, provenance: Provenance
    ) -> Self:
        """This image after a commit that sets levels (0 removes a feature).

        Returns this very object if no level changes.
        """
        if not changes:
            return self
        levels = self.levels.mutate()
        for name, level in changes.items():
            if level > 0:
                levels[name] = level
            else:
                levels.pop(name, None)
        after = levels.finish()
        return self.with_snapshot(after, epoch, provenance)

    def with_snapshot(
        self, levels: Map[FeatureName, FeatureLevel], epoch: int, provenance: Provenance
    ) -> Self:
        """This image with the whole set of levels replaced: an absent feature is not finalized.

        Returns this very object if no level changes.
        """
        if levels == self.levels:
            return self
        return type(self)(levels, epoch, self.revision + 1, provenance)

    def with_znode(
        self, levels: Map[FeatureName, FeatureLevel], epoch: int, provenance: Provenance
    ) -> Self:
        """This image with the whole set replaced by a znode's, whose version is the epoch.

        The epoch changes even if no level does; the revision does not.
        """
        after = self.with_snapshot(levels, epoch, provenance)
        return replace(after, epoch=epoch, provenance=provenance) if after is self else after

    def to_row(self) -> dict[str, Any]:
        """The fields of the cluster's row that hold this image."""
        return {
            "levels": dict(self.levels.items()),
            "epoch": self.epoch,
            "revision": self.revision,
            "provenance": provenance_to_row(self.provenance),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The image that the fields of the cluster's row hold."""
        provenance = provenance_from_row(row["provenance"])
        return cls(Map(row["levels"]), row["epoch"], row["revision"], provenance)


NO_FEATURES: Final = FeaturesImage(Map(), -1, 0, NO_PROVENANCE)


@dataclass(frozen=True, slots=True)
class LevelChange:
    """The change of one finalized level by a commit.

    A level that is not finalized is 0, and so is one that is finalized at 0: ``kind`` tells.
    """

    feature: FeatureName
    before: FeatureLevel
    after: FeatureLevel
    kind: ChangeKind


def level_changes(before: FeaturesImage, after: FeaturesImage) -> tuple[LevelChange, ...]:
    """The levels that differ between two images, sorted by feature name."""
    if before.levels is after.levels:
        return ()
    names = sorted({*before.levels, *after.levels})
    pairs = ((name, before.levels.get(name), after.levels.get(name)) for name in names)
    return tuple(_level_change(name, old, new) for name, old, new in pairs if old != new)


def _level_change(
    feature: FeatureName, before: FeatureLevel | None, after: FeatureLevel | None
) -> LevelChange:
    off = FeatureLevel(0)
    return LevelChange(feature, before or off, after or off, change_kind(before, after))
