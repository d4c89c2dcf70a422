"""The fold: ``image', delta = fold(image, event)``, the one way in which knowledge changes."""

from dataclasses import replace
from typing import assert_never

from streams.events import (
    Disagreement,
    Event,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    SnapshotChunk,
    SourceState,
    SourceStatus,
)
from tables.fold_answers import fold_answer, fold_disagreement, fold_silence
from tables.fold_log import end_resync, fold_chunk, fold_commit, fold_gap
from tables.image import NOTHING, Authority, ClusterDelta, ClusterImage, Unreadable


def fold(image: ClusterImage, event: Event) -> tuple[ClusterImage, ClusterDelta]:
    """The image after an event, and what the event changed. Pure; the given image stays.

    An event that was taken in before changes nothing. Its cost follows what it changes, not the
    size of the cluster; only a snapshot costs what it holds.
    """
    match event:
        case LogCommit():
            return fold_commit(image, event)
        case SourceStatus():
            return _fold_status(image, event)
        case NodeAnswer():
            return fold_answer(image, event)
        case NodeSilent():
            return fold_silence(image, event)
        case SnapshotChunk():
            return fold_chunk(image, event)
        case LogGap():
            return fold_gap(image, event)
        case Disagreement():
            return fold_disagreement(image, event)
        case _:
            assert_never(event)


def fold_unreadable(image: ClusterImage, place: str, reason: str) -> ClusterImage:
    """The image after a message on a topic that could not be read at all."""
    first = image.unreadable.get("MESSAGE", Unreadable(0, place, reason))
    found = replace(first, count=first.count + 1)
    return replace(image, unreadable=image.unreadable.set("MESSAGE", found))


def _fold_status(image: ClusterImage, event: SourceStatus) -> tuple[ClusterImage, ClusterDelta]:
    """A source's word; when the log is read to its end again, a reading from its start is complete.

    The word *following* alone does not say so: a source that was following when the log went
    backwards may keep the word for a moment while it reads.
    """
    image = image.with_source(event)
    reading_log = image.resync is not None and image.resync.reads_log
    at_end = event.offset >= 0 and event.high_watermark <= event.offset + 1
    following = event.state is SourceState.FOLLOWING and at_end
    if event.source == Authority.LOG and following and reading_log:
        return end_resync(image)
    return image, NOTHING
