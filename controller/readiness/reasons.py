"""Why the answer is no, or is not known, apart from any node that stands in the way."""

from collections.abc import Iterable
from typing import Final

from featurewatch.controller.compatibility import Verdict, incompatibilities
from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.controller.kraft.voters import FIRST_REPORTING_RELEASE, voters_not_reporting
from featurewatch.controller.migration import in_progress
from featurewatch.controller.readiness.active_controller import active_controller
from featurewatch.controller.readiness.blockers import ReadinessContext
from featurewatch.controller.readiness.divergence import applied_by_all
from featurewatch.controller.readiness.upgrade_state import is_kraft, newest_release
from featurewatch.controller.software import startable_releases
from featurewatch.streams.events import SourceState
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    NodeId,
    NodeKey,
    Role,
)
from featurewatch.tables.image.cluster import Authority, ClusterImage

Reason = tuple[Verdict, str]
"""A sentence that speaks for no or unknown; with yes it is a remark."""

_NAMED: Final = 10

STALE_AFTER_MS: Final = 60_000
"""Sources are heard of every few seconds."""


def reasons_of(scene: ReadinessContext, target: Release | None) -> list[Reason]:
    """The reasons in a cluster, for the levels of the scene and the release that is asked for."""
    image = scene.image
    found: list[Reason] = [(Verdict.UNKNOWN, text) for text in _doubts(image, scene.now_ms)]
    if in_progress(image):
        text = "The cluster moves from ZooKeeper to KRaft: finish that first."
        found.append((Verdict.NO, text))
    match image.authority:
        case Authority.ZOOKEEPER:
            found += _in_zookeeper_mode(target)
        case Authority.ANSWERS if not is_kraft(image):
            text = (
                "No node offers metadata.version, as in ZooKeeper mode: what is registered and "
                "finalized stands in ZooKeeper then: give --zookeeper."
            )
            found.append((Verdict.UNKNOWN, text))
        case Authority.ANSWERS:
            text = (
                "Which nodes are registered stands in the metadata log alone, fenced ones and "
                "those that are gone too: give --bootstrap-controller."
            )
            found.append((Verdict.UNKNOWN, text))
        case Authority.LOG:
            found += _of_voters(scene)
            found += _of_software(scene, target) if target is not None else []
    return found


def _doubts(image: ClusterImage, now_ms: int) -> list[str]:
    """Why what is known may not be all, or not how it is now."""
    found = []
    if not image.ready:
        found.append("Not all of the cluster has been read yet: its source has not caught up.")
    status = image.sources.get(str(image.authority))
    if status is not None and status.state in (SourceState.STALLED, SourceState.SILENT):
        found.append(f"What is known may be old, the source is {status.state}: {status.detail}")
    elif status is not None and now_ms - status.seen_ms > STALE_AFTER_MS:
        age_s = (now_ms - status.seen_ms) // 1000
        found.append(f"What is known may be old, last heard of {age_s:,} s ago: does a worker run?")
    if status is not None and image.authority is Authority.ANSWERS and status.detail:
        found.append(f"By the nodes' own word: {status.detail}.")
    asked = image.sources.get(Authority.ANSWERS)
    if asked not in (None, status) and asked.state is SourceState.STALLED:
        found.append(f"The nodes could not be asked: {asked.detail}.")
    if image.gap:
        found.append(f"A part of the metadata log was missed: {image.gap}.")
    for kind, one in sorted(image.unreadable.items()):
        found.append(f"{kind} could not be read, first at {one.place}: {one.reason}.")
    return found


def _in_zookeeper_mode(target: Release | None) -> list[Reason]:
    if target is None:
        return []
    if target.minimum > 1:
        text = (
            f"Kafka {target.name} has no ZooKeeper mode: migrate the cluster to KRaft first, on "
            "3.9. metadata.version is set up there, and has no meaning here."
        )
        return [(Verdict.NO, text)]
    text = (
        "In ZooKeeper mode metadata.version is ignored and released brokers have no features: "
        "there are no levels to finalize. inter.broker.protocol.version decides, node by node."
    )
    return [(Verdict.YES, text)]


def _of_voters(scene: ReadinessContext) -> list[Reason]:
    """Whose word the leader lacks before it raises kraft.version; it refuses without naming one."""
    image = scene.image
    none = FeatureLevel(0)
    level, now = (
        levels.get(KRAFT_VERSION, none) for levels in (scene.target, image.features.levels)
    )
    voters = image.quorum.voters
    if level <= now or not rules_of(active_controller(image).release.name).raft_decides:
        return []
    registered = {one: image.nodes.get(NodeKey(Role.CONTROLLER, one)) for one in voters}
    known = {one: node.capabilities for one, node in registered.items() if node}
    supported = {one: capabilities.ranges for one, capabilities in known.items()}
    if untold := voters_not_reporting(voters, supported, level):
        old = [one for one in untold if not incompatibilities(known[one], scene.target)]
        text = (
            f"The leader raises {KRAFT_VERSION} when every voter has told it that it supports "
            f"that, which Kafka does from {FIRST_REPORTING_RELEASE} on: "
            f"start {_controllers(old)} on that."
        )
        return [(Verdict.NO, text)] if old else []  # the others stand in the way all the same
    answers = {one: image.answers.get(NodeKey(Role.CONTROLLER, one)) for one in voters}
    unheard = [one for one, answer in answers.items() if answer is None or answer.silent]
    if not unheard or len(voters) == 1:
        return []
    if Authority.ANSWERS in image.caught_up:
        text = (
            f"Every voter tells each new leader whether it supports {KRAFT_VERSION} {level}, and "
            f"{_controllers(unheard)} does not answer: if it has not told, the leader refuses."
        )
        return [(Verdict.UNKNOWN, text)]
    text = (
        f"The leader raises {KRAFT_VERSION} when every voter has told it that it supports that; "
        "whether one is away the log does not tell: give --bootstrap-server."
    )
    return [(Verdict.YES, text)]


def _controllers(ids: Iterable[NodeId]) -> str:
    return ", ".join(f"controller {one}" for one in ids)


def _of_software(scene: ReadinessContext, target: Release) -> list[Reason]:
    """What stands between the levels and the target's software, whatever nodes support.

    Where the levels are those of an older release already, it is asked whether it may be started.
    """
    image = scene.image
    level = image.features.levels.get(METADATA_VERSION, target.minimum)
    if level < target.minimum:
        text = (
            f"Nodes of Kafka {target.name} do not start below metadata.version {target.minimum}: "
            "raise it on the software that runs now, first."
        )
        return [(Verdict.NO, text)]
    newest = newest_release(image)
    running = release_of(newest).newest(METADATA_VERSION) if newest else 0
    older = target.newest(METADATA_VERSION) < running
    raised = any(level > image.features.levels.get(name, 0) for name, level in scene.target.items())
    if not older or raised or target.name not in startable_releases(image.features.levels):
        return []
    verdict, doubtful = applied_by_all(image, scene.now_ms)
    if verdict is Verdict.YES:
        return []
    shown = ", ".join(f"{key.role} {key.node_id}" for key in doubtful[:_NAMED])
    more = f" and {len(doubtful) - _NAMED} more" if len(doubtful) > _NAMED else ""
    text = (
        "Older software may be started only when every node has taken in the newest levels, and "
        f"that is {'not so' if verdict is Verdict.NO else 'not known'} of {shown}{more}: give "
        "--bootstrap-server, so that they are asked."
    )
    return [(verdict, text)]
