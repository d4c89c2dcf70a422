"""The picture of a roll: bands, levels and points of no return, from literal histories.

A line of a story is a second, the releases of nodes 1, 2, … (``-``: not registered), and ``f`` or
``s`` for a fenced or silent one. A band is drawn as it is known each second: ``?`` where it is not.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from featurewatch.controller.levels import finalized_name
from featurewatch.monitor.roll_picture.assembly import next_level, points_of_no_return, roll_picture
from featurewatch.monitor.roll_picture.model import (
    AlertMark,
    Band,
    Condition,
    LevelChange,
    Period,
    RollPicture,
    Software,
    document,
)
from featurewatch.monitor.roll_picture.timeline import (
    HOLD_MS,
    MAX_PERIODS,
    Timeline,
    node_states,
    timeline_of,
)
from featurewatch.streams.outputs import CapabilityClass, Snapshot
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    SupportedRange,
)
from tests.web.samples import nodes_on, state_of

SECOND: Final = 1_000
SIGNS: Final = {
    Condition.RUNNING: "",
    Condition.FENCED: "f",
    Condition.SILENT: "s",
    Condition.AWAY: "-",
}
FEATURE: Final = METADATA_VERSION


def snapshot_at(second: int, *nodes: str, ready: bool = True) -> Snapshot:
    """The state in which nodes 1, 2, … are as written."""
    classes: list[CapabilityClass] = []
    for node, text in enumerate(nodes, start=1):
        if text != "-":
            item = nodes_on(text.rstrip("fs"), node)
            fenced = (NodeId(node),) if text.endswith("f") else ()
            silent = (NodeId(node),) if text.endswith("s") else ()
            classes.append(replace(item, fenced=fenced, silent=silent))
    return state_of("c", *classes, at_ms=second * SECOND, ready=ready)


def timeline(story: str) -> Timeline:
    """The timeline of a story; a line that begins with ``!`` is not ready."""
    made = Timeline()
    for line in story.strip().splitlines():
        second, *nodes = line.strip().lstrip("!").split()
        made.observe(snapshot_at(int(second), *nodes, ready="!" not in line))
    return made


def drawn(made: Timeline, end: int, seconds: str, begin: int = 0) -> list[str]:
    """Each band as it is at these seconds."""
    period = Period(begin * SECOND, end * SECOND)
    known = made.known(period.end_ms)
    found = roll_picture("c", period, known, made.spans(period.end_ms), levels={})
    return [
        f"{band.node_id}: " + " ".join(_at(found, band, int(second)) for second in seconds.split())
        for band in found.bands
    ]


def _at(found: RollPicture, band: Band, second: int) -> str:
    at_ms = second * SECOND
    if not any(begin <= at_ms <= end for begin, end in found.known):
        return "?"
    states = [span.state for span in band.spans if span.begin_ms <= at_ms <= span.end_ms]
    return states[-1].software.name + SIGNS[states[-1].condition] if states else "none"


STORIES: Final = {
    "a node is fenced, away and comes back": (
        """
        0   3.9  3.9
        10  3.9f 3.9
        20  -    3.9
        30  4.0f 3.9
        40  4.0  3.9
        """,
        "0 9 10 20 29 30 40 45 99",
        ["1: 3.9 3.9 3.9f - - 4.0f 4.0 4.0 4.0", "2: 3.9 3.9 3.9 3.9 3.9 3.9 3.9 3.9 3.9"],
    ),
    "what nobody saw is unknown, even between equal states": (
        """
        0    3.9 3.9
        10   3.9 3.9
        300  3.9 4.0
        310  3.9 4.0
        """,
        "0 10 11 200 299 300 310 370 371",
        ["1: 3.9 3.9 ? ? ? 3.9 3.9 3.9 ?", "2: 3.9 3.9 ? ? ? 4.0 4.0 4.0 ?"],
    ),
    "a part of a cluster says nothing": (
        """
        0    3.9 3.9
        !10  3.9 -
        !20  -   -
        30   3.9 3.9s
        """,
        "0 9 15 20 29 30 60",
        ["1: 3.9 3.9 ? ? ? 3.9 3.9", "2: 3.9 3.9 ? ? ? 3.9s 3.9s"],
    ),
    "a node that came later was not registered before": (
        """
        0   3.9 -
        10  3.9 3.9
        20  -   3.9
        """,
        "0 9 10 20 60",
        ["1: 3.9 3.9 3.9 - -", "2: - - 3.9 3.9 3.9"],
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_nodes_are_drawn_as_they_were_seen(name: str) -> None:
    """Every node at chosen seconds: a snapshot holds until the next, a minute at most."""
    story, seconds, expected = STORIES[name]
    assert drawn(timeline(story), 400, seconds) == expected


def test_two_moments_are_two_moments() -> None:
    """Revisions are known when they began, and at no time between them."""
    days = 86_400
    found = timeline_of([snapshot_at(7 * days, "4.0"), snapshot_at(days, "3.9")])
    period = Period(0, 7 * days * SECOND)
    assert found.known(period.end_ms) == [
        Period(days * SECOND, days * SECOND),
        Period(period.end_ms, period.end_ms),
    ]
    picture = roll_picture(
        "c", period, found.known(period.end_ms), found.spans(period.end_ms), levels={}
    )
    (band,) = picture.bands
    assert [(span.begin_ms, span.end_ms, span.state.software.name) for span in band.spans] == [
        (days * SECOND, days * SECOND, "3.9"),
        (period.end_ms, period.end_ms, "4.0"),
    ]


def test_an_older_snapshot_and_one_without_a_time_change_nothing() -> None:
    """As when a topic is read again from its beginning."""
    made = timeline("0 3.9\n10 4.0")
    before = made.spans(20_000), made.known(20_000)
    for snapshot in (snapshot_at(5, "3.7"), replace(snapshot_at(0, "3.7"), at_ms=-1)):
        made.observe(snapshot)
    assert (made.spans(20_000), made.known(20_000)) == before


def test_spans_join_and_are_clipped_to_the_period() -> None:
    """Of a longer history a part is drawn."""
    made = timeline("0 3.9\n10 3.9f\n20 3.9\n30 4.0")
    period = Period(12_000, 25_000)
    (band,) = roll_picture("c", period, made.known(40_000), made.spans(40_000), levels={}).bands
    assert [(span.begin_ms, span.end_ms, span.state.condition) for span in band.spans] == [
        (12_000, 20_000, "fenced"),
        (20_000, 25_000, "running"),
    ]


def test_a_timeline_is_bounded() -> None:
    """A node that restarts for ever, gaps without end, and made-up ranges: the oldest go."""
    made = Timeline(max_spans=100)
    for number in range(1_000):
        made.observe(snapshot_at(number, "3.9f" if number % 2 else "3.9", "3.9"))
    spans = made.spans(1_000_000)
    assert 75 <= len(spans[NodeKey(Role.BROKER, NodeId(1))]) <= 101
    known = made.known(1_000_000)
    assert 800_000 < known[0].begin_ms <= spans[NodeKey(Role.BROKER, NodeId(1))][0].end_ms
    made = Timeline()
    for number in range(2 * MAX_PERIODS):
        made.observe(snapshot_at(number * 2 * HOLD_MS // SECOND, "3.9"))
    assert len(made.known(0)) == MAX_PERIODS
    made = Timeline()
    for number in range(3_000):
        odd = replace(
            nodes_on("3.9", 1),
            ranges={FeatureName("x"): SupportedRange(FeatureLevel(0), FeatureLevel(number))},
        )
        made.observe(state_of("c", odd, at_ms=number))
    assert sum(map(len, made.spans(3_000).values())) < 2_000


def levels_of(*changes: tuple[int, str, int | None, int | None]) -> Iterator[LevelChange]:
    """Changes of levels, each at its revision's second."""
    for revision, feature, before, after in changes:
        yield LevelChange(revision * SECOND, revision, feature, before, after)


