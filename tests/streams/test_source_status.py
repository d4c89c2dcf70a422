"""The states of a source, and what it says of them."""

import pytest

from featurewatch.streams.events import SourceState
from featurewatch.streams.source_status import (
    GracePeriods,
    RecentTexts,
    SourceProgress,
    StallReason,
    StatusReporter,
    next_state,
)

CATCHING_UP, FOLLOWING = SourceState.CATCHING_UP, SourceState.FOLLOWING
STALLED = SourceState.STALLED


@pytest.mark.parametrize(
    ("state", "caught_up", "trouble", "since_ms", "after"),
    [
        ("CATCHING_UP", True, None, 0, "FOLLOWING"),
        ("CATCHING_UP", False, None, 0, "CATCHING_UP"),
        ("FOLLOWING", False, None, 1999, "FOLLOWING"),
        ("FOLLOWING", False, None, 2000, "CATCHING_UP"),
        ("FOLLOWING", False, StallReason("", False, 0), 4999, "FOLLOWING"),
        ("FOLLOWING", False, StallReason("", False, 0), 5000, "STALLED"),
        ("CATCHING_UP", False, StallReason("", True, 0), 999, "CATCHING_UP"),
        ("CATCHING_UP", False, StallReason("", True, 0), 1000, "STALLED"),
        ("STALLED", False, None, 0, "CATCHING_UP"),
        ("STALLED", True, None, 0, "FOLLOWING"),
    ],
)
def test_states(
    state: str, caught_up: bool, trouble: StallReason | None, since_ms: int, after: str
) -> None:
    """Following begins at once and ends with patience; what will not mend is said sooner."""
    standing = SourceProgress(caught_up, trouble, caught_up_ms=0, now_ms=since_ms)
    assert next_state(SourceState[state], standing, GracePeriods()) is SourceState[after]


def test_a_status_is_due_at_a_change_and_as_a_heartbeat() -> None:
    """At once and then each second here, whatever number of turns come between."""
    saying = StatusReporter(GracePeriods(), 1000, now_ms=0)
    reports = []
    for now_ms in range(0, 4000, 100):
        if (state := saying.due(now_ms >= 1500, None, now_ms)) is not None:
            saying.reported(state, now_ms)
            reports.append((now_ms, state))
    first = [(0, CATCHING_UP), (1000, CATCHING_UP)]
    assert reports == [*first, (1500, FOLLOWING), (2500, FOLLOWING), (3500, FOLLOWING)]


def test_a_status_stays_due_until_it_is_published() -> None:
    """The bus may not take it at once."""
    saying = StatusReporter(GracePeriods(), 1000, now_ms=0)
    assert [saying.due(True, None, now_ms) for now_ms in (0, 1, 2)] == [FOLLOWING] * 3
    assert saying.state is CATCHING_UP
    saying.reported(FOLLOWING, 3)
    assert saying.due(True, None, 4) is None
    saying.fell_behind()
    assert saying.due(False, None, 5) is CATCHING_UP


def test_the_detail_is_the_stall_reason() -> None:
    """The newest one is remembered after it is over."""
    saying = StatusReporter(GracePeriods(), 60_000, now_ms=0)
    reason = StallReason("nobody answers", True, 0)
    assert saying.due(False, reason, 999) is CATCHING_UP
    assert (saying.detail, saying.last_error) == ("", "nobody answers")
    saying.reported(CATCHING_UP, 999)
    assert saying.due(False, reason, 1000) is STALLED
    assert saying.detail == "nobody answers"
    saying.reported(STALLED, 1000)
    assert saying.due(True, None, 1001) is FOLLOWING
    assert (saying.detail, saying.last_error) == ("", "nobody answers")


def test_a_text_that_repeats_or_alternates_is_logged_once() -> None:
    """A text is new again a minute after it was last seen; others are forgotten from 100 on."""
    texts = RecentTexts()
    new = [
        (at, text)
        for at in range(0, 300_000, 1000)
        for text in ("a", "b")
        if texts.is_new(text, at)
    ]
    assert new == [(0, "a"), (0, "b")]
    assert not texts.is_new("a", 359_000)
    assert texts.is_new("b", 360_000)
    for number in range(100):
        texts.is_new(str(number), 360_000)
    assert texts.is_new("a", 360_000)
