"""The table of docs/reference/bench.md, with the figures of a run and the machine that it ran on.

A row has the measure, its value, its baseline, their ratio, what it must reach, and the day. What
must be reached has a unit if the value counts, and none if the ratio does (or the value, where
there is no baseline).
"""

import os
import platform
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from featurewatch.kafka.releases import newest_patch
from tests.paths import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "bench.md"
_ROW: Final = re.compile(r"^\| `(\w+)`(.*?) \|(?:[^|]*\|){3} ([^|]*?) \|(?:[^|]*\|)?$")
_MACHINE: Final = re.compile(r"^The machine: .*?\n(?=\n)", re.MULTILINE | re.DOTALL)
_TARGET: Final = re.compile(r"([≥≤]) ([\d,.]+)( [A-Za-z]+)?")

Measure = Mapping[str, Any]


def with_measures(text: str, measures: Iterable[Measure], day: str) -> str:
    """Returns the page with these measures in their rows.

    Raises:
        ValueError: A measure has no row.
    """
    by_name = {measure["measure"]: measure for measure in measures}
    lines = text.split("\n")
    for at, line in enumerate(lines):
        match = _ROW.match(line)
        measure = by_name.pop(match[1], None) if match else None
        if match is None or measure is None:
            continue
        figures = [_number(measure.get(name)) for name in ("value", "baseline", "ratio")]
        if is_missed(match[3], measure):
            figures[2 if figures[2] else 0] += ", missed"
        cells = (f"`{match[1]}`{match[2]}", *figures, match[3], day)
        lines[at] = f"| {' | '.join(cells)} |"
    if by_name:
        raise ValueError(f"docs/reference/bench.md has no row for {', '.join(by_name)}")
    return "\n".join(lines)


def is_missed(target: str, measure: Measure) -> bool:
    """Whether a measure does not reach its target; not where the target is no bound."""
    match = _TARGET.match(target)
    if match is None:
        return False
    ratio = measure.get("ratio")
    figure = measure["value"] if match[3] or ratio is None else ratio
    bound = float(match[2].replace(",", ""))
    return bool(figure < bound if match[1] == "≥" else figure > bound)


def write(measures: Iterable[Measure]) -> None:
    """Puts the measures of a run, this machine and the day into the page.

    Raises:
        ValueError: A measure has no row; then nothing is written.
    """
    text = with_measures(PAGE.read_text(), measures, f"{datetime.now(UTC):%Y-%m-%d}")
    PAGE.write_text(_MACHINE.sub(f"The machine: {_machine()}\n", text))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return (
        f"{os.cpu_count()} cores ({cpu[1] if cpu else platform.machine()}), {memory:.0f} GiB,\n"
        f"Python {platform.python_version()}, Kafka {newest_patch()}."
    )
