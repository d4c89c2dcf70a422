"""The error of a controller that replays an unsupported level: ``FeatureControlManager.replay``.

A controller of an older release cannot start once the log has a level that it does not support.
"""

from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.controller.kraft.support import range_text
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName


def replay_refusal(
    release: str, state: ControllerState, feature: FeatureName, level: FeatureLevel
) -> str | None:
    """The error with which a controller stops at a FeatureLevelRecord; None if it replays it.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    rules = rules_of(release)
    software = rules.release
    supported = state.local.of(feature)
    if not supported.includes(level):
        record = f"FeatureLevelRecord(name='{feature}', featureLevel={level})"
        return (
            f"Tried to apply FeatureLevelRecord {record}, but this controller only supports "
            f"versions {range_text(supported)}"
        )
    if feature == METADATA_VERSION and software.metadata_level(level) is None:
        text = f"No MetadataVersion with feature level {level}"
        if not rules.all_or_nothing:
            return text
        levels = f"{software.minimum} to {software.levels[-1].level}"
        return f"{text}. Valid feature levels are from {levels}."
    return None
