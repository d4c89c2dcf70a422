"""Lays out the plot of a cluster's history: levels above, nodes below, on one time axis."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from math import log10
from typing import Final

from featurewatch.controller.levels import finalized_name
from featurewatch.pipeline.history.moments import format_time
from featurewatch.pipeline.history.plot.picture import (
    MAX_RUNS,
    Lane,
    LevelSteps,
    Picture,
    SoftwareLabel,
)
from featurewatch.pipeline.history.plot.shapes import (
    Drawing,
    Line,
    Rect,
    Shape,
    Text,
    Tone,
    on,
    shades,
    text_width,
)
from featurewatch.pipeline.history.plot.time_axis import ticks

WIDTH: Final = 1400
LEFT: Final = 262
RIGHT: Final = WIDTH - 28
TICKS: Final = 12
_FEW_LANES: Final = 36
"""Up to this many lanes are high enough for a name each."""
_RARE: Final = 12
_LABELLED_HEIGHT: Final = 13.0
"""The height of a lane with room for a name."""
_LANES_HEIGHT: Final = 560
_SMALL: Final = 11
_STROKES: Final = {True: (Tone.LINE, 2.4), False: (Tone.SOFT, 1.2)}


class _Page:
    """A drawing that grows downwards."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.back: list[Shape] = []
        self.shapes: list[Shape] = []
        self.y = 0.0
        self._span = (picture.end - picture.begin).total_seconds()
        software = picture.software
        self.colours = dict(zip(software, shades(len(software)), strict=True))

    def x(self, at: datetime) -> float:
        """Returns the x coordinate of a time."""
        fraction = (at - self.picture.begin).total_seconds() / self._span
        return round(LEFT + (RIGHT - LEFT) * min(max(fraction, 0.0), 1.0), 2)

    def text(self, x: float, text: str, size: float = _SMALL, **options: object) -> None:
        """Adds a text at the current y."""
        self.shapes.append(Text(x, self.y, text, size, **options))  # type: ignore[arg-type]


def layout(picture: Picture) -> Drawing:
    """Lays out a picture as a drawing."""
    page = _Page(picture)
    _head(page)
    top = page.y
    _section(page, "Finalized levels")
    for steps in picture.levels:
        _levels(page, steps)
    if not picture.levels:
        _nothing(page, "no level was finalized")
    _section(page, "What nodes support")
    _lanes(page)
    bottom = page.y
    _bands(page, top, bottom)
    _axis(page, top, bottom)
    _legend(page)
    title = f"Feature levels of Kafka cluster {picture.cluster}"
    return Drawing(
        *(title, WIDTH, page.y, LEFT, RIGHT, top, bottom, picture.begin, picture.end),
        (*page.back, *page.shapes),
    )


def _head(page: _Page) -> None:
    picture = page.picture
    page.y = 30
    page.text(24, picture.cluster, 20, bold=True)
    changes = sum(len(steps.steps) - 1 for steps in picture.levels)
    bad = sum(len(lane.nodes) for lane in picture.lanes if lane.bad)
    texts = [
        f"{format_time(picture.begin).partition('.')[0]} to "
        f"{format_time(picture.end).partition('.')[0]} UTC",
        _count(picture.nodes, "node"),
        _count(changes, "change") + " of levels",
        _count(len(picture.rolls), "roll"),
        f"{_count(bad, 'node')} incompatible at some time",
    ]
    page.y = 56
    page.text(24, "  ·  ".join(texts), 12, fill=Tone.SOFT)
    page.y = 76


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _section(page: _Page, title: str) -> None:
    page.y += 20
    page.text(24, title, 13, bold=True)
    page.y += 18


def _nothing(page: _Page, text: str) -> None:
    page.text(LEFT, text, 12, fill=Tone.SOFT)
    page.y += 16


