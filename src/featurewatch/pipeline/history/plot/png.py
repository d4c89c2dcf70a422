"""Renders a drawing as PNG; equal drawings give equal bytes.

It calls matplotlib's renderer directly: figures and axes, which a finished layout does not need,
take longer to import than the plot takes to draw.
"""

from io import BytesIO
from typing import Any, Final

from featurewatch.pipeline.history.plot.shapes import LIGHT, Drawing, Line, Rect, Shape, Text, Tone

SCALE: Final = 1.44
"""Pixels of the image per pixel of the drawing."""
_POINTS: Final = 72.0
_ANCHOR_OFFSETS: Final = {"start": 0.0, "middle": 0.5, "end": 1.0}


def png(drawing: Drawing) -> bytes:
    """Returns the bytes of the image, on a light page."""
    from matplotlib import rc_context
    from PIL import Image

    # Overrides the user's own matplotlibrc.
    with rc_context({"hatch.linewidth": 1.0, "path.simplify": False, "text.hinting": "default"}):
        pixels = _Canvas(drawing).drawn()
    out = BytesIO()
    Image.fromarray(pixels).convert("RGB").save(out, "PNG", compress_level=6)
    return out.getvalue()


class _Canvas:
    """A page of matplotlib's renderer. Its y axis points up and its unit is the point; at this
    resolution a point is a pixel."""

    def __init__(self, drawing: Drawing) -> None:
        from matplotlib.backends.backend_agg import RendererAgg
        from matplotlib.font_manager import FontProperties

        self._drawing = drawing
        self._height = round(drawing.height * SCALE)
        width = round(drawing.width * SCALE)
        self._renderer: Any = RendererAgg(width, self._height, _POINTS)
        self._font = FontProperties
        self._rect(Rect(0, 0, drawing.width, drawing.height, LIGHT[Tone.PAGE]))

    def drawn(self) -> Any:
        """Draws all shapes and returns the pixels."""
        import numpy as np

        for shape in self._drawing.shapes:
            self._draw(shape)
        return np.asarray(self._renderer.buffer_rgba())

    def _draw(self, shape: Shape) -> None:
        match shape:
            case Rect():
                if shape.fill != "none":
                    self._rect(shape)
            case Line():
                self._line(shape)
            case Text():
                self._text(shape)

    def _rect(self, rect: Rect) -> None:
        left, right = rect.x, rect.x + rect.width
        top, bottom = rect.y, rect.y + rect.height
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        graphics = self._graphics("white", 0.8 if rect.hatched else 0)
        if rect.hatched:
            graphics.set_hatch("///")
            graphics.set_hatch_color((1.0, 1.0, 1.0, 1.0))
        self._path(graphics, corners, _rgba(rect.fill))

    def _line(self, line: Line) -> None:
        graphics = self._graphics(_colour(line.tone), line.width * SCALE)
        graphics.set_joinstyle("miter")
        graphics.set_capstyle("projecting" if line.width > 1 else "butt")
        self._path(graphics, line.points, None)

    def _text(self, text: Text) -> None:
        weight = "bold" if text.bold else "normal"
        font = self._font(family="DejaVu Sans", weight=weight, size=text.size * SCALE)
        width, _, _ = self._renderer.get_text_width_height_descent(text.text, font, ismath=False)
        x = text.x * SCALE - width * _ANCHOR_OFFSETS[text.anchor]
        # The baseline, from the middle of lower-case letters.
        y = (text.y + 0.35 * text.size) * SCALE
        self._renderer.draw_text(self._graphics(_colour(text.fill), 1), x, y, text.text, font, 0)

    def _graphics(self, colour: str, width: float) -> Any:
        graphics = self._renderer.new_gc()
        graphics.set_foreground(colour)
        graphics.set_linewidth(width)
        graphics.set_antialiased(True)
        graphics.set_snap(None)
        return graphics

    def _path(self, graphics: Any, points: Any, fill: Any) -> None:
        from matplotlib.path import Path
        from matplotlib.transforms import IdentityTransform

        path = Path([(x * SCALE, self._height - y * SCALE) for x, y in points])
        self._renderer.draw_path(graphics, path, IdentityTransform(), fill)


def _colour(fill: str) -> str:
    return next((colour for tone, colour in LIGHT.items() if tone == fill), fill)


def _rgba(fill: str) -> tuple[float, float, float, float]:
    colour = _colour(fill)
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue, 1.0
