"""Prints the newest release that executors know: ``releases_of_executors.py MASTER SCRATCH``."""

import sys
from pathlib import Path

from featurewatch.pipeline.spark.session import spark_session
from tests.pipeline.spark.standalone import SMALL


def newest_release(_: int) -> str:
    """Runs in an executor."""
    from featurewatch.kafka.releases import record_files

    return record_files()[-1].release


if __name__ == "__main__":
    session = spark_session(Path(sys.argv[2]), sys.argv[1], settings=SMALL, brief=True)
    found = session.sparkContext.parallelize(range(2), 2).map(newest_release).collect()
    sys.stdout.write(" ".join(found))
    session.stop()
