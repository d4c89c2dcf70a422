"""The client of features reads whatever a node sends."""

import asyncio
import socket
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.features.client import Bootstrap, FeatureAdmin
from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.kafka.address import Address
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from tests.admin.scripted import Node, ScriptedCluster

NAMES = st.text(min_size=1, max_size=40)
LEVELS = st.integers(0, 2**15 - 1)


def described(address: Address) -> FeatureMetadata:
    """The features of one node."""

    async def work() -> FeatureMetadata:
        async with FeatureAdmin(Bootstrap((address,))) as admin:
            return await admin.describe()

    return asyncio.run(work())


@given(
    supported=st.dictionaries(NAMES, st.tuples(LEVELS, LEVELS), max_size=6),
    finalized=st.dictionaries(NAMES, LEVELS, max_size=6),
    epoch=st.integers(-1, 2**40),
)
@settings(max_examples=25)
def test_it_reads_what_the_node_has(
    supported: dict[str, tuple[int, int]], finalized: dict[str, int], epoch: int
) -> None:
    """Whatever a node supports and has finalized; without an epoch nothing is finalized."""
    with ScriptedCluster(Node(features=FeaturesResponse(supported, finalized, epoch))) as cluster:
        found = described(cluster.address())
    has_epoch = epoch >= 0
    assert dict(found.supported) == supported
    assert found.finalized == (finalized if has_epoch else {})
    assert found.epoch == (epoch if has_epoch else None)


def answering(content: bytes) -> Address:
    """A listener that sends this to one client, and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(content)

    threading.Thread(target=serve, daemon=True).start()
    return Address("127.0.0.1", listener.getsockname()[1])


@pytest.mark.fuzz
@given(content=st.binary(max_size=64), framed=st.booleans())
@settings(max_examples=40)
def test_invalid_bytes_are_a_node_error(content: bytes, framed: bool) -> None:
    """Any bytes, in a frame or not: the node could not be used, and nothing else is raised."""
    head = len(content).to_bytes(4, "big") if framed else b""
    with pytest.raises(UnreachableError):
        described(answering(head + content))
