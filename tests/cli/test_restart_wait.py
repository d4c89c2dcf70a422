"""How long ``upgrade check restart --wait`` waits."""

from featurewatch.cli.commands.upgrade.check.restart import wait_for
from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.upgrade import Precondition, RestartReport
from featurewatch.streams.types import NodeId


def test_waiting_ends_with_yes_with_never_and_in_time() -> None:
    """A line for each new reason; no wait for what cannot come."""
    yes = RestartReport(NodeId(1), (Precondition("x", Verdict.YES, "ok"),))
    no = RestartReport(NodeId(1), (Precondition("x", Verdict.NO, "busy", waits=True),))
    never = RestartReport(NodeId(1), (Precondition("x", Verdict.NO, "one replica"),))
    for answers, expected, paused in (
        ((yes,), yes, 0),
        ((no, no, yes), yes, 2),
        ((never,), never, 0),
        ((no, never), never, 1),
        ((no, no, no, no, no), no, 4),
    ):
        left, clock = iter(answers), [0.0]

        def pause(seconds: float, clock: list[float] = clock) -> None:
            clock[0] += seconds

        first = next(left)
        found = wait_for(first, lambda left=left: next(left), 12.0, lambda c=clock: c[0], pause)  # type: ignore[misc]  # bound early
        assert (found, clock[0]) == (expected, 3.0 * paused)
