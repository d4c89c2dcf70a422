"""The outputs do not depend on the process that publishes them."""

import os
import subprocess
import sys


def outputs_of(hash_seed: str) -> str:
    """The outputs of a process with another hash seed."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.simulation.published"]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout.decode()


def test_outputs_have_one_order() -> None:
    """The same events give the same outputs in the same order, whatever the order of sets."""
    first = outputs_of("1")
    assert first.count("\n") > 300
    assert outputs_of("2") == first
