"""The versions of requests that a level enables (KIP-778, ApiVersions). Pure.

An RPC that comes with a new type of records is held back until controllers can persist it; of some
others a level sets the newest version. The values are those of Kafka's ``MetadataVersion``.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from featurewatch.kafka.releases import from_releases, release_files, release_number
from featurewatch.kafka.releases.merge import gates, requests
from featurewatch.streams.types import SupportedRange

Versions = Mapping[str, SupportedRange]
"""The versions of requests by name, such as ``Fetch``."""

MAX_APIS: Final = 500
"""An answer with more APIs is not believed."""
_VERSION: Final = (1 << 15) - 1


class ApiRule(NamedTuple):
    """The newest versions of a request, by the level from which on they are used.

    Below the first level a request is not used at all.
    """

    newest: tuple[tuple[int, int], ...]

    def at(self, level: int) -> int | None:
        """The newest version at a level; None: the request is not used."""
        found = [version for since, version in self.newest if since <= level]
        return found[-1] if found else None


_BEFORE_FIRST: Final = {"Fetch": 12, "ListOffsets": 7}
"""The versions at level 1 (``MetadataVersion``)."""
_VERSION_GATES: Final = {"Fetch": "fetchRequestVersion", "ListOffsets": "listOffsetRequestVersion"}
_RECORD_GATES: Final = {
    "AlterUserScramCredentials": "isScramSupported",
    "CreateDelegationToken": "isDelegationTokenSupported",
    "RenewDelegationToken": "isDelegationTokenSupported",
    "ExpireDelegationToken": "isDelegationTokenSupported",
    "ControllerRegistration": "isControllerRegistrationSupported",
    "AssignReplicasToDirs": "isDirectoryAssignmentSupported",
    "UnregisterController": "isControllerUnregistrationSupported",
}
"""RPCs that came with types of records, and the method that says whether a level has these."""


@from_releases
def api_rules() -> Mapping[str, ApiRule]:
    """The rules by the name of the request; a request without a rule is used at any level."""
    steps = gates(release_files())
    rules = {
        name: ApiRule(((1, _BEFORE_FIRST[name]), *sorted(steps[gate].items())))
        for name, gate in _VERSION_GATES.items()
    }
    for name, gate in _RECORD_GATES.items():
        since = min(level for level, value in steps[gate].items() if value)
        rules[name] = ApiRule(((since, _VERSION),))
    return rules


@from_releases
def software_versions(release: str) -> Versions:
    """The versions that the brokers of a release have, whatever the level."""
    files = [file for file in release_files() if file.number <= release_number(release)]
    return {name: _range(text) for name, text in requests(files).items()}


def versions_at(software: Versions, level: int) -> dict[str, SupportedRange]:
    """The versions of a software that are offered and used at a level."""
    rules, offered = api_rules(), dict[str, SupportedRange]()
    for name, (low, high) in software.items():
        newest = rules[name].at(level) if name in rules else high
        if newest is not None and newest >= low:
            offered[name] = SupportedRange(low, min(high, newest))
    return offered


def usable(own: Versions, peer: Mapping[str, tuple[int, int]]) -> dict[str, SupportedRange]:
    """The versions that both sides have; a range of the peer that is not valid counts as none."""
    both: dict[str, SupportedRange] = {}
    for name, (low, high) in own.items():
        other = peer.get(name)
        if other is not None and 0 <= other[0] <= other[1]:
            first, last = max(low, other[0]), min(high, other[1])
            if first <= last:
                both[name] = SupportedRange(first, last)
    return both


def finalized_features(levels: Mapping[str, int], version: int) -> list[dict[str, Any]]:
    """``FinalizedFeatures`` of an ApiVersionsResponse as KIP-778 is written.

    ``MinVersionLevel`` is in version 3 alone; before version 3 there are none.
    """
    if version < 3:
        return []
    rows: list[dict[str, Any]] = []
    for name, level in sorted(levels.items()):
        row: dict[str, Any] = {"name": name, "max_version_level": level}
        rows.append(row | {"min_version_level": level} if version == 3 else row)
    return rows


def _range(text: str) -> SupportedRange:
    low, _, high = text.partition("-")
    return SupportedRange(int(low), int(high or low))
