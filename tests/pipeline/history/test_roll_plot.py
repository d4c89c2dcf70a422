"""The picture of rolls from the lake: what was fenced, gaps of the log, and the SVG file."""

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.history import history
from featurewatch.monitor.roll_picture.model import (
    Band,
    Condition,
    NodeState,
    Period,
    RollPicture,
    Software,
    Span,
)
from featurewatch.pipeline.history.moments import UnknownMomentError
from featurewatch.pipeline.history.plot.roll import known_periods, roll_of, spans_of, time_of, to_ms
from featurewatch.pipeline.history.plot.roll_svg import LEFT, RIGHT, svg
from featurewatch.pipeline.lake.reader import LakeReader
from featurewatch.streams.types import NodeId, NodeKey, Role
from tests.paths import ROOT
from tests.pipeline.history.lakes import DAY, SILVER, START, lake_of, write, year

NOW: Final = START + 365 * DAY
NAME: Final = "<b>$x$"
SVG: Final = "{http://www.w3.org/2000/svg}"
CAUSES: Final = {"k": "c/kraft/1-1", "z": "c/zookeeper/7", "a": "c/api-versions/broker-1/1"}

Changes = list[tuple[int, bool]]
FENCED: Final[list[tuple[str, str, int, int | None, Changes, str]]] = [
    # role, source, begin, end, fencings; condition from each second on
    ("broker", "k", 0, 100, [], "0 registered"),
    ("broker", "k", 0, 100, [(0, True), (10, False)], "0 fenced 10 running"),
    ("broker", "k", 50, 100, [(10, True), (20, False)], "50 running"),
    ("broker", "k", 0, 100, [(40, True), (60, False)], "0 registered 40 fenced 60 running"),
    ("broker", "k", 0, 30, [(0, False), (30, True)], "0 running"),
    ("broker", "k", 0, None, [(0, False), (90, True), (900, False)], "0 running 90 fenced"),
    ("broker", "z", 0, 100, [], "0 running"),
    ("broker", "a", 0, 100, [], "0 registered"),
    ("controller", "k", 0, 100, [(10, True)], "0 running"),
]


@pytest.mark.parametrize(("role", "source", "begin", "end", "changes", "expected"), FENCED)
def test_what_was_fenced_is_told_where_it_is_known(
    role: str, source: str, begin: int, end: int | None, changes: Changes, expected: str
) -> None:
    """A registration in the log may be fenced or not; before the first record that is unknown. One
    in ZooKeeper has a session, and controllers are never fenced."""
    row: dict[str, Any] = {
        "role": role,
        "node_id": 1,
        "ranges": {"metadata.version": [1, 21]},
        "complete": True,
        "since": time_of(begin * 1000),
        "until": None if end is None else time_of(end * 1000),
        "since_cause": CAUSES[source],
    }
    spans = spans_of([row], {1: [(at * 1000, fenced) for at, fenced in changes]}, 200_000)
    found = spans[NodeKey(Role(role), NodeId(1))]
    told = " ".join(f"{span.begin_ms // 1000} {span.state.condition}" for span in found)
    assert told == expected
    assert found[-1].end_ms == (200_000 if end is None else end * 1000)
    assert {span.state.software.newest for span in found} == {21}


def test_gaps_of_the_log_are_not_known() -> None:
    """The rest of a period is; gaps may overlap, and reach beyond it."""
    for gaps, expected in (
        ([], [(0, 100)]),
        ([(10, 20)], [(0, 10), (20, 100)]),
        ([(10, 20), (15, 30), (90, 120)], [(0, 10), (30, 90)]),
        ([(-5, 20)], [(20, 100)]),
    ):
        found = known_periods(Period(0, 100), [Period(*gap) for gap in gaps])
        assert found == [Period(*period) for period in expected], gaps


def colours_of(text: str, selector: str) -> list[dict[str, str]]:
    """The colours that a style sheet names, light and dark, by the name of the variable."""
    blocks = re.findall(rf"{selector} {{(?P<body>[^}}]*)}}", text)
    return [dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", body)) for body in blocks]


def mixed(old: str, new: str, part: float) -> str:
    """A colour between two, as ``color-mix(in srgb, …)`` has it."""
    ends = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (old, new)]
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(*ends, strict=True))