KRAFT: Final = "kraft.version"
WAYS: Final[
    list[
        tuple[list[tuple[int, str, int | None, int | None]], dict[str, int], list[tuple[int, bool]]]
    ]
] = [
    # changes (revision, feature, before, after), levels now, points of no return (revision, known)
    ([], {FEATURE: 21}, []),
    ([(1, FEATURE, None, 21)], {FEATURE: 21}, []),
    ([(1, FEATURE, 20, 21)], {FEATURE: 21}, []),
    ([(1, FEATURE, 19, 20), (2, FEATURE, 20, 25)], {FEATURE: 25}, [(2, True)]),
    ([(1, FEATURE, 20, 25), (2, FEATURE, 25, 20)], {FEATURE: 20}, [(1, True)]),
    ([(1, KRAFT, 0, 1)], {FEATURE: 21, KRAFT: 1}, [(1, True)]),
    ([(1, FEATURE, 25, 9_999)], {FEATURE: 9_999}, [(1, False)]),
    ([(1, "group.version", 0, 1)], {FEATURE: 25, "group.version": 1}, []),
]


@pytest.mark.parametrize(("changes", "levels", "expected"), WAYS)
def test_a_point_of_no_return_is_a_change_without_a_way_back(
    changes: list[tuple[int, str, int | None, int | None]],
    levels: dict[FeatureName, FeatureLevel],
    expected: list[tuple[int, bool]],
) -> None:
    """As `downgrade_path` says of the levels before and after it."""
    found = points_of_no_return([*levels_of(*changes)], levels)
    assert [(item.revision, item.known) for item in found] == expected


