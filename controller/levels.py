"""The names of metadata.version's levels.

Source: ``org.apache.kafka.server.common.MetadataVersion`` of Kafka 4.3. A level newer than this
table is shown as such and is no error.
"""

from typing import Final

from streams.types import METADATA_VERSION, FeatureLevel, FeatureName

METADATA_VERSION_NAMES: Final = (
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0"),
    *("3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1"),
    *("3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2"),
    *("4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
)
"""The name of level n stands at n - 1; the last is the newest production level."""

CONTROLLER_REGISTRATION: Final = FeatureLevel(15)
"""From this metadata.version (3.7-IV0) on controllers register, and are asked (KIP-919)."""


def level_name(feature: FeatureName, level: FeatureLevel) -> str:
    """A level for people: ``21 (3.9-IV0)``, ``2``, or ``off`` for level 0."""
    if level <= 0:
        return "off"
    if feature != METADATA_VERSION:
        return str(level)
    if level > len(METADATA_VERSION_NAMES):
        return f"{level} (newer than {METADATA_VERSION_NAMES[-1]})"
    return f"{level} ({METADATA_VERSION_NAMES[level - 1]})"
