"""Shells whose lines come from no terminal."""

import subprocess
import sys
from pathlib import Path

from tests.cli.commands import environment


def shell(
    directory: Path, *arguments: str, lines: str | bytes = "", timeout_s: float = 180
) -> subprocess.CompletedProcess[str]:
    """A shell whose lines come from stdin, run to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "featurewatch", "shell", *arguments],
        cwd=directory,
        env=environment(directory),
        input=lines if isinstance(lines, bytes) else lines.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    texts = (done.stdout.decode(), done.stderr.decode())
    return subprocess.CompletedProcess(done.args, done.returncode, *texts)
