"""Runs ``featurewatch`` as a user does: in a separate process."""

import os
import subprocess
import sys
from pathlib import Path

from tests.paths import SRC


def environment(directory: Path, **own: str) -> dict[str, str]:
    """A user's environment without settings; what outlives a process goes to ``directory``."""
    bare = {name: value for name, value in os.environ.items() if "FEATUREWATCH" not in name}
    if cache := os.environ.get("FEATUREWATCH_CACHE"):
        bare["FEATUREWATCH_CACHE"] = cache
    return {**bare, "XDG_STATE_HOME": str(directory), "PYTHONPATH": str(SRC), **own}


def featurewatch(
    directory: Path, *arguments: str, timeout_s: float = 180, **own: str
) -> subprocess.CompletedProcess[str]:
    """The command, run in ``directory`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "featurewatch", *arguments],
        cwd=directory,
        env=environment(directory, **own),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
