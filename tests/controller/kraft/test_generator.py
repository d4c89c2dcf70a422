"""The table of levels equals what the generator reads from Kafka's classes."""

import subprocess
import sys

import pytest

from tests.paths import ROOT


@pytest.mark.nightly
@pytest.mark.stack
def test_table_follows_from_the_jars() -> None:
    """The generator runs releases 3.3 to 4.3 and reproduces the committed table."""
    command = [sys.executable, "-m", "scripts.generate_features", "--check"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr  # which tells of jars that were fetched
