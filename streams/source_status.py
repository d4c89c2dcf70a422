"""When a source is catching up, following or stalled, and when it says so."""

from dataclasses import dataclass

from featurewatch.streams.events import SourceState


@dataclass(frozen=True, slots=True)
class StallReason:
    """Why nothing can be read: one line that says what to do, and since when it lasts."""

    message: str
    permanent: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class GracePeriods:
    """How long a state outlives its grounds, in milliseconds."""

    transient_ms: int = 5000
    """An election takes a second or two: a source is not stalled before this."""

    permanent_ms: int = 1000
    """What will not mend by itself is said sooner, once every controller was asked."""

    lag_ms: int = 2000
    """A burst of changes, or a new leader, does not end `following` at once."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What a state is judged by; ``now_ms`` and the times in ``trouble`` are of one clock."""

    caught_up: bool
    trouble: StallReason | None
    caught_up_ms: int
    """When the source last was caught up."""

    now_ms: int


def next_state(state: SourceState, standing: SourceProgress, patience: GracePeriods) -> SourceState:
    """The state that follows ``state``.

    `SourceState.FOLLOWING` is entered only where the source is caught up at this very moment.
    """
    trouble = standing.trouble
    if trouble is not None:
        allowed_ms = patience.permanent_ms if trouble.permanent else patience.transient_ms
        stalled = standing.now_ms - trouble.since_ms >= allowed_ms
        return SourceState.STALLED if stalled else state
    if standing.caught_up:
        return SourceState.FOLLOWING
    behind = standing.now_ms - standing.caught_up_ms >= patience.lag_ms
    if state is SourceState.STALLED or behind:
        return SourceState.CATCHING_UP
    return state


class StatusReporter:
    """What a source says of its state: each change at once, and a heartbeat.

    All times are milliseconds of one clock. ``state`` is what it last came to, ``detail`` why it
    is stalled (empty: it is not), ``last_error`` the newest trouble, whether it lasts or not.
    """

    def __init__(self, patience: GracePeriods, heartbeat_ms: int, now_ms: int) -> None:
        self.state = SourceState.CATCHING_UP
        self.detail = self.last_error = ""
        self._patience = patience
        self._heartbeat_ms = heartbeat_ms
        self._caught_up_ms = now_ms
        self._said_ms: int | None = None

    def due(self, caught_up: bool, trouble: StallReason | None, now_ms: int) -> SourceState | None:
        """The state that is to be said now, if one is; it is said by then calling `reported`."""
        if caught_up:
            self._caught_up_ms = now_ms
        if trouble is not None:
            self.last_error = trouble.message
        standing = SourceProgress(caught_up, trouble, self._caught_up_ms, now_ms)
        state = next_state(self.state, standing, self._patience)
        self.detail = trouble.message if trouble and state is SourceState.STALLED else ""
        late = self._said_ms is None or now_ms - self._said_ms >= self._heartbeat_ms
        return state if late or state is not self.state else None

    def reported(self, state: SourceState, now_ms: int) -> None:
        """``state`` goes to the bus now."""
        self.state, self._said_ms = state, now_ms

    def fell_behind(self) -> None:
        """What is read now is behind, whatever was said a moment ago; that is said at once."""
        self.state, self._said_ms = SourceState.CATCHING_UP, None