def test_what_the_next_level_would_cost_is_told_before() -> None:
    """The newest running release decides; an unknown one, or none above the level, tells
    nothing."""
    running = [Software(21, "3.9"), Software(25, "4.0")]
    found = next_level({FEATURE: FeatureLevel(21)}, running)
    assert found is not None
    assert (found.level, found.software, found.lossless) == (25, "4.0", False)
    assert "no way back" in found.reason
    assert next_level({FEATURE: FeatureLevel(25)}, running) is None
    assert next_level({FEATURE: FeatureLevel(21)}, [Software(99, "unknown")]) is None
    assert next_level({}, running) is None


def test_the_document_has_places_instead_of_names() -> None:
    """Times of spans are relative, releases and conditions are places in lists."""
    made = timeline("0 3.9\n10 3.9f\n20 4.0")
    alert = AlertMark("c/r/x", 5_000, None, "critical", "r", "s", NodeKey(Role.BROKER, NodeId(1)))
    old = replace_end(alert, 1)
    found = roll_picture(
        "c",
        Period(2_000, 30_000),
        made.known(30_000),
        made.spans(30_000),
        levels={FEATURE: FeatureLevel(25)},
        changes=levels_of((12, FEATURE, 21, 25)),
        alerts=[alert, old],
        running=[Software(25, "4.0")],
        notes=["a note"],
    )
    body = document(found, finalized_name)
    assert body["software"] == ["3.9", "4.0"]
    assert body["known"] == [[0, 28_000]]
    assert body["bands"] == [
        {
            "role": "broker",
            "node_id": 1,
            "spans": [[0, 8_000, 0, 0], [8_000, 18_000, 2, 0], [18_000, 28_000, 0, 1]],
        },
    ]
    assert body["levels"][0]["after_name"] == "25 (4.0-IV3)"
    assert body["no_return"][0]["at_ms"] == 12_000
    assert [item["node"] for item in body["alerts"]] == [{"role": "broker", "node_id": 1}]
    assert body["notes"] == ["a note"]


def replace_end(alert: AlertMark, end_ms: int) -> AlertMark:
    """An alert that was over before."""
    return alert._replace(id="old", begin_ms=0, end_ms=end_ms)


def test_the_worst_condition_of_a_node_counts() -> None:
    """A node that is both silent and fenced is fenced."""
    item = replace(nodes_on("3.9", 1, 2), fenced=(NodeId(2),), silent=(NodeId(2),))
    states = node_states(state_of("c", item))
    assert [state.condition for state in states.values()] == ["running", "fenced"]