def test_the_file_has_the_colours_of_the_page() -> None:
    """In both schemes: those of its styles, and those of releases, oldest to newest."""
    page = (ROOT / "src/featurewatch/web/static/page.css").read_text()
    spans = [
        Span(at, at + 1, NodeState(Condition.RUNNING, Software(level, name)))
        for at, (level, name) in enumerate(((19, "3.7"), (21, "3.9"), (25, "4.0")))
    ]
    band = Band(Role.BROKER, NodeId(1), tuple(spans))
    file = svg(RollPicture("a", 0, 3, (Period(0, 3),), (band,)))
    # The page mixes them in the browser.
    assert "color-mix(in srgb, var(--newest) var(--mix), var(--oldest))" in page
    shades = [re.findall(r"\.s\d { fill: (#[0-9a-f]{6}); }", line) for line in file.splitlines()]
    schemes = zip(
        colours_of(page, ":root"),
        colours_of(file, "svg"),
        [line for line in shades if line],
        strict=True,
    )
    for of_page, of_file, of_releases in schemes:
        assert of_file.keys() >= {"back", "text", "bad", "warn", "unknown"}
        assert of_file.items() <= of_page.items()
        ends = of_page["oldest"], of_page["newest"]
        assert of_releases == [mixed(*ends, part) for part in (0.0, 0.5, 1.0)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one cluster, whose id contains a tag, with silver's fencings and a gap."""
    story = year(NAME, brokers=5, controllers=3)
    lake = lake_of(tmp_path_factory.mktemp("lake"), story)
    at = START + 3 * DAY
    cause = {
        "cluster": NAME,
        "day": at.date(),
        "topic": "t",
        "partition": 0,
        "from_snapshot": False,
    }
    fencing = [
        {**cause, "id": f"{number}", "at": time, "seen_at": time, "node_id": 101, "fenced": fenced}
        for number, (time, fenced) in enumerate([(at, True), (at + DAY, False)])
    ]
    gap = {**cause, "id": "g", "at": at, "seen_at": START + 60 * DAY, "from_offset": 1}
    write(lake, {"fencing": fencing, "log_gaps": [gap], "registrations": []}, tables=SILVER)
    return lake


@pytest.fixture(scope="module")
def drawn(root: Path) -> RollPicture:
    """The picture of its year."""
    return roll_of(LakeReader(str(root)), NAME, None, None, NOW)


def test_a_picture_has_nodes_levels_alerts_and_the_points_of_no_return(drawn: RollPicture) -> None:
    """As the lake has them; brokers without a record of fencing are registered, and say so."""
    assert [(band.role, band.node_id) for band in drawn.bands][:2] == [
        ("broker", 100),
        ("broker", 101),
    ]
    assert [item.name for item in drawn.software] == ["3.7", "3.9", "4.0", "4.2"]
    fenced = [span for span in drawn.bands[1].spans if span.state.condition == "fenced"]
    assert [(span.begin_ms, span.end_ms) for span in fenced] == [
        (to_ms(START + 3 * DAY), to_ms(START + 4 * DAY))
    ]
    assert {span.state.condition for span in drawn.bands[0].spans} == {"registered", "away"}
    assert any("registered" in note for note in drawn.notes)
    assert {mark.node for mark in drawn.alerts} == {NodeKey(Role.BROKER, NodeId(100))}
    assert all(mark.end_ms is not None for mark in drawn.alerts)
    metadata = [change for change in drawn.levels if change.feature == "metadata.version"]
    assert [item.revision for item in drawn.no_return if item.known]
    assert len(metadata) >= 3


def test_a_part_of_the_time_is_drawn(root: Path) -> None:
    """Nothing is known before the history."""
    reader = LakeReader(str(root))
    part = roll_of(reader, NAME, START + 10 * DAY, START + 20 * DAY, NOW)
    assert part.end_ms - part.begin_ms == timedelta(days=10) // timedelta(milliseconds=1)
    with pytest.raises(UnknownMomentError, match="has nothing between"):
        roll_of(reader, NAME, None, START - DAY, NOW)


def test_the_file_is_one_svg_that_needs_no_other(drawn: RollPicture) -> None:
    """Well formed, the same bytes each time, names escaped, nothing outside the drawing."""
    text = svg(drawn)
    assert text == svg(drawn)
    root = ET.fromstring(text)  # noqa: S314 - it is our own
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {NAME, "broker 101", "no way back", "unknown"} <= {*texts}
    assert "<b>" not in text
    assert {*re.findall(r"https?://[^\"]+", text)} == {"http://www.w3.org/2000/svg"}
    assert re.findall(r"<script|(?:src|href)=|@import", text) == []
    for element in root.iter(f"{SVG}path"):
        if element.get("class", "").startswith("s") or element.get("class") == "away":
            places = [float(x) for x in re.findall(r"[MH]([\d.]+)", element.get("d", ""))]
            assert LEFT <= min(places) <= max(places) <= RIGHT + 1
    assert (root.findtext(f"{SVG}desc") or "").startswith("9 nodes from")


def test_the_command_writes_it(root: Path, tmp_path: Path) -> None:
    """By the suffix of the file."""
    file = tmp_path / "a.svg"
    result = CliRunner().invoke(history, ["plot", "--lake", str(root), "--out", str(file)])
    assert result.exit_code == 0, result.output
    assert file.read_text().startswith("<svg")


def test_times_are_exact() -> None:
    """To the millisecond, both ways."""
    at = datetime(2026, 5, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    assert time_of(to_ms(at)) == at
