"""Fills silver and gold in a separate process, for tests that kill it: ``LAKE SCRATCH JAR…``."""

import sys
from pathlib import Path

from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.spark.session import spark_session
from tests.pipeline.gold.parity import fill_tables

if __name__ == "__main__":
    root, scratch, *jars = sys.argv[1:]
    session = spark_session(Path(scratch), "local[2]", [Path(jar) for jar in jars], brief=True)
    fill_tables(Lake(session, root))
