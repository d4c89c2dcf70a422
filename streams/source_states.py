"""When a source is catching up, following or stalled: a pure rule."""

from dataclasses import dataclass

from streams.events import SourceState


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why nothing can be read: one line that says what to do, and since when it lasts."""

    line: str
    lasting: bool
    since_ms: int


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a state outlives its grounds, in milliseconds."""

    trouble_ms: int = 5000
    """An election takes a second or two: a source is not stalled before this."""

    lasting_trouble_ms: int = 1000
    """What will not mend by itself is said sooner, once every controller was asked."""

    behind_ms: int = 2000
    """A burst of changes, or a new leader, does not end `following` at once."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a state is judged by; ``now_ms`` and the times in ``trouble`` are of one clock."""

    caught_up: bool
    trouble: Trouble | None
    caught_up_ms: int
    """When the source last was caught up."""

    now_ms: int


def next_state(state: SourceState, standing: Standing, patience: Patience) -> SourceState:
    """The state that follows ``state``.

    `SourceState.FOLLOWING` is entered only where the source is caught up at this very moment.
    """
    trouble = standing.trouble
    if trouble is not None:
        allowed_ms = patience.lasting_trouble_ms if trouble.lasting else patience.trouble_ms
        stalled = standing.now_ms - trouble.since_ms >= allowed_ms
        return SourceState.STALLED if stalled else state
    if standing.caught_up:
        return SourceState.FOLLOWING
    behind = standing.now_ms - standing.caught_up_ms >= patience.behind_ms
    if state is SourceState.STALLED or behind:
        return SourceState.CATCHING_UP
    return state
