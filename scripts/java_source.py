"""Compiles Java sources against Kafka's jars, on any Java runtime.

The compiler is Eclipse's, one jar from Maven Central. It needs no JDK, so programs that call
Kafka's own classes run wherever the embedded stack runs.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from featurewatch.stack.java.jars import Cache, java_command
from featurewatch.stack.java.lock import path_of
from featurewatch.stack.java.runtime import java

COMPILER = "org.eclipse.jdt:ecj:3.45.0"
"""The compiler; reads class files up to Java 26 and runs on Java 17."""


def jar(coordinates: str, cache: Cache) -> Path:
    """The jar with the coordinates ``group:artifact:version``, fetched into the cache if missing.

    Raises:
        ArtifactError: if it cannot be fetched, or is not as it was locked.
    """
    path = path_of(coordinates)
    cache.require([path], coordinates)
    return cache.repository / path


def compile_java(
    sources: Sequence[Path], into: Path, cache: Cache, class_path: Sequence[Path] = ()
) -> None:
    """Compiles ``sources`` for Java 17 into the directory ``into``.

    Raises:
        RuntimeError: if the sources do not compile; with the compiler's messages.
    """
    options = ["-17", "-nowarn", "-proc:none", "-d", str(into)]
    if class_path:
        options += ["-classpath", os.pathsep.join(map(str, class_path))]
    run = subprocess.run(
        java_command(
            [jar(COMPILER, cache)],
            "org.eclipse.jdt.internal.compiler.batch.Main",
            *options,
            *map(str, sources),
            heap_mb=256,
        ),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"the compiler with {java()} failed:\n{run.stdout}{run.stderr}")
