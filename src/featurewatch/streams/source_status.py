"""When a source is catching up, following or stalled, and when its status is to be published."""

from dataclasses import dataclass
from typing import Final

from featurewatch.streams.events import SourceState


@dataclass(frozen=True, slots=True)
class StallReason:
    """Why a source cannot read: one line that says what to do, and since when.

    ``permanent``: it does not end on its own.
    """

    message: str
    permanent: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class GracePeriods:
    """Grace periods before a source changes state, in milliseconds."""

    transient_ms: int = 5000
    """An election takes a second or two: a source is not stalled before this."""

    permanent_ms: int = 1000
    """A permanent reason stalls a source sooner, once every controller was tried."""

    lag_ms: int = 2000
    """A burst of changes, or a new leader, does not end `following` at once."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The inputs of a state; ``now_ms`` and the times in ``stall_reason`` are of one clock."""

    caught_up: bool
    stall_reason: StallReason | None
    caught_up_ms: int
    """When the source was last caught up."""

    now_ms: int


def next_state(state: SourceState, progress: SourceProgress, grace: GracePeriods) -> SourceState:
    """The state that follows ``state``.

    `SourceState.FOLLOWING` is entered only while the source is caught up.
    """
    reason = progress.stall_reason
    if reason is not None:
        grace_ms = grace.permanent_ms if reason.permanent else grace.transient_ms
        is_stalled = progress.now_ms - reason.since_ms >= grace_ms
        return SourceState.STALLED if is_stalled else state
    if progress.caught_up:
        return SourceState.FOLLOWING
    is_behind = progress.now_ms - progress.caught_up_ms >= grace.lag_ms
    if state is SourceState.STALLED or is_behind:
        return SourceState.CATCHING_UP
    return state


class StatusReporter:
    """Decides when a source's status is to be published: at each change of state, and periodically.

    All times are milliseconds of one clock. ``state`` is the last one that was published,
    ``detail`` why the source is stalled or how far it is, ``last_error`` the newest stall reason,
    which may be over.
    """

    def __init__(self, grace: GracePeriods, heartbeat_ms: int, now_ms: int) -> None:
        self.state = SourceState.CATCHING_UP
        self.detail = self.last_error = ""
        self._grace = grace
        self._heartbeat_ms = heartbeat_ms
        self._caught_up_ms = now_ms
        self._reported_ms: int | None = None

    def due(
        self, caught_up: bool, stall_reason: StallReason | None, now_ms: int, detail: str = ""
    ) -> SourceState | None:
        """The state to publish now, if any; it stays due until `reported` is called.

        ``detail`` is the detail of a source that is not stalled.
        """
        if caught_up:
            self._caught_up_ms = now_ms
        if stall_reason is not None:
            self.last_error = stall_reason.message
        progress = SourceProgress(caught_up, stall_reason, self._caught_up_ms, now_ms)
        state = next_state(self.state, progress, self._grace)
        is_stalled = state is SourceState.STALLED
        self.detail = stall_reason.message if stall_reason and is_stalled else detail
        reported_ms = self._reported_ms
        is_heartbeat = reported_ms is None or now_ms - reported_ms >= self._heartbeat_ms
        return state if is_heartbeat or state is not self.state else None

    def reported(self, state: SourceState, now_ms: int) -> None:
        """``state`` is published now."""
        self.state, self._reported_ms = state, now_ms

    def fell_behind(self) -> None:
        """The source is behind, whatever its last status; that is due at once."""
        self.state, self._reported_ms = SourceState.CATCHING_UP, None


class RecentTexts:
    """Decides which lines of a log are new: one that repeats within a minute is not.

    Texts that alternate are not new either. Times are milliseconds of one clock.
    """

    _QUIET_MS: Final = 60_000
    _MAX_TEXTS: Final = 100

    def __init__(self) -> None:
        self._seen_ms: dict[str, int] = {}

    def is_new(self, text: str, now_ms: int) -> bool:
        """Whether the last call with this text is more than a minute ago."""
        last_ms = self._seen_ms.pop(text, None)
        self._seen_ms[text] = now_ms
        if len(self._seen_ms) > self._MAX_TEXTS:
            del self._seen_ms[next(iter(self._seen_ms))]
        return last_ms is None or now_ms - last_ms > self._QUIET_MS
