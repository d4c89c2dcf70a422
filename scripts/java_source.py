"""Compiles and runs a few lines of Java against Kafka's jars, on any Java runtime.

The compiler is Eclipse's, one jar from Maven Central: a JDK is not needed, so what asks Kafka's own
classes runs wherever the embedded stack runs.
"""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jgo.maven import MavenContext

from featurewatch.deploy.java.jars import Cache, java_command
from featurewatch.deploy.java.runtime import java

COMPILER = "org.eclipse.jdt:ecj:3.45.0"
"""Reads class files up to Java 26 and itself runs on Java 17."""


def jar(coordinates: str, cache: Cache) -> Path:
    """One jar by ``group:artifact:version``, fetched if it is not in the cache yet."""
    group, artifact, version = coordinates.split(":")
    folder = Path(*group.split("."), artifact, version)
    found = cache.repository / folder / f"{artifact}-{version}.jar"
    if found.is_file():
        return found
    # Never half a file where a whole one is expected: fetched beside it, then moved.
    with (
        cache.locked(),
        tempfile.TemporaryDirectory(prefix=".part-", dir=cache.directory) as staging,
    ):
        context = MavenContext(repo_cache=Path(staging), timeout=120)
        fetched = context.project(group, artifact).at_version(version).artifact().resolve()
        found.parent.mkdir(parents=True, exist_ok=True)
        Path(fetched).replace(found)
    return found


def compile_java(
    sources: Sequence[Path], into: Path, cache: Cache, class_path: Sequence[Path] = ()
) -> None:
    """Compiles for Java 17.

    Raises:
        RuntimeError: with the compiler's messages, if the sources do not compile.
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
        raise RuntimeError(f"the compiler with {java()} says:\n{run.stdout}{run.stderr}")
