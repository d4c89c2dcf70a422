"""What a level of metadata.version permits: versions of records and what records may say.

The values are those of Kafka's ``MetadataVersion`` in the table of releases.
"""

from typing import Final

from featurewatch.controller.kraft.releases import (
    Gate,
    Release,
    production_levels,
    release_of,
)

_BEFORE: Final[dict[str, Gate]] = {
    "partitionChangeRecordVersion": 0,
    "isLeaderEpochBumpRequiredOnIsrShrink": True,
}
"""What holds below the first level that changes a gate; all others are not supported there."""


class Gates:
    """The gates of one level, as the software of a release has them."""

    def __init__(self, release: Release, level: int) -> None:
        below = [one for one in production_levels() if one.level < release.minimum]
        values = dict(_BEFORE)
        for one in (*below, *release.levels):
            if one.level <= level:
                values |= one.gates

        def supports(name: str) -> bool:
            return bool(values.get(f"is{name}Supported", False))

        def version(name: str) -> int:
            return int(values[name] or 0)

        self.level = level
        self.partition_change = version("partitionChangeRecordVersion")
        self.epoch_on_shrink = bool(version("isLeaderEpochBumpRequiredOnIsrShrink"))
        self.registration_change = supports("BrokerRegistrationChangeRecord")
        self.controlled_shutdown = supports("InControlledShutdownState")
        self.migration = supports("Migration")
        self.transactions = supports("MetadataTransaction")
        self.controllers = supports("ControllerRegistration")
        self.directories = supports("DirectoryAssignment")
        self.elr = supports("Elr")
        self.cordons = supports("CordonedLogDirs")


_KNOWN: Final[dict[tuple[str, int], Gates]] = {}


def gates_of(release: str, level: int) -> Gates:
    """The gates of a level for the software of a release.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    key = (release, level)
    if key not in _KNOWN:
        _KNOWN[key] = Gates(release_of(release), level)
    return _KNOWN[key]
