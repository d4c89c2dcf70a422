"""Releases by what their nodes advertise, and which of them can start at given levels."""

from collections.abc import Mapping

from controller.kraft import ControllerState, releases, replay_refusal
from controller.readiness.software import release_of_capabilities
from streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel, FeatureName, NodeId, Range
from tables.nodes import intern_capabilities


def release_name_of_ranges(ranges: Mapping[FeatureName, Range]) -> str | None:
    """The release whose nodes advertise these ranges; None where the table has none."""
    release = release_of_capabilities(intern_capabilities(ranges))
    return release.name if release else None


def start_refusals(levels: Mapping[FeatureName, FeatureLevel]) -> dict[str, str | None]:
    """For each release of the table why its controllers do not start at these levels; None: do.

    The words are those with which a controller stops as it reads the log; brokers advertise the
    same ranges, and are refused for the same levels when they register.
    """
    return {
        name: start_refusal(name, release.ranges(), levels) for name, release in releases().items()
    }


def start_refusal(
    release: str, ranges: Mapping[FeatureName, Range], levels: Mapping[FeatureName, FeatureLevel]
) -> str | None:
    """With which words a controller with these ranges stops as it reads these levels; None: not.

    Raises:
        controller.kraft.UnknownReleaseError: if the release is unknown.
    """
    state = ControllerState(NodeId(0), ranges, {})
    # The log of a cluster begins with metadata.version.
    for feature, level in sorted(levels.items(), key=lambda one: (one[0] != METADATA_VERSION, one)):
        if level == 0:
            continue
        if feature == KRAFT_VERSION:
            low, high = ranges.get(feature, (0, 0))
            if not low <= level <= high:
                return f"{KRAFT_VERSION} {level} is not supported by its raft"
        elif text := replay_refusal(release, state, feature, level):
            return text
    return None
