"""Spark's Python processes have the learned tables that the process has which started them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featurewatch.kafka.releases import reread
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.pipeline.spark.java import java_home
from featurewatch.pipeline.spark.session import share_releases
from tests.learned_releases import made_up, without
from tests.paths import ROOT, SRC
from tests.pipeline.spark.releases_of_executors import newest_release
from tests.pipeline.spark.standalone import Standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def learned(tmp_path: Path) -> Iterator[Path]:
    """The directory of a user who has learned Kafka 9.1."""
    with without("99.0", tmp_path) as directory:
        directory.mkdir()
        (directory / "9.1.json").write_text(json.dumps(made_up()))
        reread()
        yield directory


@pytest.mark.stack
def test_processes_on_this_machine_read_the_same_directory(
    spark: "SparkSession", learned: Path
) -> None:
    """Also where the JVM was started before the directory was chosen."""
    environment = spark.sparkContext.environment
    before = environment.get(VARIABLE)
    try:
        share_releases(spark, is_local=True)
        assert environment[VARIABLE] == str(learned)
        found = spark.sparkContext.parallelize([0], 1).map(newest_release).collect()
    finally:
        environment.pop(VARIABLE)
        if before is not None:
            environment[VARIABLE] = before
    assert found == ["9.1"]


@pytest.mark.nightly
@pytest.mark.stack
def test_executors_on_other_machines_get_the_files(
    jars: list[Path], learned: Path, tmp_path: Path
) -> None:
    """Their directory of the setting has none."""
    assert jars
    cluster = Standalone(tmp_path)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(VARIABLE)
            patch.setenv("PYTHONPATH", f"{SRC}{os.pathsep}{ROOT}")
            cluster.start()
        program = str(Path(__file__).with_name("releases_of_executors.py"))
        done = subprocess.run(
            [sys.executable, program, cluster.master, str(tmp_path / "scratch")],
            env={
                **os.environ,
                VARIABLE: str(learned),
                "PYTHONPATH": f"{SRC}{os.pathsep}{ROOT}",
                "SPARK_LOCAL_IP": "127.0.0.1",
                "JAVA_HOME": str(java_home()),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        cluster.stop()
    assert done.stdout == "9.1 9.1", done.stderr[-2000:]
