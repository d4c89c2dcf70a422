"""Finds a Java that can run Spark: a full JDK, which a Kafka broker does not need."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from featurewatch.pipeline.errors import SparkMissingError

MINIMUM: Final = 17
MODULE: Final = "jdk.incubator.vector"
"""A module that Spark's launcher adds; the small runtimes in wheels lack it."""

_ADVICE: Final = f"install a full JDK {MINIMUM} or newer and set JAVA_HOME to it"
_RELEASE: Final = re.compile(r"java\.base@(\d+)")


def java_home(environment: Mapping[str, str] | None = None) -> Path:
    """Returns the home of the JDK for Spark: JAVA_HOME, or else the ``java`` on PATH.

    Raises:
        SparkMissingError: There is no Java, it is older than `MINIMUM`, or it is not a full JDK.
    """
    env = os.environ if environment is None else environment
    if home := env.get("JAVA_HOME"):
        java, origin = Path(home) / "bin" / "java", f"JAVA_HOME is {home}"
    elif path := shutil.which("java", path=env.get("PATH", "")):
        java, origin = Path(path).resolve(), f"the java on PATH is {path}"
    else:
        raise SparkMissingError(f"Spark needs Java, and none was found: {_ADVICE}")
    modules = _modules(java)
    release = _RELEASE.search(modules)
    if release is None:
        raise SparkMissingError(f"{origin}, and it does not run: {_ADVICE}")
    if int(release[1]) < MINIMUM:
        raise SparkMissingError(f"{origin}, which is Java {release[1]}: {_ADVICE}")
    if MODULE not in modules:
        raise SparkMissingError(f"{origin}, a Java without {MODULE}, which Spark needs: {_ADVICE}")
    return java.parent.parent


def _modules(java: Path) -> str:
    """``name@version`` of each module, one per line; empty if Java does not run."""
    try:
        result = subprocess.run(
            [str(java), "--list-modules"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout
