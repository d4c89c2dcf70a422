"""The plot of a history: its content, and that its files are well formed."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.history import history
from featurewatch.cli.errors import UsageError
from featurewatch.pipeline.history.moments import UnknownMomentError
from featurewatch.pipeline.history.plot.html_page import html
from featurewatch.pipeline.history.plot.layout import LEFT, RIGHT, WIDTH, layout
from featurewatch.pipeline.history.plot.picture import Lane, Picture, lanes, levels, picture, runs
from featurewatch.pipeline.history.plot.png import png
from featurewatch.pipeline.history.plot.shapes import (
    DARK,
    LIGHT,
    Drawing,
    Rect,
    Text,
    on,
    shades,
    text_width,
)
from featurewatch.pipeline.history.plot.time_axis import ticks
from featurewatch.pipeline.lake.reader import LakeReader
from tests.pipeline.history.lakes import DAY, FEATURE, HOUR, START, Story, lake_of, year

NOW = START + 365 * DAY
END = START + 100 * DAY


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one cluster, whose id contains a tag."""
    return lake_of(tmp_path_factory.mktemp("lake"), year("<b>$x$", brokers=40, controllers=3))


@pytest.fixture(scope="module")
def drawn(root: Path) -> Picture:
    """The picture of its year."""
    return picture(LakeReader(str(root)), "<b>$x$", None, None, NOW)


@pytest.fixture(scope="module")
def drawing(drawn: Picture) -> Drawing:
    """Its layout."""
    return layout(drawn)


def node(node_id: int, *parts: tuple[str, float], role: str = "broker") -> Iterator[dict[str, Any]]:
    """The intervals of a node: each release with the day from which it runs."""
    for (release, day), next_ in pairwise([*parts, ("", 0.0)]):
        until = START + next_[1] * DAY if next_[0] else None
        yield {
            "role": role,
            "node_id": node_id,
            "release": release,
            "ranges": {FEATURE: [1, 9]},
            "since": START + day * DAY,
            "until": until,
        }


def lanes_of(*nodes: Iterator[dict[str, Any]], bad: Any = ()) -> list[Lane]:
    """The lanes of a hundred days."""
    return lanes([row for rows in nodes for row in rows], bad, START, END)


def test_nodes_that_were_rolled_together_share_a_lane() -> None:
    """A thousand restarts within one roll are one lane; a node that was rolled later has its
    own."""
    rolled = [node(n, ("3.9", 0), ("4.0", 50 + n / 10_000)) for n in range(1000)]
    result = lanes_of(*rolled, node(1000, ("3.9", 0), ("4.0", 60)), node(1, ("4.0", 0), role="z"))
    assert [(lane.role, lane.title()) for lane in result] == [
        *(("broker", "brokers 0-999"), ("broker", "broker 1000"), ("z", "z 1")),
    ]
    assert [bar.software.name for bar in result[0].bars] == ["3.9", "4.0"]


def test_an_incompatible_node_has_no_other_company() -> None:
    """Excluded nodes do not share a lane with others."""
    exclusion = {"role": "broker", "reason": "too old", "since": START + 10 * DAY, "until": END}
    bad = [{**exclusion, "node_id": 2}, {**exclusion, "node_id": 3}]
    result = lanes_of(*(node(n, ("3.9", 0)) for n in (1, 2, 3, 4)), bad=bad)
    assert [(lane.nodes, [bar.reason for bar in lane.bad]) for lane in result] == [
        *(((1, 4), []), ((2, 3), ["too old"])),
    ]


def test_many_histories_are_drawn_more_coarsely() -> None:
    """Two slow rolls in different orders give at most a hundred lanes."""
    slow = [
        node(n, ("3.9", 0), ("4.0", 10 + 30 * n / 1000), ("4.2", 50 + 30 * (n * 7 % 1000) / 1000))
        for n in range(1000)
    ]
    result = lanes_of(*slow)
    assert 5 < len(result) <= 100
    assert sorted(n for lane in result for n in lane.nodes) == [*range(1000)]


def test_levels_begin_with_what_was_before() -> None:
    """A level that was finalized before the time range starts at its beginning; a removed one
    ends."""
    rows = [
        {"at": START + days * DAY, "finalized": finalized}
        for days, finalized in (
            (0, {FEATURE: 19}),
            (50, {FEATURE: 21, "x": 1}),
            (60, {FEATURE: 21}),
        )
    ]
    begin = START + 10 * DAY
    assert [(steps.feature, steps.steps) for steps in levels(rows, begin, END)] == [
        (FEATURE, ((begin, 19), (START + 50 * DAY, 21))),
        ("x", ((begin, None), (START + 50 * DAY, 1), (START + 60 * DAY, None))),
    ]
    early = levels(rows, begin, START + 20 * DAY)
    assert [steps.feature for steps in early] == [FEATURE]


def test_a_picture_has_everything_that_happened(drawn: Picture) -> None:
    """Levels, rolls, nodes, and the broker that came back too old."""
    assert [steps.feature for steps in drawn.levels] == [
        *(FEATURE, "group.version", "kraft.version", "share.version", "transaction.version")
    ]
    assert [roll.title for roll in drawn.rolls] == ["3.7 → 3.9", "3.9 → 4.0", "4.0 → 4.2"]
    assert drawn.nodes == 44
    assert [label.name for label in drawn.software] == ["3.7", "3.9", "4.0", "4.2"]
    assert [lane.nodes for lane in drawn.lanes if lane.bad] == [(100,)]


def test_a_time_without_history_is_unknown(root: Path) -> None:
    """It raises an error."""
    with pytest.raises(UnknownMomentError, match="has nothing between"):
        picture(LakeReader(str(root)), "<b>$x$", None, START - DAY, NOW)


