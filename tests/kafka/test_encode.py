"""Messages are written as kio writes them, to the byte."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import request_names
from tests.kafka.kio_messages import PAIRS, instances, name_of, pair_of, written

SKIPPED = ("DescribeConfigsResponse-4", *(f"CreateTopicsResponse-{number}" for number in (5, 6, 7)))
"""What is read in a way of its own is not written again."""
WRITTEN = [pair for pair in PAIRS if name_of(pair) not in SKIPPED]


@pytest.mark.parametrize("pair", WRITTEN, ids=name_of)
@given(data=st.data())
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
def test_a_message_is_written_as_kio_writes_it(pair: tuple[str, int], data: Any) -> None:
    """Key, version and form; nulls, lists, tagged fields that have their default or another one."""
    kind, theirs = pair_of(pair)
    for attribute in ("__api_key__", "__version__", "__flexible__"):
        assert getattr(kind, attribute) == getattr(theirs, attribute)
    content = written(data.draw(instances(theirs)))
    assert write_entity(read_entity(kind, content)[0]) == content


def test_kio_has_most_of_the_messages() -> None:
    """The others are those of ZooKeeper mode, which are compared with Kafka's own classes, and one
    that is newer than kio."""
    known = {name.removesuffix("Request") for name, _ in PAIRS}
    missing = {api for api in request_names().values() if api not in known}
    of_zookeeper = {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}
    assert missing <= {*of_zookeeper, "UnregisterController"}
