"""Whole processes in turns: what is timed is what a person waits for, from start to end."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROUNDS: Final = 15
TIMEOUT_S: Final = 60.0
FEATUREWATCH: Final = (sys.executable, "-m", "featurewatch")
_ROOT: Final = Path(__file__).parents[2]
_BYTECODE: Final = tempfile.TemporaryDirectory(prefix="featurewatch-bytecode-")


def medians(commands: Mapping[str, Sequence[str]], *, rounds: int = ROUNDS) -> dict[str, float]:
    """The median seconds of each command, all of them in each round, after a round unmeasured."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            took_s, _ = timed(command)
            if number:
                seconds[name].append(took_s)
    return {name: statistics.median(durations_s) for name, durations_s in seconds.items()}


def environment() -> dict[str, str]:
    """The environment of measured processes: as after an installation, all that they import has
    its bytecode, the baselines' too."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if "FEATUREWATCH" not in name and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**inherited, "PYTHONPYCACHEPREFIX": _BYTECODE.name}


def timed(command: Sequence[str]) -> tuple[float, str]:
    """The seconds of a whole process and what it printed, without the epoch, which advances."""
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return time.perf_counter() - started, re.sub(r"Epoch: \d+", "", done.stdout)


def line(
    measure: str, value_s: float, baseline_s: float, ratio: float, **fields: Any
) -> dict[str, Any]:
    """A measure as one document; the times are in milliseconds."""
    return {
        "measure": measure,
        "value": round(value_s * 1000, 1),
        "baseline": round(baseline_s * 1000, 1),
        "ratio": round(ratio, 2),
        "unit": "ms",
        "rounds": ROUNDS,
        **fields,
    }
