"""Renders a picture of a roll as one SVG file, as the page draws it.

It loads nothing and runs nothing; it follows the reader's light or dark setting. Equal pictures
give equal bytes.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from featurewatch.controller.levels import finalized_name
from featurewatch.monitor.roll_picture.model import (
    AlertMark,
    Band,
    Condition,
    RollPicture,
    Software,
)
from featurewatch.pipeline.history.moments import format_time
from featurewatch.pipeline.history.plot.roll import time_of
from featurewatch.pipeline.history.plot.roll_template import FILE
from featurewatch.pipeline.history.plot.shapes import rgb, text_width
from featurewatch.pipeline.history.plot.time_axis import ticks

WIDTH: Final = 1400
LEFT: Final = 130
RIGHT: Final = WIDTH - 16
_TOP: Final = 148
_AXIS: Final = 62
_LABEL_ROWS: Final = 3
_SIZE: Final = 12
_COLOURS: Final = {"light": ("#86681a", "#0066a8"), "dark": ("#c9a44a", "#56b4e9")}
"""The colours of the oldest and the newest software."""

_LAST: Final = (Condition.SILENT, Condition.FENCED, Condition.AWAY)
"""Drawn over the others, as they are short."""


class _Scale:
    """The places of times and rows."""

    def __init__(self, picture: RollPicture) -> None:
        self.picture = picture
        count = max(len(picture.bands), 1)
        self.row = max(2, min(20, 640 // count))
        self.inner = self.row - 3 if self.row > 8 else self.row - 1 if self.row > 3 else self.row
        self.tops: list[int] = []
        y, role = _TOP, None
        for band in picture.bands:
            y += 8 if role not in (None, band.role) else 0
            role = band.role
            self.tops.append(y)
            y += self.row
        self.bottom = y + 2

    def x(self, at_ms: int) -> float:
        """The place of a time, within the drawing."""
        begin, end = self.picture.begin_ms, self.picture.end_ms
        part = (at_ms - begin) / max(end - begin, 1)
        return round(LEFT + (RIGHT - LEFT) * min(max(part, 0.0), 1.0), 1)


def svg(picture: RollPicture) -> str:
    """Returns the file's text."""
    scale = _Scale(picture)
    legend = [*_legend(picture, scale.bottom + 26)]
    height = scale.bottom + 26 + 24 * (1 + len(legend) // 8)
    body = "\n".join(
        [
            *_head(picture),
            *_axis(scale),
            *_names(scale),
            *_bands(scale),
            *_unknown(scale),
            *_levels(scale),
            *_alerts(scale),
            *legend,
        ]
    )
    return FILE.format(
        width=WIDTH,
        height=height,
        title=escape(f"Roll of Kafka cluster {picture.cluster}"),
        about=escape(_about(picture)),
        light=_shades(len(picture.software), "light"),
        dark=_shades(len(picture.software), "dark"),
        body=body,
    )


def _about(picture: RollPicture) -> str:
    """The picture in words."""
    counts = ", ".join(f"{count} spans {name}" for name, count in picture.conditions().items())
    lines = [
        f"{len(picture.bands)} nodes from {format_time(time_of(picture.begin_ms))} to "
        f"{format_time(time_of(picture.end_ms))} UTC: {counts}.",
        *(f"{format_time(time_of(item.at_ms))}: {item.reason}" for item in picture.no_return),
        *picture.notes,
    ]
    return " ".join(lines)


def _head(picture: RollPicture) -> Iterator[str]:
    times = " to ".join(
        format_time(time_of(at_ms)).partition(".")[0]
        for at_ms in (picture.begin_ms, picture.end_ms)
    )
    yield _text(16, 28, picture.cluster, "title")
    parts = [f"{times} UTC", f"{len(picture.bands)} nodes", *picture.notes]
    yield _text(16, 48, "  ·  ".join(parts), "soft")


def _axis(scale: _Scale) -> Iterator[str]:
    begin, end = (time_of(ms) for ms in (scale.picture.begin_ms, scale.picture.end_ms))
    for at, label in ticks(begin, end, 12):
        x = scale.x(round(at.timestamp() * 1000))
        yield f'<line class="tick" x1="{x}" x2="{x}" y1="{_AXIS + 16}" y2="{scale.bottom}"/>'
        if x + text_width(label, _SIZE) / 2 <= WIDTH:
            yield _text(x, _AXIS + 12, label, "soft", "middle")


def _names(scale: _Scale) -> Iterator[str]:
    last = -100.0
    for band, top in zip(scale.picture.bands, scale.tops, strict=True):
        middle = top + scale.inner / 2
        if middle - last >= _SIZE + 1:
            last = middle
            yield _text(LEFT - 8, middle + 4, f"{band.role} {band.node_id}", "soft", "end")


def _bands(scale: _Scale) -> Iterator[str]:
    """One path for each look, however many spans have it."""
    software = {item: place for place, item in enumerate(scale.picture.software)}
    paths: dict[tuple[Condition, int], list[str]] = defaultdict(list)
    labels: list[str] = []
    for band, top in zip(scale.picture.bands, scale.tops, strict=True):
        _draw(scale, band, top, software, paths, labels)
    order = sorted(paths, key=lambda look: (look[0] in _LAST, *look))
    for condition, place in order:
        path = "".join(paths[condition, place])
        if condition is Condition.AWAY:
            yield f'<path class="away" d="{path}"/>'
            continue
        faint = " faint" if condition is Condition.REGISTERED else ""
        yield f'<path class="s{place}{faint}" d="{path}"/>'
        if condition in _LAST:
            yield f'<path fill="url(#{condition})" d="{path}"/>'
    yield from labels


def _draw(
    scale: _Scale,
    band: Band,
    top: int,
    software: Mapping[Software, int],
    paths: dict[tuple[Condition, int], list[str]],
    labels: list[str],
) -> None:
    drawn: dict[tuple[Condition, int], float] = {}
    for begin, end, state in band.spans:
        x, right = scale.x(begin), max(scale.x(end), scale.x(begin) + 1)
        look = state.condition, software.get(state.software, -1)
        if right <= drawn.get(look, 0.0):
            continue  # within a pixel that is drawn
        drawn[look] = right
        if state.condition is Condition.AWAY:
            paths[look].append(f"M{x:g} {top + scale.inner / 2:g}H{right:g}")
            continue
        paths[look].append(f"M{x:g} {top}H{right:g}v{scale.inner}H{x:g}z")
        name = state.software.name
        if scale.inner >= _SIZE and right - x > text_width(name, _SIZE) + 8:
            kind = "" if state.condition is Condition.REGISTERED else "on"
            labels.append(_text(x + 5, top + scale.inner / 2 + 4, name, kind))


def _unknown(scale: _Scale) -> Iterator[str]:
    """All that is not known; a known moment is a pixel wide at least."""
    edge, top = float(LEFT), _TOP
    gaps = []
    for begin, end in scale.picture.known:
        x = scale.x(begin)
        if x > edge:
            gaps.append((edge, x))
        edge = max(edge, scale.x(end), x + 1)
    if edge < RIGHT:
        gaps.append((edge, float(RIGHT)))
    for x, right in gaps:
        box = f'x="{x:g}" y="{top}" width="{right - x:g}" height="{scale.bottom - top}"'
        yield f'<rect fill="url(#unknown)" {box}/>'
        if right - x > 70:
            yield _text((x + right) / 2, (top + scale.bottom) / 2 + 4, "unknown", "gap", "middle")


def _levels(scale: _Scale) -> Iterator[str]:
    picture = scale.picture
    marks = [
        (item.at_ms, True, "no way back" if item.known else "a way back is not known", item.reason)
        for item in picture.no_return
    ]
    for change in picture.levels:
        text = f"{change.feature} {finalized_name(change.feature, change.after)}"
        marks.append((change.at_ms, False, text, text))
    ends = [0.0] * _LABEL_ROWS
    for at_ms, is_end, text, tip in sorted(marks, key=lambda mark: (mark[0], not mark[1])):
        x, width = scale.x(at_ms), text_width(text, _SIZE, bold=is_end)
        start = x + 4 if x + 4 + width <= RIGHT else x - 4 - width
        row = next((row for row, end in enumerate(ends) if start > end + 6), None)
        top = _AXIS + 18 + 14 * (row or 0)
        kind = "level end" if is_end else "level"
        title = escape(f"{format_time(time_of(at_ms))} UTC\n{tip}")
        yield f'<g class="{kind}"><title>{title}</title>'
        yield f'<line x1="{x}" x2="{x}" y1="{top}" y2="{scale.bottom}"/>'
        if row is not None:
            ends[row] = max(start, x) + width
            yield _text(start, top + 10, text, "")
        yield "</g>"


def _alerts(scale: _Scale) -> Iterator[str]:
    rows = {
        (band.role, band.node_id): top
        for band, top in zip(scale.picture.bands, scale.tops, strict=True)
    }
    for alert in scale.picture.alerts:
        y = _TOP - 24 if alert.severity == "critical" else _TOP - 12
        x = scale.x(alert.begin_ms)
        right = scale.x(scale.picture.end_ms if alert.end_ms is None else alert.end_ms)
        yield f'<g class="alarm {alert.severity}"><title>{_tip(alert)}</title>'
        yield f'<rect x="{x}" y="{y + 2}" width="{max(right - x, 3):g}" height="2"/>'
        cross, triangle = "l8 8m0 -8l-8 8", "m0 8h8l-4 -8z"
        shape = cross if alert.severity == "critical" else triangle
        yield f'<path d="M{x - 4:g} {y - 1}{shape}"/>'
        top = rows.get(alert.node) if alert.node else None
        if top is not None and scale.row >= 8:
            yield f'<circle cx="{x}" cy="{top + scale.inner / 2:g}" r="3.5"/>'
        yield "</g>"


def _tip(alert: AlertMark) -> str:
    until = "fires" if alert.end_ms is None else f"until {format_time(time_of(alert.end_ms))}"
    return escape(f"{format_time(time_of(alert.begin_ms))}, {until}\n{alert.summary}")


def _legend(picture: RollPicture, y: int) -> Iterator[str]:
    conditions = picture.conditions()
    keys = [
        (f'class="s{place}"', f"Kafka {item.name}" if item.name[:1].isdigit() else item.name)
        for place, item in enumerate(picture.software)
    ]
    keys += [
        (f'fill="url(#{name})"', str(name))
        for name in (Condition.FENCED, Condition.SILENT)
        if name in conditions
    ]
    if Condition.REGISTERED in conditions:
        keys.append(('class="s0 faint"', "registered, fencing not known"))
    if Condition.AWAY in conditions:
        keys.append(('class="thin"', "away"))
    keys.append(('fill="url(#unknown)"', "unknown"))
    x = float(LEFT)
    for attributes, text in keys:
        width = text_width(text, _SIZE) + 42
        if x + width > RIGHT:
            x, y = float(LEFT), y + 24
        yield (
            f'<rect {attributes} x="{x:g}" y="{y - 10}" width="22" height="12"/>'
            f"{_text(x + 28, y, text, '')}"
        )
        x += width


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    end = "" if anchor == "start" else f' text-anchor="{anchor}"'
    class_ = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{class_}{end}>{escape(text)}</text>'


def _shades(count: int, scheme: str) -> str:
    """The colours of software from the oldest to the newest."""
    old, new = (rgb(colour) for colour in _COLOURS[scheme])
    rules = []
    for place in range(count):
        part = 1.0 if count == 1 else place / (count - 1)
        mixed = (round(a + (b - a) * part) for a, b in zip(old, new, strict=True))
        rules.append(f".s{place} {{ fill: #{''.join(f'{value:02x}' for value in mixed)}; }}")
    return " ".join(rules)
