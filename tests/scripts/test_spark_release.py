"""The versions of Spark and Delta: one place names them, and everything else follows."""

from importlib.metadata import version

import pytest

from scripts import spark_release
from scripts.spark_release import connectors, texts


def test_every_file_has_the_versions_of_the_requirements() -> None:
    """Also the environment that runs this."""
    assert (version("pyspark"), version("delta-spark")) == spark_release.spark_release()
    for path, text in texts():
        assert path.read_text() == text, path


def test_another_release_changes_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connectors, the pins, the image and the page have the new versions alone."""
    monkeypatch.setattr(spark_release, "spark_release", lambda: ("9.1.7", "8.6.5"))
    assert connectors() == [
        "io.delta:delta-spark_9.1_2.13:8.6.5",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:9.1.7",
    ]
    changed = {path.name: text for path, text in texts()}
    assert "\npyspark==9.1.7\n" in changed["constraints.txt"]
    assert "\ndelta-spark==8.6.5\n" in changed["constraints.txt"]
    assert "FROM apache/spark:9.1.7-scala" in changed["spark.Dockerfile"]
    assert "must run Spark 9.1.7 with" in changed["spark-cluster.md"]


def test_a_file_without_a_version_is_an_error() -> None:
    """A pin that was renamed must not be left as it is."""
    with pytest.raises(ValueError, match=r"constraints\.txt has 0 lines that begin with spark=="):
        spark_release._replaced("constraints.txt", {"spark==": "1"})