def test_nothing_is_drawn_beside_the_page(drawing: Drawing) -> None:
    """Bars lie between the ends of the axis, and texts on the page."""
    for shape in drawing.shapes:
        if isinstance(shape, Rect) and shape.tip:
            assert LEFT - 2 <= shape.x <= shape.x + shape.width <= RIGHT + 4
        if isinstance(shape, Text):
            assert 0 <= shape.x <= WIDTH
            assert 0 < shape.y < drawing.height


def test_names_at_the_left_do_not_lie_on_each_other(drawing: Drawing) -> None:
    """Labels do not overlap."""
    left = [shape for shape in drawing.shapes if isinstance(shape, Text) and shape.x < LEFT]
    boxes = []
    for text in left:
        width = text_width(text.text, text.size, bold=text.bold)
        start = text.x - width if text.anchor == "end" else text.x
        boxes.append((start, start + width, text.y - text.size / 2, text.y + text.size / 2))
    for index, (left1, right1, top1, bottom1) in enumerate(boxes):
        for left2, right2, top2, bottom2 in boxes[index + 1 :]:
            assert right1 <= left2 or right2 <= left1 or bottom1 <= top2 or bottom2 <= top1


@pytest.mark.parametrize("seconds", [3, 61, 600, 5000, 90_000, 10**6, 10**7, 4 * 10**7, 10**9])
def test_ticks_are_few_round_and_in_order(seconds: int) -> None:
    """From seconds to decades; the first tick names the day or the year, and no label occurs
    twice."""
    begin = datetime(2025, 11, 20, 8, 0, 1, tzinfo=UTC)
    labelled = ticks(begin, begin + timedelta(seconds=seconds), 12)
    assert 2 <= len(labelled) <= 13
    times = [at for at, _ in labelled]
    assert times == sorted(times)
    assert begin <= times[0] and times[-1] <= begin + timedelta(seconds=seconds)
    texts = [text for _, text in labelled]
    assert len(set(texts)) == len(texts) or seconds > 3 * 10**7
    assert re.search(r"\d{4}$|^\w{3} \d+ ", texts[0])


def test_colours_are_distinguished_and_read() -> None:
    """Each release has its own shade, each lighter than the previous one; texts are readable on
    them."""
    colours = [*shades(11)]
    light = [sum(int(colour[at : at + 2], 16) for at in (1, 3, 5)) for colour in colours]
    assert len(set(colours)) == 11
    assert light[0] < light[5] < light[10]
    assert (on("#000000"), on("#ffffff")) == ("#ffffff", "#000000")
    assert LIGHT.keys() == DARK.keys()


def test_ids_are_drawn_together() -> None:
    """Ids form runs, with an ellipsis after the last."""
    assert runs([3, 1, 2, 7, 9, 10]) == "1-3, 7, 9-10"
    assert runs([1, 3, 5, 7], 2) == "1, 3, …"


def test_the_same_picture_is_the_same_image(drawing: Drawing) -> None:
    """It is the same byte for byte, and a PNG of the drawing's proportions."""
    image = png(drawing)
    assert image == png(drawing)
    assert image.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(image[at : at + 4], "big") for at in (16, 20))
    assert width / height == pytest.approx(drawing.width / drawing.height, rel=0.01)


def test_the_page_needs_no_other_file(drawing: Drawing, drawn: Picture) -> None:
    """Its SVG is well formed and refers to nothing outside; names from a cluster are escaped."""
    page = html(drawing)
    svg = re.search(r"<svg.*</svg>", page, re.DOTALL)
    assert svg is not None
    root = ET.fromstring(svg[0])  # noqa: S314 - it is our own
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert drawn.cluster in texts
    assert "<b>" not in page
    assert re.findall(r"(?:src|href|url|import)\s*[=(]\s*[\"']?(?!#)\w", page) == []
    assert set(re.findall(r"https?://[^\"]+", page)) == {"http://www.w3.org/2000/svg"}
    tips = [element.get("data-tip") for element in root.iter() if element.get("data-tip")]
    assert any(tip and "broker 100: incompatible" in tip for tip in tips)
    assert page == html(drawing)
    for tone in (*LIGHT.values(), *DARK.values()):
        assert tone in page


def test_the_command_writes_either_file(root: Path, tmp_path: Path) -> None:
    """The extension selects the format; another extension or an unwritable path is wrong usage."""
    for name in ("a.png", "a.html"):
        file = tmp_path / name
        result = CliRunner().invoke(history, ["plot", "--lake", str(root), "--out", str(file)])
        assert result.exit_code == 0, result.output
        assert file.stat().st_size > 5000
    for bad in ("a.gif", "nowhere/a.html"):
        out = str(tmp_path / bad)
        result = CliRunner().invoke(history, ["plot", "--lake", str(root), "--out", out])
        assert isinstance(result.exception, UsageError)
    early = ["--until", "2020-01-01", "--out", str(tmp_path / "b.png")]
    assert CliRunner().invoke(history, ["plot", "--lake", str(root), *early]).exit_code == 4


def test_a_cluster_without_levels_or_nodes_is_drawn(tmp_path: Path) -> None:
    """A line replaces the missing part."""
    story = Story("bare")
    story.node("broker", 1, None)
    story.finalize(FEATURE, 21)
    lake = LakeReader(str(lake_of(tmp_path, story)))
    drawing_ = layout(picture(lake, "bare", None, None, START + 10 * HOUR))
    texts = [shape.text for shape in drawing_.shapes if isinstance(shape, Text)]
    assert "no node is known" in texts
