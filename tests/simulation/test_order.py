"""The outputs do not depend on the process that publishes them."""

import os
import subprocess
import sys


def outputs_of(module: str, hash_seed: str) -> str:
    """The output of a module in a process with another hash seed."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", f"tests.simulation.{module}"]
    return subprocess.run(command, env=environment, capture_output=True, check=True).stdout.decode()


def test_outputs_have_one_order() -> None:
    """The same events give the same outputs in the same order, whatever the order of sets."""
    first = outputs_of("published", "1")
    assert first.count("\n") > 300
    assert outputs_of("published", "2") == first


def test_a_seed_is_one_history() -> None:
    """A history with topics that failed is played again by its seed alone."""
    first = outputs_of("reference.history_of", "1")
    assert first.count("\n") > 300
    assert outputs_of("reference.history_of", "2") == first
