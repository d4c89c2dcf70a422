"""The fold, ``image', delta = fold(image, event)``: every change of an image goes through it."""

from dataclasses import replace
from typing import assert_never

from immutables import Map

from featurewatch.streams.events import (
    Disagreement,
    Event,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    SnapshotChunk,
    SourceState,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.types import NodeKey, Role
from featurewatch.tables.fold.api_versions import (
    fold_disagreement,
    fold_node_answer,
    fold_node_silent,
)
from featurewatch.tables.fold.log import end_resync, fold_chunk, fold_commit, fold_gap
from featurewatch.tables.fold.znodes import fold_znode, fold_znode_snapshot
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    Authority,
    ClusterDelta,
    ClusterImage,
)
from featurewatch.tables.image.log import LOST, count_unreadable
from featurewatch.tables.image.nodes import NO_NODES, Node
from featurewatch.tables.image.zookeeper import NO_ZOOKEEPER


def fold(image: ClusterImage, event: Event) -> tuple[ClusterImage, ClusterDelta]:
    """Applies one event: returns the next image, and what the event changed. Pure.

    An event that was applied before changes nothing. The cost follows what the event changes, not
    the size of the cluster; only the end of a resync, and the event with which another source
    becomes the authority, cost as much as the cluster holds.
    """
    after, delta = _fold(image, event)
    if image.authority is Authority.ANSWERS and after.authority is not Authority.ANSWERS:
        # The responses of the nodes stay in the image, beside the registrations.
        after = replace(after, answers=image.nodes)
        delta = replace(delta, answers=image.nodes.nodes)
    if after.authority is not Authority.LOG:
        return after, delta
    if image.authority is Authority.ZOOKEEPER:
        delta = replace(delta, znodes={**after.znodes.nodes, **delta.znodes})
    return _with_unregistered(after, delta), delta


def _fold(image: ClusterImage, event: Event) -> tuple[ClusterImage, ClusterDelta]:
    match event:
        case LogCommit():
            return fold_commit(image, event)
        case SourceStatus():
            return _fold_status(image, event)
        case NodeAnswer():
            return fold_node_answer(image, event)
        case NodeSilent():
            return fold_node_silent(image, event)
        case SnapshotChunk():
            return fold_chunk(image, event)
        case LogGap():
            return fold_gap(image, event)
        case Disagreement():
            return fold_disagreement(image, event)
        case ZnodeChange():
            return fold_znode(image, event)
        case ZnodeSnapshot():
            return fold_znode_snapshot(image, event)
        case _:
            assert_never(event)


def _with_unregistered(image: ClusterImage, delta: ClusterDelta) -> ClusterImage:
    """The image of a log with ``unregistered`` updated for the brokers of the delta."""
    if not (delta.nodes or delta.znodes) or not (image.znodes.nodes or image.unregistered):
        return image
    unregistered = image.unregistered.mutate()
    for key in {*delta.nodes, *delta.znodes}:
        if key.role is Role.BROKER and image.is_unregistered(key):
            unregistered[key.node_id] = None
        elif key.role is Role.BROKER:
            unregistered.pop(key.node_id, None)
    return replace(image, unregistered=unregistered.finish())


def fold_unreadable(image: ClusterImage, place: str, reason: str) -> ClusterImage:
    """The image after a message that could not be decoded; ``place`` and ``reason`` are text."""
    unreadable = count_unreadable(image.unreadable, "MESSAGE", place, reason)
    return replace(image, unreadable=unreadable)


def fold_lost(image: ClusterImage, place: str, reason: str) -> ClusterImage:
    """The image after messages that the bus lost; ``place`` and ``reason`` are text."""
    return replace(image, unreadable=count_unreadable(image.unreadable, LOST, place, reason))


def _fold_status(image: ClusterImage, event: SourceStatus) -> tuple[ClusterImage, ClusterDelta]:
    """Applies a source's status, which may end a resync from the start of the log.

    The state *following* alone does not end it: a source that was following when the log went
    backwards may report that state for a moment longer. The status must be at the high watermark.
    """
    if event.state is SourceState.RETIRED:
        return _without_source(image, event.source)
    image = image.with_source(event)
    is_log_resync = image.resync is not None and image.resync.reads_log
    is_at_end = event.offset >= 0 and event.high_watermark <= event.offset + 1
    is_following = event.state is SourceState.FOLLOWING and is_at_end
    if event.source == Authority.LOG and is_following and is_log_resync:
        return end_resync(image)
    return image, NOTHING


def _without_source(image: ClusterImage, source: str) -> tuple[ClusterImage, ClusterDelta]:
    """The image without a retired source, and without what only that source published.

    What the source of authority published stays, but the image is not ready any more.
    """
    if source not in image.sources:
        return image, SKIPPED
    after = replace(
        image, sources=image.sources.delete(source), caught_up=image.caught_up - {source}
    )
    if source == image.authority:
        return after, NOTHING
    if source == Authority.ZOOKEEPER:
        removed: dict[NodeKey, Node | None] = dict.fromkeys(image.znodes.nodes)
        after = replace(
            after,
            znodes=NO_NODES,
            unregistered=Map(),
            zookeeper=NO_ZOOKEEPER,
            reading=None,
        )
        return after, ClusterDelta(znodes=removed)
    if source == Authority.ANSWERS:
        removed = dict.fromkeys(image.answers.nodes)
        return replace(after, answers=NO_NODES, disagreements=Map()), ClusterDelta(answers=removed)
    return after, NOTHING