def _levels(page: _Page, steps: LevelSteps) -> None:
    """Draws a step line; its rows are the levels that occur, at equal distances."""
    picture = page.picture
    rows = sorted({level for _, level in steps.steps}, key=lambda it: -1 if it is None else it)
    row_height = 20 if len(rows) <= 14 else 280 / len(rows)
    top = page.y + 8
    height = {level: top + (len(rows) - 1 - index) * row_height for index, level in enumerate(rows)}
    page.shapes.append(Text(24, top, steps.feature, _SMALL, bold=True))
    for level in rows:
        label = finalized_name(steps.feature, level)
        room = LEFT - 38 - text_width(steps.feature, _SMALL, bold=True)
        page.back.append(Line(((LEFT, height[level]), (RIGHT, height[level])), Tone.GRID, 0.6))
        if height[level] > top + 10 or text_width(label, _SMALL) < room:
            page.shapes.append(Text(LEFT - 10, height[level], label, _SMALL, Tone.SOFT, "end"))
    ends = [*(at for at, _ in steps.steps[1:]), picture.end]
    previous: tuple[tuple[float, float], ...] = ()
    for (at, level), end in zip(steps.steps, ends, strict=True):
        y = height[level]
        # The vertical part belongs to the new level; what is not finalized is drawn faintly.
        page.shapes.append(
            Line((*previous, (page.x(at), y), (page.x(end), y)), *_STROKES[level is not None])
        )
        previous = ((page.x(end), y),)
    for (at, level), end in zip(steps.steps, ends, strict=True):
        tip = f"{steps.feature} {finalized_name(steps.feature, level)}\n{_span(at, end, picture)}"
        box = (page.x(at), height[level] - 6, max(page.x(end) - page.x(at), 1), 12)
        page.shapes.append(Rect(*box, "none", tip=tip))
    page.y = top + (len(rows) - 1) * row_height + 16


def _span(begin: datetime, end: datetime, picture: Picture) -> str:
    since = (
        f"since {format_time(begin)}" if begin > picture.begin else f"before {format_time(begin)}"
    )
    return since if end >= picture.end else f"{since}, until {format_time(end)}"


def _lanes(page: _Page) -> None:
    lanes = page.picture.lanes
    if not lanes:
        _nothing(page, "no node is known")
        return
    heights = _heights(lanes)
    last_label_y = -100.0
    role = ""
    for lane, height in zip(lanes, heights, strict=True):
        if role and lane.role != role:
            page.y += 8
        role = lane.role
        inner = height - (4 if height > 12 else 1 if height > 5 else 0)
        middle = page.y + inner / 2
        if middle - last_label_y >= _SMALL + 2:
            page.shapes.append(Text(LEFT - 10, middle, _label(lane), _SMALL, Tone.SOFT, "end"))
            last_label_y = middle
        _bars(page, lane, inner)
        page.y += height
    page.y += 4


def _label(lane: Lane) -> str:
    """The lane's title, shortened to the available width."""
    count = f" ({len(lane.nodes):,})" if len(lane.nodes) > 2 else ""
    shown_runs = MAX_RUNS
    while True:
        title = lane.title(shown_runs) + count
        if text_width(title, _SMALL) <= LEFT - 30 or shown_runs == 1:
            return title
        shown_runs -= 1


def _heights(lanes: Sequence[Lane]) -> list[float]:
    """The heights of lanes. Lanes of many nodes are higher. If there are many lanes they are low,
    except for roles with few lanes, and for excluded nodes if they are few."""
    if len(lanes) <= _FEW_LANES:
        return [18 + 10 * log10(len(lane.nodes)) for lane in lanes]
    low_height = max(_LANES_HEIGHT / len(lanes), 1.0)
    roles = Counter(lane.role for lane in lanes)
    bad = sum(1 for lane in lanes if lane.bad)
    return [
        max(low_height, _LABELLED_HEIGHT)
        if roles[lane.role] <= _RARE or (lane.bad and bad <= _RARE)
        else low_height
        for lane in lanes
    ]


