"""Kafka's own tools of both releases, shared by what compares."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from featurewatch.stack.java.jars import Cache
from tests.conformance.kafka_tools import KafkaTools, kafka_tools


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
