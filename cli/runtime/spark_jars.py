"""Spark's jars, from Maven Central into the cache in which Kafka's are, once."""

import tempfile
from pathlib import Path

from featurewatch.deploy.errors import ArtifactError
from featurewatch.deploy.java.jars import Cache
from featurewatch.deploy.java.progress import Reporter, on_stderr
from featurewatch.pipeline.spark.session import JARS


def spark_jars(cache: Cache) -> list[Path]:
    """The jars of `JARS` and nothing that they depend on, fetched if they are not there yet.

    Raises:
        ArtifactError: Jars are missing and cannot be fetched.
    """
    paths = [cache.repository / _place(coordinate) for coordinate in JARS]
    if all(path.is_file() for path in paths):
        return paths
    with cache.locked(), on_stderr() as reporter:
        reporter.on_phase(f"Spark: fetching its connectors to {cache.directory}")
        for done, (coordinate, path) in enumerate(zip(JARS, paths, strict=True), start=1):
            if not path.is_file():
                _fetch(coordinate, path, reporter)
            reporter.on_files(done, len(paths))
        reporter.on_phase("Spark: ready")
    return paths


def _place(coordinate: str) -> Path:
    """Where Maven keeps a jar."""
    group, artifact, version = coordinate.split(":")
    return Path(*group.split("."), artifact, version, f"{artifact}-{version}.jar")


def _fetch(coordinate: str, path: Path, reporter: Reporter) -> None:
    """Fetches a jar beside its place, so that what is in its place is whole."""
    try:
        import requests
        from jgo.maven import MavenContext
    except ImportError as error:
        raise ArtifactError(
            "fetching Spark's jars needs the package jgo; run: pip install 'featurewatch[pipeline]'"
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    group, artifact, version = coordinate.split(":")
    try:
        with tempfile.TemporaryDirectory(prefix=".part-", dir=path.parent) as staging:
            context = MavenContext(repo_cache=Path(staging))
            jar = Path(context.project(group, artifact).at_version(version).artifact().resolve())
            reporter.on_received(jar.stat().st_size)
            jar.replace(path)
    except (requests.RequestException, OSError, RuntimeError) as error:
        raise ArtifactError(
            f"{coordinate} could not be fetched ({' '.join(str(error).split())[:200]}); Maven "
            "Central must be reachable once, check the network and run it again"
        ) from error
