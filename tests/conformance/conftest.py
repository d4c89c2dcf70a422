"""Kafka's own tools of both releases, and brokers in ZooKeeper mode, shared by what compares."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import zookeeper_mode
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conformance.kafka_tools import KafkaTools, kafka_tools
from tests.process_logs import started


@pytest.fixture(scope="session")
def tools_of(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], KafkaTools]]:
    """The tools of a release, whose JVM is started when they are first needed."""
    running: dict[str, KafkaTools] = {}
    with ExitStack() as stack:

        def of(release: str) -> KafkaTools:
            if release not in running:
                directory = tmp_path_factory.mktemp(f"tools-{release}")
                running[release] = stack.enter_context(kafka_tools(release, stack_cache, directory))
            return running[release]

        yield of


@pytest.fixture(scope="session")
def zookeeper_391(
    stack_cache: Cache, ensemble: Ensemble, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three brokers of 3.9.1 in ZooKeeper mode."""
    spec = zookeeper_mode(3, f"{ensemble.connect_string}/tools-{time.time_ns()}")
    directory = tmp_path_factory.mktemp("zookeeper-391") / "cluster"
    with started(Cluster(spec, directory, cache=stack_cache, temporary=True)) as brokers:
        yield brokers
