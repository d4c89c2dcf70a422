"""The programs of Prometheus and Alertmanager, where this machine has them.

Debian's packages need no installation: ``apt-get download prometheus prometheus-alertmanager``,
then ``dpkg -x`` for each into a directory that ``FEATUREWATCH_MONITORING_TOOLS`` names.
"""

import os
import shutil
from pathlib import Path

import pytest


def tools_directory() -> Path | None:
    """Where the packages are unpacked."""
    given = os.environ.get("FEATUREWATCH_MONITORING_TOOLS")
    return Path(given) if given else None


def tool(name: str) -> str:
    """The path of a program; skips the test where it is missing."""
    directory = tools_directory()
    unpacked = None if directory is None else shutil.which(name, path=str(directory / "usr/bin"))
    found = unpacked or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: see tests/monitoring/tools.py for how to get it")
    return found
