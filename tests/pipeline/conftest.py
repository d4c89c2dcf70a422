"""One Spark session for all tests of the pipeline, with a new lake for each test."""

import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featurewatch.cli.runtime.spark_jars import spark_jars
from featurewatch.pipeline.errors import SparkMissingError
from featurewatch.pipeline.gold.tables import FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.silver.tables import LEVELS, QUARANTINE
from featurewatch.pipeline.spark.java import java_home
from featurewatch.pipeline.spark.session import spark_session
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.settings import BusSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def jars(stack_cache: Cache) -> list[Path]:
    """The jars for Spark, fetched on first use; without a suitable Java the test is skipped."""
    try:
        java_home()
    except SparkMissingError as error:
        pytest.skip(str(error))
    return spark_jars(stack_cache)


@pytest.fixture(scope="session")
def spark(jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session on two cores of this machine, which needs a full JDK on it."""
    before = signal.getsignal(signal.SIGINT)
    session = spark_session(tmp_path_factory.mktemp("spark"), "local[2]", jars, brief=True)
    signal.signal(signal.SIGINT, before)  # other tests of this process interrupt what is not Spark
    yield session
    session.stop()


@pytest.fixture
def lake(spark: "SparkSession", tmp_path: Path) -> Iterator[Lake]:
    """An empty lake."""
    lake_ = Lake(spark, str(tmp_path / "lake"))
    yield lake_
    lake_.unlock()


@pytest.fixture
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits maintenance to some tables: each of the others would take its seconds."""
    few = (MESSAGES, LEVELS, QUARANTINE, FEATURE_CHANGES)
    monkeypatch.setattr("featurewatch.pipeline.maintain.TABLES", few)


@pytest.fixture
def own_bus(bus: Cluster) -> Callable[[], BusSettings]:
    """Returns settings with a unique prefix; no topic exists."""

    def settings() -> BusSettings:
        return BusSettings(
            bus.bootstrap_servers,
            prefix=f"pipeline-{uuid.uuid4().hex[:8]}",
            partitions=3,
            replication_factor=1,
        )

    return settings
