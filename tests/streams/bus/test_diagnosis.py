"""A bus that does not answer: the reason on one line, the same for every way to read it."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trustme

from featurewatch.pipeline.bronze.kafka import offset_ranges
from featurewatch.pipeline.errors import TopicError
from featurewatch.streams.bus.diagnosis import unanswered
from featurewatch.streams.bus.errors import BusUnavailableError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import STATE
from tests.kafka.tls_nodes import CASES, listener, properties_of


@pytest.mark.parametrize("name", CASES)
def test_the_reason_is_that_of_our_own_connection(name: str, tmp_path: Path) -> None:
    """librdkafka has one text for all certificates that it does not accept."""
    server_of, settings, says = CASES[name]
    authority = trustme.CA()
    properties = properties_of(settings, authority, tmp_path)
    with listener(server_of(authority)) as address:
        line = unanswered(BusSettings(str(address), properties), "Local: Broker transport failure")
    assert line.startswith(f"the bus at {address} does not answer: {address}")
    assert "\n" not in line
    assert re.search(says, line), line


def test_every_reader_of_the_bus_reports_it_alike(closed_port: int) -> None:
    """Topics that are created, topics that are printed, and the offsets for the pipeline."""
    bus = BusSettings(f"127.0.0.1:{closed_port}")
    says = rf"the bus at {bus.bootstrap_servers} does not answer: nobody listens at .*refused\)"
    with ThreadPoolExecutor() as pool:  # each waits for seconds
        created = pool.submit(ensure_topics, bus, timeout_s=5)
        printed = pool.submit(TopicReader, bus, STATE)
        filled = pool.submit(offset_ranges, bus)
    with pytest.raises(BusUnavailableError, match=says):
        created.result()
    with pytest.raises(BusUnavailableError, match=says):
        printed.result()
    with pytest.raises(TopicError, match=says):
        filled.result()


def test_servers_after_one_that_is_down_are_tried(closed_port: int) -> None:
    """A reason is one only if none of them answers."""
    down, unresolved = f"127.0.0.1:{closed_port}", "no-such-host.invalid:9092"
    line = unanswered(BusSettings(f"{down},{unresolved}"), "no answer")
    assert "the name of no-such-host.invalid:9092 cannot be resolved" in line