def _bars(page: _Page, lane: Lane, height: float) -> None:
    for bar in lane.bars:
        x, width = page.x(bar.begin), max(page.x(bar.end) - page.x(bar.begin), 1)
        colour, name = page.colours[bar.software], bar.software.name
        tip = (
            f"{lane.title()}\n{_supports(bar.software)}\n{_span(bar.begin, bar.end, page.picture)}"
        )
        page.shapes.append(Rect(x, page.y, width, height, colour, tip=tip))
        if height >= 12 and width > text_width(name, _SMALL) + 8:
            page.shapes.append(Text(x + 6, page.y + height / 2, name, _SMALL, on(colour)))
    for previous, bar in pairwise(lane.bars):
        if height > 5 and previous.end == bar.begin:
            x = page.x(bar.begin)
            page.shapes.append(Line(((x, page.y), (x, page.y + height)), Tone.PAGE, 1))
    for bar in lane.bad:
        x, width = page.x(bar.begin), max(page.x(bar.end) - page.x(bar.begin), 4)
        tip = (
            f"{lane.title()}: incompatible\n{bar.reason}\n{_span(bar.begin, bar.end, page.picture)}"
        )
        page.shapes.append(Rect(x, page.y, width, height, Tone.BAD, hatched=True, tip=tip))


def _supports(software: SoftwareLabel) -> str:
    return f"Kafka {software.name}" if software.name[:1].isdigit() else software.name


def _bands(page: _Page, top: float, bottom: float) -> None:
    """Draws the rolls behind everything else, with their names above if there is room."""
    free_x = 0.0
    for roll in page.picture.rolls:
        x, end = page.x(roll.begin), page.x(roll.end)
        tip = f"{roll.title}: {roll.state}\n{format_time(roll.begin)} to {format_time(roll.end)}"
        box = (x - 1, top, max(end - x, 1) + 2, bottom - top)
        page.back.append(Rect(*box, Tone.BAND, tip=tip))
        half_width = text_width(roll.title, _SMALL) / 2
        middle = min(max((x + end) / 2, LEFT + half_width), RIGHT - half_width)
        if middle - half_width > free_x:
            text = Text(middle, top + 8, roll.title, _SMALL, Tone.SOFT, "middle")
            page.shapes.append(text)
            free_x = middle + half_width + 8


def _axis(page: _Page, top: float, bottom: float) -> None:
    page.back.append(Line(((LEFT, bottom), (RIGHT, bottom)), Tone.SOFT, 1))
    page.y = bottom + 14
    for at, text in ticks(page.picture.begin, page.picture.end, TICKS):
        x = page.x(at)
        page.back.append(Line(((x, top + 18), (x, bottom + 5)), Tone.GRID, 0.8))
        if x + text_width(text, _SMALL) / 2 <= WIDTH - 4:
            page.text(x, text, fill=Tone.SOFT, anchor="middle")
    page.y += 10


def _legend(page: _Page) -> None:
    page.y += 20
    x = float(LEFT)
    for shape, text in _keys(page):
        width = text_width(text, _SMALL) + 40
        if x + width > RIGHT and x > LEFT:
            x, page.y = float(LEFT), page.y + 20
        page.shapes.append(Rect(x, page.y - 6, 18, 12, shape.fill, shape.hatched))
        page.text(x + 24, text)
        x += width
    page.y += 24


def _keys(page: _Page) -> Iterator[tuple[Rect, str]]:
    for software, colour in page.colours.items():
        yield Rect(0, 0, 0, 0, colour), _supports(software)
    if any(lane.bad for lane in page.picture.lanes):
        yield Rect(0, 0, 0, 0, Tone.BAD, hatched=True), "excluded by a finalized level"
    if page.picture.rolls:
        yield Rect(0, 0, 0, 0, Tone.BAND), "the cluster is rolled"
