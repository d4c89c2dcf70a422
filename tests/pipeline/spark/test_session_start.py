"""A session that does not start is one line."""

from pathlib import Path

import pytest

from featurewatch.pipeline.errors import SparkStartError
from featurewatch.pipeline.spark.session import spark_session


@pytest.mark.parametrize("master", ["bogus", "", "http://a:1", "spark:/a:1"])
def test_a_master_that_is_invalid(master: str, tmp_path: Path) -> None:
    """It is refused before a JVM is started, which would print a page about it."""
    with pytest.raises(SparkStartError, match="is not a Spark master: give"):
        spark_session(tmp_path, master)
