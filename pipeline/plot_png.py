"""A drawing as PNG; the same drawing gives the same bytes."""

from io import BytesIO
from typing import Any

from pipeline.plot_shapes import LIGHT, Drawing, Line, Rect, Text

_DPI = 144
_POINT = 0.72
"""Points of a pixel of the drawing, of which there are a hundred to the inch."""
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def png(drawing: Drawing) -> bytes:
    """The bytes of an image, on a light page."""
    from matplotlib import rc_context

    style = {"font.family": "DejaVu Sans", "hatch.linewidth": 1.0, "path.simplify": False}
    with rc_context(style):
        return _drawn(drawing)


def _drawn(drawing: Drawing) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    width, height = drawing.width, drawing.height
    figure = Figure(figsize=(width / 100, height / 100), dpi=_DPI, facecolor="white")
    canvas: Any = FigureCanvasAgg(figure)
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for order, shape in enumerate(drawing.shapes):
        match shape:
            case Rect(fill="none"):
                continue
            case Rect():
                border: dict[str, Any] = {"linewidth": 0}
                if shape.hatched:
                    border = {"linewidth": 0.8, "edgecolor": "white", "hatch": "////"}
                box = (shape.x, shape.y), shape.width, shape.height
                fill = _colour(shape.fill)
                axes.add_patch(Rectangle(*box, facecolor=fill, zorder=order, **border))
            case Line():
                xs, ys = zip(*shape.points, strict=True)
                line: dict[str, Any] = {
                    "color": _colour(shape.tone),
                    "linewidth": shape.width * _POINT,
                }
                axes.add_line(Line2D(xs, ys, zorder=order, solid_joinstyle="miter", **line))
            case Text():
                axes.text(
                    *(shape.x, shape.y, shape.text.replace("$", r"\$")),
                    fontsize=shape.size * _POINT,
                    color=_colour(shape.fill),
                    ha=_ANCHORS[shape.anchor],
                    va="center_baseline",
                    fontweight="bold" if shape.bold else "normal",
                    zorder=order,
                )
    out = BytesIO()
    # Without the version of what drew it, which would make the same picture another file.
    canvas.print_png(out, metadata={"Software": None})
    return out.getvalue()


def _colour(fill: str) -> str:
    return next((colour for tone, colour in LIGHT.items() if tone == fill), fill)
