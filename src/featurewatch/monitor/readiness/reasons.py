"""Reasons for a verdict of no or unknown that no single node causes."""

from collections.abc import Iterable
from typing import Final

from featurewatch.controller.compatibility import Verdict, target_incompatibilities
from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.kraft.voters import FIRST_REPORTING_RELEASE, voters_not_reporting
from featurewatch.controller.software import LEARN, startable_releases
from featurewatch.monitor.migration import in_progress
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.readiness.blockers import ReadinessContext
from featurewatch.monitor.readiness.divergence import applied_by_all
from featurewatch.monitor.readiness.upgrade_state import is_kraft
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
from featurewatch.tables.image.nodes import Capabilities
from featurewatch.tables.image.sources import is_unreadable, rivaling

Reason = tuple[Verdict, str]
"""A verdict and the sentence that explains it; with yes the sentence is a note."""

_NAMED: Final = 10

STALE_AFTER_MS: Final = 60_000
"""A source is stale when its last report, due every few seconds, is older than this."""


def reasons_of(
    context: ReadinessContext, target: Release | None, newest: Capabilities | None
) -> list[Reason]:
    """The reasons for the target levels of ``context``, and for the target release, if any.

    ``newest`` is the newest software that runs.
    """
    image = context.image
    reasons: list[Reason] = [(Verdict.UNKNOWN, text) for text in _doubts(image, context.now_ms)]
    if in_progress(image):
        text = "The cluster is migrating from ZooKeeper to KRaft. Finish the migration first."
        reasons.append((Verdict.NO, text))
    match image.authority:
        case Authority.ZOOKEEPER:
            reasons += _zookeeper_reasons(target)
        case Authority.ANSWERS if not is_kraft(image):
            text = (
                "No node offers metadata.version, as in ZooKeeper mode. Registrations and "
                "finalized levels are then in ZooKeeper; add --zookeeper to read them."
            )
            reasons.append((Verdict.UNKNOWN, text))
        case Authority.ANSWERS:
            text = (
                "Only the metadata log shows which nodes are registered, including fenced nodes "
                "and nodes that no longer exist; add --bootstrap-controller to read it."
            )
            reasons.append((Verdict.UNKNOWN, text))
        case Authority.LOG if not image.incomplete:
            reasons += _voter_reasons(context)
            reasons += _software_reasons(context, target, newest) if target is not None else []
    return reasons


def _doubts(image: ClusterImage, now_ms: int) -> list[str]:
    """Why the image may be incomplete or stale."""
    doubts = []
    if not image.ready:
        doubts.append("The cluster has not been read completely: its source has not caught up.")
    status = image.sources.statuses.get(str(image.authority))
    if status is not None and status.state in (SourceState.STALLED, SourceState.SILENT):
        doubts.append(f"The data may be stale, the source is {status.state}: {status.detail}")
    elif status is not None and now_ms - status.seen_ms > STALE_AFTER_MS:
        age_s = (now_ms - status.seen_ms) // 1000
        doubts.append(
            f"The data may be stale: the source last reported {age_s:,} s ago. Check that a worker "
            "is running."
        )
    if status is not None and image.authority is Authority.ANSWERS and status.detail:
        doubts.append(f"As the nodes themselves report: {status.detail}.")
    answers_status = image.sources.statuses.get(Authority.ANSWERS)
    if answers_status not in (None, status) and answers_status.state is SourceState.STALLED:
        doubts.append(f"The nodes could not be queried: {answers_status.detail}.")
    if image.log.gap:
        doubts.append(f"A part of the metadata log was missed: {image.log.gap}.")
    for kind, records in sorted(image.sources.unreadable.items()):
        if records.hides_state:
            doubts.append(
                f"No known release has the record {kind}, first at {records.location}: it may be "
                "about registrations, levels or voters, so these are not known to be complete "
                f"until the next snapshot; {LEARN}."
            )
        elif source := rivaling(kind, records):
            doubts.append(
                f"Two processes publish the source {source} of this cluster, from "
                f"{records.reason}, so that the state may be that of two clusters."
            )
        elif is_unreadable(kind):
            doubts.append(
                f"{kind} could not be read, first at {records.location}: {records.reason}."
            )
    return doubts


