"""Moves the pipeline to another release of Spark and Delta: ``python -m scripts.spark_release``.

The requirements ``pyspark==…`` and ``delta-spark==…`` in ``pyproject.toml`` are the only place that
a person changes. This script writes what follows from them: the locked jars of the connectors, the
pins of ``constraints.txt``, the base of the image for Kubernetes, and the page on Spark clusters.
It runs in the environment of the release before, and does not install the new one. Then run the
tests of the pipeline.
"""

import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.generators import ROOT, Texts

SCALA: Final = "2.13"
_PINNED: Final = ("pyspark", "delta-spark")


def spark_release() -> tuple[str, str]:
    """Returns the versions of Spark and of Delta.

    Raises:
        ValueError: ``pyproject.toml`` does not require exactly one version of each.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    requirements = project["project"]["optional-dependencies"]["pipeline"]
    pins = dict(item.split("==") for item in requirements if "==" in item)
    if pins.keys() != {*_PINNED}:
        raise ValueError("the extra pipeline of pyproject.toml must pin pyspark and delta-spark")
    return pins["pyspark"], pins["delta-spark"]


def connectors() -> list[str]:
    """Returns the Maven coordinates of Spark's connectors to Delta and Kafka."""
    spark, delta = spark_release()
    series = ".".join(spark.split(".")[:2])
    return [
        f"io.delta:delta-spark_{series}_{SCALA}:{delta}",
        f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{spark}",
    ]


def texts() -> Texts:
    """Yields the files beside ``pyproject.toml`` that name the versions."""
    spark, delta = spark_release()
    yield _replaced("constraints.txt", {"pyspark==": spark, "delta-spark==": delta})
    yield _replaced("deploy/kubernetes/spark.Dockerfile", {"FROM apache/spark:": spark})
    yield _replaced("docs/how-to/spark-cluster.md", {"The cluster must run Spark ": spark})


def _replaced(name: str, versions: Mapping[str, str]) -> tuple[Path, str]:
    """A file of the repository, with another version after each text that begins a line."""
    path = ROOT / name
    text = path.read_text()
    for prefix, version in versions.items():
        text, count = re.subn(rf"(?m)^({re.escape(prefix)})[\d.]+", rf"\g<1>{version}", text)
        if count != 1:
            raise ValueError(f"{name} has {count} lines that begin with {prefix}")
    return path, text


if __name__ == "__main__":
    from featurewatch.stack.java.lock import LOCK_FILE
    from scripts import lock_jars

    for path, text in texts():
        path.write_text(text)
    with tempfile.TemporaryDirectory(prefix="featurewatch-lock-") as scratch:
        LOCK_FILE.write_text(lock_jars.render(lock_jars.move_spark(Path(scratch))))
