"""Archives of loaded classes (JEP 350), which halve the time and the CPU work of a node's start.

An archive fits one Java runtime and one class path; both are hashed into its file name. Java
ignores an archive that does not fit, so an archive cannot break a start.
"""

import hashlib
from pathlib import Path

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.runtime import java


def archive_path(cache: Cache, release: str) -> Path:
    """The path of the archive for this Java runtime and ``release``; it need not exist.

    Raises:
        ArtifactError: if the release's jars cannot be fetched.
        JavaError: if no Java runtime is found.
    """
    runtime = java().resolve()
    jars = cache.class_path(release)
    fit = f"{runtime} {runtime.stat().st_mtime_ns} {':'.join(map(str, jars))}"
    digest = hashlib.sha256(fit.encode()).hexdigest()[:12]
    return cache.directory / "archives" / f"kafka-{release}-{digest}.jsa"


def archive_options(cache: Cache, release: str) -> list[str]:
    """The Java options that use the archive; empty if there is no archive.

    Raises:
        ArtifactError, JavaError: as `archive_path`.
    """
    path = archive_path(cache, release)
    if not path.exists() or path.stat().st_size == 0:
        return []
    return [
        f"-XX:SharedArchiveFile={path}",
        "-Xshare:auto",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    ]
