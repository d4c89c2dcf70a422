"""Spark's jars, from Maven Central into the cache in which Kafka's are, once."""

from pathlib import Path

from featurewatch.pipeline.spark.session import JARS
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.lock import path_of


def spark_jars(cache: Cache) -> list[Path]:
    """The jars of `JARS` and nothing that they depend on, fetched if they are not there yet.

    Raises:
        ArtifactError: Jars are missing and cannot be fetched, or are not as they were locked.
    """
    paths = [path_of(coordinate) for coordinate in JARS]
    cache.require(paths, "Spark's connectors")
    return [cache.repository / path for path in paths]
