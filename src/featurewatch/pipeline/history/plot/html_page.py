"""Renders a drawing as one self-contained HTML page: SVG, styles and a small script."""

from html import escape
from typing import Final

from featurewatch.pipeline.history.plot.html_script import SCRIPT
from featurewatch.pipeline.history.plot.shapes import (
    DARK,
    LIGHT,
    Drawing,
    Line,
    Rect,
    Shape,
    Text,
    Tone,
)


def html(drawing: Drawing) -> str:
    """Returns the page; it follows the light or dark setting of the reader's system."""
    body = "\n".join(map(_shape, drawing.shapes))
    scale = {
        "left": drawing.left,
        "right": drawing.right,
        "top": drawing.top,
        "bottom": drawing.bottom,
        "begin": drawing.begin.timestamp() * 1000,
        "end": drawing.end.timestamp() * 1000,
    }
    scale_attributes = " ".join(f'data-{name}="{value:.0f}"' for name, value in scale.items())
    return _PAGE.format(
        title=escape(drawing.title),
        light=_tones(LIGHT),
        dark=_tones(DARK),
        style=_STYLE,
        size=f'viewBox="0 0 {drawing.width:g} {drawing.height:g}"',
        scale=scale_attributes,
        body=body,
        script=SCRIPT,
    )


def _tones(colours: dict[Tone, str]) -> str:
    return " ".join(f"--{tone}: {colour};" for tone, colour in colours.items())


def _shape(shape: Shape) -> str:
    match shape:
        case Rect():
            box = f'x="{shape.x:g}" y="{shape.y:g}" width="{shape.width:g}"'
            box += f' height="{shape.height:g}"{_tip(shape.tip)}'
            if shape.hatched:
                return f'<rect {box} class="bad"/><rect {box} fill="url(#hatch)"/>'
            if shape.fill == "none":
                return f'<rect {box} fill="none" pointer-events="all"/>'
            return f"<rect {box} {_paint('fill', shape.fill)}/>"
        case Line():
            points = " ".join(f"{x:g},{y:g}" for x, y in shape.points)
            width = f'stroke-width="{shape.width:g}"'
            return f'<polyline points="{points}" {_paint("stroke", shape.tone)} {width}/>'
        case Text():
            anchor = "" if shape.anchor == "start" else f' text-anchor="{shape.anchor}"'
            bold = ' font-weight="bold"' if shape.bold else ""
            y = shape.y + 0.35 * shape.size  # ``shape.y`` is the middle of lower-case letters
            attributes = f'x="{shape.x:g}" y="{y:g}" font-size="{shape.size:g}"{anchor}{bold}'
            return f"<text {attributes} {_paint('fill', shape.fill)}>{escape(shape.text)}</text>"


def _paint(property_: str, colour: str) -> str:
    is_tone = colour in {str(tone) for tone in Tone}
    return f'style="{property_}: var(--{colour})"' if is_tone else f'{property_}="{colour}"'


def _tip(text: str) -> str:
    return f' data-tip="{escape(text)}"'.replace("\n", "&#10;") if text else ""


_STYLE: Final = """
body { margin: 0; background: var(--page); color: var(--ink);
  font-family: "DejaVu Sans", Verdana, system-ui, sans-serif; }
svg { display: block; width: 100%; max-width: 1800px; margin: 0 auto; }
text { pointer-events: none; }
polyline { fill: none; pointer-events: none; stroke-linejoin: miter; }
.bad { fill: var(--bad); stroke: var(--page); stroke-width: 0.8; }
#tip { position: fixed; display: none; max-width: 32em; padding: 0.5em 0.8em; font-size: 12px;
  line-height: 1.5; white-space: pre-line; pointer-events: none; color: var(--ink);
  background: var(--page); border: 1px solid var(--soft); border-radius: 4px;
  box-shadow: 0 2px 8px rgb(0 0 0 / 25%); }
"""
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
{style}</style>
</head>
<body>
<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {scale}>
<title>{title}</title>
<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><line y2="6" stroke="#ffffff" stroke-width="2"/></pattern></defs>
{body}
<line id="now" style="stroke: var(--ink)" stroke-width="0.8" stroke-dasharray="3 3" opacity="0"/>
</svg>
<div id="tip"></div>
<script>{script}</script>
</body>
</html>
"""
