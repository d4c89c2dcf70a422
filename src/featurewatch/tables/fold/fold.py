"""The fold, ``image', delta = fold(image, event)``: every change of an image goes through it."""

from dataclasses import replace
from typing import assert_never

from featurewatch.streams.events import (
    Acknowledgement,
    Disagreement,
    Event,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    SnapshotChunk,
    SourceResync,
    SourceState,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.topics import METADATA_LOG, ZOOKEEPER
from featurewatch.tables.fold.acknowledgements import fold_acknowledgement
from featurewatch.tables.fold.api_versions import (
    fold_answer,
    fold_answers_resync,
)
from featurewatch.tables.fold.log import (
    end_resync,
    fold_chunk,
    fold_commit,
    fold_gap,
    fold_log_resync,
    follow_log,
)
from featurewatch.tables.fold.znodes import fold_znode, fold_znode_snapshot
from featurewatch.tables.image.answers import NO_ANSWERS, AnswersDelta
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    Authority,
    ClusterDelta,
    ClusterImage,
)
from featurewatch.tables.image.sources import AHEAD, count_unreadable, lost_kind, rivals_kind
from featurewatch.tables.image.zookeeper import NO_ZOOKEEPER, ZookeeperDelta


def fold(image: ClusterImage, event: Event) -> tuple[ClusterImage, ClusterDelta]:
    """Applies one event: returns the next image, and what the event changed. Pure.

    An event that was applied before changes nothing. The cost follows what the event changes, not
    the size of the cluster; only the end of a resync, and the event with which another source
    becomes the authority, cost as much as the cluster holds.
    """
    after, delta = _fold(image, event)
    if image.authority is Authority.ANSWERS and after.authority is not Authority.ANSWERS:
        # The responses of the nodes stay in the image, beside the registrations.
        after = replace(after, answers=replace(after.answers, nodes=image.nodes))
        delta = replace(delta, answers=AnswersDelta(image.nodes.nodes))
    if after.authority is not Authority.LOG:
        return after, delta
    if image.authority is Authority.ZOOKEEPER:
        brokers = {**after.zookeeper.nodes.nodes, **delta.zookeeper.nodes}
        delta = replace(delta, zookeeper=replace(delta.zookeeper, nodes=brokers))
    return _with_unregistered(after, delta), delta


def _fold(image: ClusterImage, event: Event) -> tuple[ClusterImage, ClusterDelta]:
    match event:
        case LogCommit():
            return fold_commit(image, event)
        case SourceStatus():
            return _fold_status(image, event)
        case NodeAnswer() | NodeSilent() | Disagreement() | QuorumStatus():
            return fold_answer(image, event)
        case SnapshotChunk():
            return fold_chunk(image, event)
        case LogGap():
            return fold_gap(image, event)
        case SourceResync():
            is_of_answers = event.source == Authority.ANSWERS
            return (fold_answers_resync if is_of_answers else fold_log_resync)(image, event)
        case ZnodeChange():
            return fold_znode(image, event)
        case ZnodeSnapshot():
            return fold_znode_snapshot(image, event)
        case Acknowledgement():
            return fold_acknowledgement(image, event)
        case _:
            assert_never(event)


def _with_unregistered(image: ClusterImage, delta: ClusterDelta) -> ClusterImage:
    """The image of a log with ``unregistered`` updated for the brokers of the delta."""
    zookeeper = image.zookeeper
    if not (zookeeper.nodes.nodes or zookeeper.unregistered):
        return image
    keys = {*delta.nodes, *delta.zookeeper.nodes}
    if not keys:
        return image
    return replace(image, zookeeper=zookeeper.with_unregistered(image.nodes, keys))


def fold_unreadable(image: ClusterImage, place: str, reason: str) -> ClusterImage:
    """The image after a message that could not be decoded; ``place`` and ``reason`` are text."""
    unreadable = count_unreadable(image.sources.unreadable, "MESSAGE", place, reason)
    return image.with_unreadable(unreadable)


