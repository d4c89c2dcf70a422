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
"""Spark's launcher adds this module; the small runtimes that come in wheels lack it."""

_ADVICE: Final = f"install a full JDK {MINIMUM} or newer and set JAVA_HOME to it"
_RELEASE: Final = re.compile(r"java\.base@(\d+)")


def java_home(environment: Mapping[str, str] | None = None) -> Path:
    """The home of the JDK that Spark is to run on: JAVA_HOME, or else the ``java`` on PATH.

    Raises:
        SparkMissingError: There is none, it is too old, or it is not a full one.
    """
    env = os.environ if environment is None else environment
    if home := env.get("JAVA_HOME"):
        java, said = Path(home) / "bin" / "java", f"JAVA_HOME is {home}"
    elif on_path := shutil.which("java", path=env.get("PATH", "")):
        java, said = Path(on_path).resolve(), f"the java on PATH is {on_path}"
    else:
        raise SparkMissingError(f"Spark needs Java, and there is none: {_ADVICE}")
    modules = _modules(java)
    release = _RELEASE.search(modules)
    if release is None:
        raise SparkMissingError(f"{said}, and it does not run: {_ADVICE}")
    if int(release[1]) < MINIMUM:
        raise SparkMissingError(f"{said}, which is Java {release[1]}: {_ADVICE}")
    if MODULE not in modules:
        raise SparkMissingError(f"{said}, a Java without {MODULE}, which Spark needs: {_ADVICE}")
    return java.parent.parent


def _modules(java: Path) -> str:
    """``name@version`` of each module, a line each; empty if it does not run."""
    try:
        result = subprocess.run(
            [str(java), "--list-modules"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout
