"""The frame of an SVG file of rolls: its styles for light and dark pages, and its patterns."""

from typing import Final

FILE: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
width="{width}" height="{height}" role="img" aria-labelledby="title about">
<title id="title">{title}</title>
<desc id="about">{about}</desc>
<style>
svg {{ --back: #ffffff; --text: #16191d; --dim: #555d68; --line: #8a93a0; --faint: #d5dae1;
  --raised: #f3f5f8; --bad: #a83f00; --warn: #7a5200; --unknown: #6b3fa0;
  background: var(--back); }}
{light}
@media (prefers-color-scheme: dark) {{
svg {{ --back: #14171b; --text: #e8ebef; --dim: #a4adb9; --line: #7d8794; --faint: #343b45;
  --raised: #1d2127; --bad: #ff9d66; --warn: #f0c04a; --unknown: #cda9f5; }}
{dark}
}}
text {{ font: 12px "DejaVu Sans", Verdana, system-ui, sans-serif; fill: var(--text); }}
.title {{ font-size: 20px; font-weight: 700; }} .soft {{ fill: var(--dim); }}
.on {{ fill: var(--back); pointer-events: none; }} .faint {{ fill-opacity: .6; }}
.gap {{ fill: var(--unknown); font-weight: 700; paint-order: stroke; stroke: var(--raised);
  stroke-width: 6px; }}
.tick {{ stroke: var(--faint); }} .ground {{ fill: var(--raised); }} .dot {{ fill: var(--line); }}
.stripe {{ fill: var(--back); }} .away {{ fill: none; stroke: var(--line); stroke-width: 1.5; }}
.thin {{ fill: none; stroke: var(--line); stroke-dasharray: 2 2; }}
.level line {{ stroke: var(--text); stroke-width: 1.2; stroke-dasharray: 4 3; }}
.level.end line {{ stroke: var(--bad); stroke-width: 3; stroke-dasharray: none; }}
.level.end text {{ fill: var(--bad); font-weight: 700; }}
.alarm rect, .alarm path {{ fill: var(--warn); }} .critical rect {{ fill: var(--bad); }}
.critical path {{ fill: none; stroke: var(--bad); stroke-width: 2.4; }}
.alarm circle {{ fill: var(--back); stroke: var(--warn); stroke-width: 2; }}
.critical circle {{ stroke: var(--bad); }}
</style>
<defs>
<pattern id="unknown" width="6" height="6" patternUnits="userSpaceOnUse">\
<rect width="6" height="6" class="ground"/><circle cx="1.5" cy="1.5" r="1" class="dot"/>\
<circle cx="4.5" cy="4.5" r="1" class="dot"/></pattern>
<pattern id="fenced" width="6" height="6" patternUnits="userSpaceOnUse" \
patternTransform="rotate(45)"><rect width="3.4" height="6" class="stripe"/></pattern>
<pattern id="silent" width="4" height="4" patternUnits="userSpaceOnUse">\
<rect width="4" height="2.4" class="stripe"/></pattern>
</defs>
{body}
</svg>
"""
