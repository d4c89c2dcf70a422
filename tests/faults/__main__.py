"""The matrix of faults: ``python -m tests.faults [row ...] [--repeat 20] [--json | --markdown]``.

Ends with 1 if a run of a row did not hold, and with 2 if a row could not be run on this machine.
"""

import argparse
import fnmatch
import signal
import sys
from dataclasses import replace
from pathlib import Path

from tests.faults.rows.registry import ROWS
from tests.faults.runner import run_rows
from tests.faults.table import Row, json_line, markdown, read_rows, terminal


def _report(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    """Runs the selected rows and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("rows", nargs="*", help="names or patterns, such as 'kill-*' (all)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each row")
    parser.add_argument(
        "--patience",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="make all deadlines longer by this factor, on a busy machine (1)",
    )
    parser.add_argument("--quick", action="store_true", help="the rows that `make nightly` runs")
    parser.add_argument("--list", action="store_true", help="print the rows' names, and end")
    parser.add_argument("--json", action="store_true", help="a JSON document a row")
    parser.add_argument(
        "--markdown", action="store_true", help="a table for docs/explanation/faults.md"
    )
    parser.add_argument(
        "--table",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="print the table of what --json wrote before, and run nothing",
    )
    options = parser.parse_args()
    if options.table:
        lines = [line for file in options.table for line in file.read_text().splitlines()]
        sys.stdout.write((markdown if options.markdown else terminal)(read_rows(lines)) + "\n")
        return
    patterns = options.rows or ["*"]
    rows = [row for row in ROWS if any(fnmatch.fnmatch(row.name, one) for one in patterns)]
    rows = [row for row in rows if row.quick or not options.quick]
    if not rows:
        parser.error(f"no row is called {' or '.join(patterns)}: --list prints their names")
    rows = [replace(row, patience=options.patience) for row in rows]
    if options.list:
        sys.stdout.write("".join(f"{row.name}: {row.about}\n" for row in rows))
        return
    # Processes and mounts are undone at the end, whoever ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    done: list[Row] = []
    try:
        for row in run_rows(rows, options.repeat, _report):
            done.append(row)
            if options.json:
                sys.stdout.write(json_line(row) + "\n")
                sys.stdout.flush()
    finally:
        if done and not options.json:
            sys.stdout.write((markdown if options.markdown else terminal)(done) + "\n")
    if any(row.held < len(row.verdicts) for row in done):
        sys.exit(1)
    sys.exit(2 if any(not row.verdicts for row in done) else 0)


if __name__ == "__main__":
    main()
