"""The names of metadata.version's levels.

They come from the table of levels (`controller.kraft.releases`). A level newer than the table is
printed as such and is not an error.
"""

from featurewatch.controller.kraft.releases import CONTROLLER_REGISTRATION, production_levels
from featurewatch.kafka.releases import from_releases
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName

__all__ = ["CONTROLLER_REGISTRATION", "finalized_name", "level_name", "metadata_version_names"]


@from_releases
def metadata_version_names() -> tuple[str, ...]:
    """The name of level n is at index n - 1; the last is the newest production level."""
    return tuple(level.name for level in production_levels())


def level_name(feature: FeatureName, level: FeatureLevel) -> str:
    """Formats a level for people: ``21 (3.9-IV0)``, ``2``, or ``off`` for level 0."""
    if level <= 0:
        return "off"
    if feature != METADATA_VERSION:
        return str(level)
    names = metadata_version_names()
    if level > len(names):
        return f"{level} (newer than {names[-1]})"
    return f"{level} ({names[level - 1]})"


def finalized_name(feature: str, level: int | None) -> str:
    """Formats a finalized level for people: as `level_name`, or ``off`` for None.

    Level 0 is ``0``: it is finalized, as only the early draft of KIP-584 allows.
    """
    return "0" if level == 0 else level_name(FeatureName(feature), FeatureLevel(level or 0))
