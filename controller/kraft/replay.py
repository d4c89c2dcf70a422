"""What becomes of a node that reads a level it does not support: ``FeatureControlManager.replay``.

This is the point of no return: a controller of an older release does not start again after a level
that its software does not know.
"""

from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.controller.kraft.support import range_text
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName


def replay_refusal(
    release: str, state: ControllerState, feature: FeatureName, level: FeatureLevel
) -> str | None:
    """The text of the error with which a controller stops at a FeatureLevelRecord; None if not.

    Raises:
        controller.kraft.table.UnknownReleaseError: if the release is unknown.
    """
    dialect = rules_of(release)
    known = dialect.release
    supported = state.local.of(feature)
    if not supported.includes(level):
        record = f"FeatureLevelRecord(name='{feature}', featureLevel={level})"
        return (
            f"Tried to apply FeatureLevelRecord {record}, but this controller only supports "
            f"versions {range_text(supported)}"
        )
    if feature == METADATA_VERSION and known.metadata_level(level) is None:
        text = f"No MetadataVersion with feature level {level}"
        if not dialect.all_or_nothing:
            return text
        return f"{text}. Valid feature levels are from {known.minimum} to {known.levels[-1].level}."
    return None
