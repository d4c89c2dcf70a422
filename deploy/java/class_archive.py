"""Archives of loaded classes (JEP 350), which halve the time and the work of a node's start.

An archive fits one Java and one class path; its name says which. Java goes on without one that does
not fit, so nothing here can break a start.
"""

import hashlib
from pathlib import Path

from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.java.runtime import java


def archive_path(cache: Cache, release: str) -> Path:
    """Where the archive for this Java and this release is, or would be."""
    runtime = java().resolve()
    jars = cache.class_path(release)
    fit = f"{runtime} {runtime.stat().st_mtime_ns} {':'.join(map(str, jars))}"
    digest = hashlib.sha256(fit.encode()).hexdigest()[:12]
    return cache.directory / "archives" / f"kafka-{release}-{digest}.jsa"


def archive_options(cache: Cache, release: str) -> list[str]:
    """Java options that use the archive; none if there is none."""
    path = archive_path(cache, release)
    if not path.exists() or path.stat().st_size == 0:
        return []
    return [
        f"-XX:SharedArchiveFile={path}",
        "-Xshare:auto",
        "-Xlog:cds=off",
        "-Xlog:cds+dynamic=off",
    ]
