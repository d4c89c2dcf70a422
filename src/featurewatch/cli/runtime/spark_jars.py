"""Spark's connectors, from Maven Central into the cache in which Kafka's jars are, once."""

from pathlib import Path

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.java.lock import SPARK, jar_lock


def spark_jars(cache: Cache) -> list[Path]:
    """Returns the jars that Spark lacks for Delta and Kafka; missing ones are fetched.

    Raises:
        ArtifactError: Jars are missing and cannot be fetched, or are not as they were locked.
    """
    paths = jar_lock().programs[SPARK]
    cache.require(paths, "Spark's connectors")
    return [cache.repository / path for path in paths]