def _zookeeper_reasons(target: Release | None) -> list[Reason]:
    if target is None:
        return []
    if target.minimum > 1:
        text = (
            f"Kafka {target.name} has no ZooKeeper mode. Migrate the cluster to KRaft on 3.9 "
            "first; metadata.version is set up there and has no meaning in ZooKeeper mode."
        )
        return [(Verdict.NO, text)]
    text = (
        "In ZooKeeper mode metadata.version is ignored and released brokers have no features: "
        "there are no levels to finalize. inter.broker.protocol.version decides, node by node."
    )
    return [(Verdict.YES, text)]


def _voter_reasons(context: ReadinessContext) -> list[Reason]:
    """Why the leader may refuse to raise kraft.version; its refusal names no voter."""
    image = context.image
    off = FeatureLevel(0)
    level, current = (
        levels.get(KRAFT_VERSION, off) for levels in (context.target, image.features.levels)
    )
    if level <= current:
        return []
    voters = image.log.quorum.voters
    release = active_controller(image).release
    if release is None or not rules_of(release.name).raft_decides:
        return []
    registered = {voter: image.nodes.get(NodeKey(Role.CONTROLLER, voter)) for voter in voters}
    capabilities_by_voter = {voter: node.capabilities for voter, node in registered.items() if node}
    supported = {
        voter: capabilities.ranges for voter, capabilities in capabilities_by_voter.items()
    }
    if not_reporting := voters_not_reporting(voters, supported, level):
        outdated = [
            voter
            for voter in not_reporting
            if not target_incompatibilities(capabilities_by_voter[voter], context.target)
        ]
        text = (
            f"Raising {KRAFT_VERSION} needs every voter to report support for it, which Kafka "
            f"does from {FIRST_REPORTING_RELEASE} on: start {_controllers(outdated)} on that "
            "release or a newer one."
        )
        return [(Verdict.NO, text)] if outdated else []  # the others are blockers
    silent = [voter for voter in voters if not image.responds(NodeKey(Role.CONTROLLER, voter))]
    if not silent or len(voters) == 1:
        return []
    if Authority.ANSWERS in image.sources.caught_up:
        text = (
            f"Every voter reports to each new leader whether it supports {KRAFT_VERSION} {level}, "
            f"but {_controllers(silent)} does not answer. If it has not reported this yet, the "
            "leader refuses."
        )
        return [(Verdict.UNKNOWN, text)]
    text = (
        f"Raising {KRAFT_VERSION} needs every voter to report support for it. The metadata log "
        "does not show whether a voter is offline; add --bootstrap-server to check."
    )
    return [(Verdict.YES, text)]


def _controllers(ids: Iterable[NodeId]) -> str:
    return ", ".join(f"controller {node_id}" for node_id in ids)


def _software_reasons(
    context: ReadinessContext, target: Release, newest: Capabilities | None
) -> list[Reason]:
    """Why the target's software may not start, whatever levels the nodes support.

    If the finalized levels already suit an older release, every node must have applied them first.
    """
    image = context.image
    level = image.features.levels.get(METADATA_VERSION, target.minimum)
    if level < target.minimum:
        text = (
            f"Kafka {target.name} does not start below metadata.version {target.minimum}. Raise "
            "it first, on the software that is running now."
        )
        return [(Verdict.NO, text)]
    running = newest.ranges.of(METADATA_VERSION).maximum if newest else 0
    is_older = target.newest(METADATA_VERSION) < running
    is_raised = any(
        level > image.features.levels.get(name, 0) for name, level in context.target.items()
    )
    if not is_older or is_raised or target.name not in startable_releases(image.features.levels):
        return []
    verdict, doubtful = applied_by_all(image, context.now_ms)
    if verdict is Verdict.YES:
        return []
    shown = ", ".join(f"{key.role} {key.node_id}" for key in doubtful[:_NAMED])
    remainder = f" and {len(doubtful) - _NAMED} more" if len(doubtful) > _NAMED else ""
    text = (
        "Older software may be started only after every node has applied the newest levels, which "
        f"is {'not yet true' if verdict is Verdict.NO else 'not known'} of {shown}{remainder}. Add "
        "--bootstrap-server to query them."
    )
    return [(verdict, text)]