def fold_lost(image: ClusterImage, topic: str, place: str, reason: str) -> ClusterImage:
    """The image after the bus lost messages of an input topic, given by its short name.

    ``place`` and ``reason`` are text. The image is not ready until the topic's source has published
    its whole state again; a resync in which messages were lost does not count.
    """
    unreadable = count_unreadable(image.sources.unreadable, lost_kind(topic), place, reason)
    image = image.with_unreadable(unreadable)
    if topic == METADATA_LOG.short_name:
        return replace(image, log=replace(image.log, resync=None))
    if topic == ZOOKEEPER.short_name:
        return replace(image, zookeeper=replace(image.zookeeper, resync=None))
    return replace(image, answers=replace(image.answers, resync=None))


def fold_lost_outputs(image: ClusterImage, topic: str, place: str, reason: str) -> ClusterImage:
    """The image after the bus lost what was published on an output topic, as in `fold_lost`."""
    unreadable = count_unreadable(image.sources.unreadable, lost_kind(topic), place, reason)
    return image.with_unreadable(unreadable)


def fold_ahead(image: ClusterImage, place: str, reason: str) -> ClusterImage:
    """The image after an event whose time is ahead of the bus's; its texts are ``place``, its id,
    and ``reason``."""
    unreadable = count_unreadable(image.sources.unreadable, AHEAD, place, reason)
    return image.with_unreadable(unreadable)


def _fold_status(image: ClusterImage, event: SourceStatus) -> tuple[ClusterImage, ClusterDelta]:
    """Applies a source's status, which may end a resync from the start of the log.

    The state *following* alone does not end it: a source that was following when the log went
    backwards may report that state for a moment longer. The status must be at the high watermark.
    """
    if event.state is SourceState.RETIRED:
        return _without_source(image, event.source)
    if event.state is SourceState.SILENT and event.source not in image.sources.statuses:
        return image, SKIPPED  # it was retired in the meantime
    image = _compare_addresses(image, event)
    image = image.with_sources(image.sources.with_status(event))
    is_log_resync = image.log.resync is not None and image.log.resync.reads_log
    is_at_end = event.offset >= 0 and event.high_watermark <= event.offset + 1
    is_following = event.state is SourceState.FOLLOWING and is_at_end
    if event.source != Authority.LOG or not is_following:
        return image, NOTHING
    folded = end_resync(image) if is_log_resync else (image, NOTHING)
    return follow_log(*folded)


def _compare_addresses(image: ClusterImage, event: SourceStatus) -> ClusterImage:
    """The image in which a status from other addresses than the one before it is counted."""
    before = image.sources.statuses.get(event.source)
    if before is None or "" in (before.addresses, event.addresses):
        return image
    if before.addresses == event.addresses:
        return image
    unreadable = count_unreadable(
        image.sources.unreadable,
        rivals_kind(event.source),
        event.id,
        f"{before.addresses} and {event.addresses}",
    )
    return image.with_unreadable(unreadable)


def _without_source(image: ClusterImage, source: str) -> tuple[ClusterImage, ClusterDelta]:
    """The image without a retired source, and without what only that source published.

    What the source of authority published stays while the cluster has another source, but the image
    is not ready any more. A cluster without any source is forgotten.
    """
    statuses = image.sources.statuses
    if not {*statuses} - {source}:
        return (image, SKIPPED) if image.forgotten else _forget(image)
    if source not in statuses:
        return image, SKIPPED
    after = image.with_sources(image.sources.without(source))
    if source == image.authority:
        return after, NOTHING
    if source == Authority.ZOOKEEPER:
        zookeeper = ZookeeperDelta(dict.fromkeys(image.zookeeper.nodes.nodes))
        return replace(after, zookeeper=NO_ZOOKEEPER), ClusterDelta(zookeeper=zookeeper)
    if source == Authority.ANSWERS:
        answers = AnswersDelta(dict.fromkeys(image.answers.nodes.nodes))
        return replace(after, answers=NO_ANSWERS), ClusterDelta(answers=answers)
    return after, NOTHING


def _forget(image: ClusterImage) -> tuple[ClusterImage, ClusterDelta]:
    """The image without anything about the cluster; no level counts as changed."""
    zookeeper = ZookeeperDelta(dict.fromkeys(image.zookeeper.nodes.nodes))
    answers = AnswersDelta(dict.fromkeys(image.answers.nodes.nodes))
    nodes = dict.fromkeys(image.nodes.nodes)
    return image.forget(), ClusterDelta(nodes=nodes, zookeeper=zookeeper, answers=answers)
