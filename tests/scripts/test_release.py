"""The files of releases equal what is read from Kafka's jars."""

import subprocess
import sys

import pytest

from tests.paths import ROOT


@pytest.mark.nightly
@pytest.mark.stack
def test_the_files_follow_from_the_jars() -> None:
    """The script reads the jars of every release and reproduces the files."""
    command = [sys.executable, "-m", "scripts.release", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr  # which tells of jars that were fetched
