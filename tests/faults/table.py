"""The table of rows: for a terminal, as Markdown, and as JSON. Pure."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from tests.faults.verdict import Verdict

COLUMNS: Final = (
    "row",
    "repeats",
    "held",
    "lost",
    "doubled",
    "contradicted",
    "state wrong",
    "false alerts",
    "stuck alerts",
    "seconds to recover",
    "besides",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the verdicts of its runs; none: it was not run."""

    name: str
    about: str
    verdicts: tuple[Verdict, ...]

    @property
    def held(self) -> int:
        """How many runs held."""
        return sum(not verdict.failures for verdict in self.verdicts)

    def cells(self) -> list[str]:
        """The row's cells; counts are sums over all runs."""
        if not self.verdicts:
            return [self.name, "0", "not run", *[""] * 8]
        runs = self.verdicts
        counts = [
            str(sum(getattr(run, name) for run in runs))
            for name in ("lost", "doubled", "contradicted", "state_wrong")
        ]
        return [
            self.name,
            str(len(runs)),
            str(self.held),
            *counts,
            _names(run.false_alerts for run in runs),
            _names(run.stuck_alerts for run in runs),
            _seconds([run.recovered_s for run in runs]),
            _names(run.notes for run in runs),
        ]


def _names(found: Iterable[Sequence[str]]) -> str:
    return ", ".join(sorted({name for names in found for name in names})) or "0"


def _seconds(seconds: Sequence[float | None]) -> str:
    """Median and greatest; ``never`` if one run did not recover."""
    known = sorted(value for value in seconds if value is not None)
    never = len(seconds) - len(known)
    if not known:
        return "never"
    text = f"{statistics.median(known):.1f}"
    text += f" (max {known[-1]:.1f})" if len(known) > 1 else ""
    return text + (f", never {never}×" if never else "")


def terminal(rows: Sequence[Row]) -> str:
    """Columns of equal width; failing rows begin with a mark."""
    lines = [list(COLUMNS), *(row.cells() for row in rows)]
    marks = ["  ", *("  " if row.held == len(row.verdicts) else "! " for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(COLUMNS))]
    return "\n".join(
        (
            mark + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        ).rstrip()
        for mark, line in zip(marks, lines, strict=True)
    )


def markdown(rows: Sequence[Row]) -> str:
    """A table with what each row does."""
    columns = ["fault", *COLUMNS[1:]]
    lines = [columns, ["---"] * len(columns)]
    lines += [[f"`{row.name}`: {row.about}", *row.cells()[1:]] for row in rows]
    return "\n".join(f"| {' | '.join(_escaped(line))} |" for line in lines)


def _escaped(cells: Sequence[str]) -> list[str]:
    return [cell.replace("|", "\\|").replace("\n", " ") for cell in cells]


def read_rows(lines: Iterable[str]) -> list[Row]:
    """The rows of `json_line`; the runs of a row that is there twice are put together."""
    rows: dict[str, Row] = {}
    names = [check.name for check in fields(Verdict)]
    for line in lines:
        value = json.loads(line)
        runs = tuple(
            Verdict(**{name: _frozen(run[name]) for name in names}) for run in value["runs"]
        )
        earlier = rows[value["row"]].verdicts if value["row"] in rows else ()
        rows[value["row"]] = Row(value["row"], value["about"], (*earlier, *runs))
    return list(rows.values())


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def json_line(row: Row) -> str:
    """One JSON document a row, with each of its runs."""
    runs: list[dict[str, Any]] = [
        {**asdict(verdict), "failures": list(verdict.failures)} for verdict in row.verdicts
    ]
    return json.dumps({"row": row.name, "about": row.about, "held": row.held, "runs": runs})
