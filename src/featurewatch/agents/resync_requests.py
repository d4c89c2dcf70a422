"""Requests that sources publish again what was lost of their messages."""

from collections.abc import Callable, Mapping
from typing import Final

from featurewatch.monitor.step import MonitorState
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.events import ResyncRequest
from featurewatch.streams.kraft.records.schema import is_known
from featurewatch.streams.topics import INPUTS, METADATA_LOG, RESYNC_REQUESTS, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.sources import lost_kind

FIRST_WAIT_S: Final = 20.0
"""After the first request, in seconds; each further wait is twice as long."""

MAX_WAIT_S: Final = 600.0
"""The longest wait between two requests, in seconds."""


class ResyncRequester:
    """Requests what is lost, at once and then again until it was published.

    Nobody reads a request whose source does not run, and a source that started before a release was
    learned does not know its records; so it is repeated, ever less often: a source may need minutes
    to publish the whole state of a large cluster.
    """

    def __init__(
        self, states: Callable[[], Mapping[ClusterId, MonitorState]], publisher: Publisher
    ) -> None:
        self._states = states
        self._publisher = publisher
        self._due: dict[tuple[ClusterId, str], tuple[float, float]] = {}

    async def check(self, now_s: float, now_ms: int) -> None:
        """Publishes the requests that are due: monotonic seconds, and epoch milliseconds."""
        due = {}
        for cluster, state in list(self._states().items()):
            for topic in INPUTS:
                reason = _missing(state, topic)
                if not reason:
                    continue
                key = cluster, topic.short_name
                due_s, wait_s = self._due.get(key, (now_s, FIRST_WAIT_S))
                if now_s >= due_s:
                    request = ResyncRequest(cluster, topic.source, reason, now_ms)
                    await self._publisher.publish(RESYNC_REQUESTS, request)
                    due_s, wait_s = now_s + wait_s, min(wait_s * 2, MAX_WAIT_S)
                due[key] = due_s, wait_s
        self._due = due


def _missing(state: MonitorState, topic: Topic) -> str:
    """Why the source of an input topic must publish its whole state again; empty: it need not.

    Messages were lost, records were not known that a learned release has, or the partitions before
    the operations were followed are not known.
    """
    lost = state.image.sources.unreadable.get(lost_kind(topic.short_name))
    if lost is not None:
        return lost.reason
    if topic is not METADATA_LOG:
        return ""
    if learned := [kind for kind in state.image.incomplete if is_known(kind)]:
        return f"{', '.join(learned)} was not known when it was read, and is known now"
    return "" if state.partitions is None else state.partitions.missing
