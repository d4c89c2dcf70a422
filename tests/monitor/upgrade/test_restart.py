"""The gate of a restart: what would be lost, and whether waiting helps."""

from dataclasses import replace
from typing import Any

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import QuorumView, RestartReport, RestartRequest, check_restart
from featurewatch.streams.types import NodeId
from featurewatch.tables.image.sources import MessagePosition
from tests.monitor.upgrade.states import LIMITS, NOW_MS, kraft, with_partitions
from tests.simulation import records as r

CONTROLLERS = dict.fromkeys((11, 12, 13), "4.3")
BROKERS = dict.fromkeys((1, 2, 3), "4.3")
STATE = kraft(CONTROLLERS, BROKERS, level=30)
ALL = QuorumView(frozenset(map(NodeId, CONTROLLERS)), frozenset(map(NodeId, CONTROLLERS)))
FULL = ([1, 2, 3], [1, 2, 3])


def ask(state: MonitorState, node: int = 1, **others: Any) -> RestartReport:
    """The answer about a node."""
    request = RestartRequest(NodeId(node), NOW_MS, **{"quorum": ALL, **others})
    return check_restart(state, request, LIMITS)


def failed(report: RestartReport) -> dict[str, Verdict]:
    """The checks that do not pass."""
    return {one.name: one.verdict for one in report.checks if one.verdict is not Verdict.YES}


@pytest.mark.parametrize(
    ("rows", "own", "asked", "verdict", "failing", "waits"),
    [
        ([FULL], {"t": 2}, {}, "yes", set(), True),
        ([FULL], {"cluster": 2}, {}, "yes", set(), True),
        ([FULL], {"t": 2}, {"margin": 1}, "no", {"min-isr"}, False),
        ([FULL], {"t": 1}, {"margin": 1}, "yes", set(), True),
        ([FULL], {"t": 3}, {}, "no", {"min-isr"}, False),
        ([FULL], {"t": 9}, {}, "no", {"min-isr"}, False),
        ([([1, 2, 3], [1, 2])], {"t": 2}, {}, "no", {"min-isr", "last-restarted"}, True),
        ([([1, 2, 3], [2, 3])], {"t": 2}, {}, "yes", set(), True),
        ([([2, 3], [2, 3])], {"t": 2}, {}, "yes", set(), True),
        ([([2, 3], [2])], {"t": 1}, {}, "no", {"last-restarted"}, True),
        ([([1], [1])], {"t": 1}, {}, "no", {"unreplicated"}, False),
        ([([1], [1])], {"t": 1}, {"accept": frozenset({"unreplicated"})}, "yes", set(), True),
        ([FULL], {}, {}, "unknown", {"min-isr"}, False),
        ([FULL], {}, {"min_isr": 2}, "yes", set(), True),
        ([FULL], {}, {"min_isr": 3}, "no", {"min-isr"}, False),
        ([FULL], {"t": 1}, {"min_isr": 3}, "yes", set(), True),
        ([FULL, ([1, 2], [1])], {"t": 1}, {}, "no", {"min-isr"}, True),
    ],
)  # fmt: skip
def test_partitions(
    rows: list[tuple[list[int], list[int]]],
    own: dict[str, int],
    asked: dict[str, Any],
    verdict: str,
    failing: set[str],
    waits: bool,
) -> None:
    """Without broker 1: the minimum with its margin, single replicas, the broker before it (3)."""
    report = ask(with_partitions(STATE, *rows, **own), **asked)
    assert (report.verdict, {*failed(report)}, report.can_wait) == (verdict, failing, waits)


def test_reassignments_block_while_they_run() -> None:
    """Any of them, whichever brokers it moves."""
    state = with_partitions(STATE, FULL, t=1)
    assert state.partitions is not None
    assert state.partitions.image is not None
    image = state.partitions.image
    moving = image.partitions[("T", 0)]._replace(adding=(4,))
    image = replace(image, partitions=image.partitions.set(("T", 0), moving))
    state = replace(state, partitions=replace(state.partitions, image=image))
    report = ask(state)
    assert (failed(report), report.can_wait) == ({"reassignments": Verdict.NO}, True)
    assert "t-0" in next(one.text for one in report.checks if one.name == "reassignments")


@pytest.mark.parametrize(
    ("voters", "fetching", "node", "verdict", "waits"),
    [
        ((11, 12, 13), (11, 12, 13), 11, Verdict.YES, True),
        ((11, 12, 13), (11, 12), 11, Verdict.NO, True),
        ((11, 12, 13), (11, 12), 13, Verdict.YES, True),
        ((11, 12, 13), (11, 12), 1, Verdict.YES, True),
        ((11,), (11,), 11, Verdict.NO, False),
        ((11, 12), (11, 12), 12, Verdict.NO, False),
        ((11, 12, 13), None, 11, Verdict.UNKNOWN, True),
        ((11, 12, 13, 14, 15), (11, 12, 13, 14), 15, Verdict.YES, True),
        ((11, 12, 13, 14, 15), (11, 12, 13), 12, Verdict.NO, True),
    ],
)
def test_the_quorum_keeps_its_majority(
    voters: tuple[int, ...], fetching: tuple[int, ...] | None, node: int, verdict: str, waits: bool
) -> None:
    """By those that fetch; a quorum of one or two never can."""
    state = with_partitions(kraft(dict.fromkeys(voters, "4.3"), BROKERS, level=30), FULL, t=1)
    view = QuorumView(
        frozenset(map(NodeId, voters)),
        None if fetching is None else frozenset(map(NodeId, fetching)),
    )
    report = ask(state, node, quorum=view)
    assert next(one.verdict for one in report.checks if one.name == "quorum") is verdict
    assert (report.verdict, report.can_wait) == (verdict, waits)


def test_without_the_controllers_word_responses_count() -> None:
    """What the worker's poll of the nodes heard; unknown is not yes."""
    state = with_partitions(STATE, FULL, t=1)
    assert failed(ask(state, 11, quorum=None)) == {"quorum": Verdict.UNKNOWN}


def test_other_brokers_have_returned_and_the_node_exists() -> None:
    """A fenced broker is waited for; a wrong id is not."""
    fenced = with_partitions(kraft(CONTROLLERS, BROKERS, r.fence(2), level=30, at=100), FULL, t=1)
    assert (failed(ask(fenced)), ask(fenced).can_wait) == ({"brokers": Verdict.NO}, True)
    assert ask(fenced, 2).verdict is Verdict.YES
    wrong = ask(with_partitions(STATE, FULL, t=1), 7)
    assert failed(wrong)["node"] is Verdict.NO
    assert not wrong.can_wait


def test_what_is_not_known_is_unknown() -> None:
    """Partitions that are not followed, a log that is not read, a worker that stopped."""
    bare = replace(STATE, partitions=None)
    assert failed(ask(bare)) == {"partitions": Verdict.UNKNOWN}
    unread = MonitorState.of(STATE.image.cluster)
    assert failed(ask(unread)) == {"log": Verdict.UNKNOWN}
    position = MessagePosition("metadata-log", 5, NOW_MS - 120_000)
    sources = replace(STATE.image.sources, read=STATE.image.sources.read.set("x", position))
    old = replace(STATE, image=STATE.image.with_sources(sources))
    report = ask(with_partitions(old, FULL, t=1))
    assert failed(report) == {"log": Verdict.UNKNOWN}
    assert "2 min old" in report.checks[0].text
