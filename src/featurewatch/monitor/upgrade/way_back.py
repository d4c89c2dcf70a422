"""The way back after levels were finalized: lower them, and start older software. Pure.

Older software does not start with a level that it does not support, even if the level was lowered
since: a controller replays the log from its newest snapshot on
(`streams.kraft.directory.startup`). Every node writes snapshots on its own, and no request shows
them.
"""

from typing import Final, NamedTuple

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.downgrade_path import DowngradePath
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import start_refusal
from featurewatch.monitor.upgrade.plan import Levels, Options, Precondition
from featurewatch.streams.kraft.directory.startup import StartupLevels
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
)
from featurewatch.tables.image.features import FeaturesImage

_OFF: Final = FeatureLevel(0)
_INTERVAL: Final = "metadata.log.max.snapshot.interval.ms, 1 h by default"
REPLAYS: Final = (
    "run each check on the machine of its node, with its metadata.log.dir as DIRECTORY: the "
    "software does not start while the node replays a level that it does not support, so it has "
    f"to write a metadata snapshot first ({_INTERVAL})"
)
"""What a person has to know of restarts after levels changed so that software can start."""


class Software(NamedTuple):
    """What nodes ran before the target: in words, and the oldest release of it."""

    text: str
    oldest: str = "RELEASE"


def way_back(
    raised: Levels,
    levels: Levels,
    path: DowngradePath | None,
    before: Software,
    options: Options,
) -> str:
    """How the levels ``raised`` are lowered to ``levels``, and the software ``before`` comes back;
    for people, with the commands."""
    if not raised or path is None:
        return "nothing has changed"
    if not path.lossless:
        return f"{path.reason} Until here {before.text} can come back, afterwards not"
    lower = " ".join(f"--feature {name}={levels.get(name, _OFF)}" for name in raised)
    check = options.reading(
        f"featurewatch upgrade check restart --node ID --release {before.oldest} "
        "--node-directory DIRECTORY --wait"
    )
    return (
        f"{path.reason} `featurewatch features {options.change} downgrade {lower}`. Older software "
        "does not start on a log that still has the higher levels, so every node has to write a "
        f"metadata snapshot first ({_INTERVAL}): on the machine of each node, brokers before "
        f"controllers, with its metadata.log.dir, wait for `{check}`, and restart it on "
        f"{before.text}"
    )


def start_checks(
    node_id: NodeId,
    release: Release,
    features: FeaturesImage,
    startup: StartupLevels | None,
) -> tuple[Precondition, ...]:
    """Whether a node starts on a release with the levels that are finalized, and with those that it
    replays (``startup``; None: its directory was not read)."""
    return (_finalized(release, features), _snapshot(node_id, release, features, startup))


def _finalized(release: Release, features: FeaturesImage) -> Precondition:
    """Whether the release supports every level that is finalized now."""
    outside = sorted(
        (name, level)
        for name, level in features.levels.items()
        if not _is_supported(release, name, level)
    )
    if not outside:
        return Precondition("levels", Verdict.YES, f"Kafka {release.name} supports all levels")
    named = ", ".join(f"{name} {level_name(name, level)}" for name, level in outside)
    text = f"Kafka {release.name} does not start: finalized is {named}"
    is_below = any(level < release.supported.of(name).minimum for name, level in outside)
    remedy = (
        "raise the levels first, as the plan says, or choose another release"
        if is_below
        else "lower the levels first, as the plan's way back says, or choose another release"
    )
    return Precondition("levels", Verdict.NO, text, remedy)


def _snapshot(
    node_id: NodeId, release: Release, features: FeaturesImage, startup: StartupLevels | None
) -> Precondition:
    """Whether the node replays no level that the release does not support."""
    changed = features.epoch
    if startup is None:
        text = (
            f"whether node {node_id} has a metadata snapshot since the levels changed last is not "
            "known: no request shows it"
        )
        remedy = (
            "run this on its machine with --node-directory, its metadata.log.dir; or look there "
            f"for a .checkpoint file with a number above {changed}, and --accept snapshot"
        )
        return Precondition("snapshot", Verdict.UNKNOWN, text, remedy)
    if startup.end <= changed:
        text = (
            f"the directory of node {node_id} ends at offset {startup.end}, and the levels changed "
            f"at {changed}: it is a copy, or the node does not follow"
        )
        remedy = "pass the directory that the node uses, and wait until it has caught up"
        return Precondition("snapshot", Verdict.NO, text, remedy, waits=True)
    outside = [
        (offset, name, level)
        for (name, level), offset in startup.levels.items()
        if name != KRAFT_VERSION and not _is_supported(release, name, level)
    ]
    end = startup.snapshot_end
    begin = f"its snapshot of offset {end}" if end else "no snapshot"
    if not outside:
        text = (
            f"node {node_id} starts with {begin}, and Kafka {release.name} supports all levels "
            "from there on"
        )
        return Precondition("snapshot", Verdict.YES, text)
    offset, name, level = max(outside, key=lambda one: (one[0], one[1] == METADATA_VERSION, one))
    text = (
        f"node {node_id} would start with {begin} and replay {name} {level_name(name, level)} of "
        f"offset {offset}: Kafka {release.name} does not start"
    )
    remedy = f"wait until it has written a snapshot ({_INTERVAL})"
    return Precondition("snapshot", Verdict.NO, text, remedy, waits=True)


def _is_supported(release: Release, name: FeatureName, level: FeatureLevel) -> bool:
    return start_refusal(release.name, release.ranges(), {name: level}) is None
