"""The elements of a drawing: shapes in pixels from the top left, and colours by their meaning.

A drawing is laid out once; `png` and `html_page` only render its shapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final


class Tone(StrEnum):
    """A colour by its meaning, with one value for light pages and one for dark ones."""

    PAGE = "page"
    INK = "ink"
    SOFT = "soft"
    GRID = "grid"
    BAND = "band"
    LINE = "line"
    BAD = "bad"


LIGHT: Final = {
    Tone.PAGE: "#ffffff",
    Tone.INK: "#1b1f24",
    Tone.SOFT: "#59636e",
    Tone.GRID: "#d8dee4",
    Tone.BAND: "#e7ecf2",
    Tone.LINE: "#0072b2",
    Tone.BAD: "#d55e00",
}
DARK: Final = {
    Tone.PAGE: "#12161b",
    Tone.INK: "#e6edf3",
    Tone.SOFT: "#9aa5b1",
    Tone.GRID: "#2d343c",
    Tone.BAND: "#222a33",
    Tone.LINE: "#56b4e9",
    Tone.BAD: "#ff8a3d",
}
"""Blue and vermilion are those of Okabe and Ito, which people with any kind of colour vision can
tell apart."""

_VIRIDIS: Final = ("#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30")


def shades(count: int) -> list[str]:
    """Returns ``count`` colours from dark to light, whose order shows without colour vision too.

    They are parts of viridis, by van der Walt and Smith, without the ends that a page may hide.
    """
    last = len(_VIRIDIS) - 1
    if count == 1:
        return [_VIRIDIS[last // 2]]
    return [_between(index * last / (count - 1)) for index in range(count)]


def _between(position: float) -> str:
    low = min(int(position), len(_VIRIDIS) - 2)
    fraction = position - low
    mixed = (
        round(before + (after - before) * fraction)
        for before, after in zip(rgb(_VIRIDIS[low]), rgb(_VIRIDIS[low + 1]), strict=True)
    )
    return "#" + "".join(f"{value:02x}" for value in mixed)


def rgb(colour: str) -> tuple[int, int, int]:
    """Returns red, green and blue of a colour like ``#0072b2``, each up to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def on(colour: str) -> str:
    """Returns black or white, whichever is more readable on a colour."""
    red, green, blue = rgb(colour)
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 130 else "#ffffff"


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle; ``fill`` is a tone or a colour. ``hatched``: with hatching and a border.

    ``tip`` is the tooltip on a page, with one fact per line.
    """

    x: float
    y: float
    width: float
    height: float
    fill: str
    hatched: bool = False
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; ``width`` is in pixels."""

    points: tuple[tuple[float, float], ...]
    tone: str
    width: float
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text; ``anchor`` is start, middle or end, and ``y`` is its vertical middle."""

    x: float
    y: float
    text: str
    size: float
    fill: str = Tone.INK
    anchor: str = "start"
    bold: bool = False


Shape = Rect | Line | Text


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes in drawing order.

    Time runs from ``begin`` at x = ``left`` to ``end`` at x = ``right``; the line under the pointer
    runs from y = ``top`` to y = ``bottom``.
    """

    title: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    begin: datetime
    end: datetime
    shapes: Sequence[Shape]


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Estimates the width of a text in pixels, rather too wide."""
    return len(text) * size * (0.6 if bold else 0.56)
