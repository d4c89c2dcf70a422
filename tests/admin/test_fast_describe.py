"""One question over a bare socket says what the client says, or nothing."""

import asyncio
import socket
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.admin.fast_describe import fast_describe
from featurewatch.admin.features import Bootstrap, FeatureAdmin
from featurewatch.admin.metadata import FeatureMetadata
from featurewatch.reference.machines.requests import FeaturesResponse
from featurewatch.streams.net.address import Address
from tests.admin.scripted import Node, ScriptedCluster

NAMES = st.text(min_size=1, max_size=40)
LEVELS = st.integers(0, 2**15 - 1)


@given(
    supported=st.dictionaries(NAMES, st.tuples(LEVELS, LEVELS), max_size=6),
    finalized=st.dictionaries(NAMES, LEVELS, max_size=6),
    epoch=st.integers(-1, 2**40),
)
@settings(deadline=None, max_examples=25)
def test_it_says_what_the_client_says(
    supported: dict[str, tuple[int, int]], finalized: dict[str, int], epoch: int
) -> None:
    """Whatever a node supports and has finalized, and where it has no epoch."""
    with ScriptedCluster(Node(features=FeaturesResponse(supported, finalized, epoch))) as cluster:

        async def describe() -> FeatureMetadata:
            async with FeatureAdmin(Bootstrap((cluster.address(),))) as admin:
                return await admin.describe()

        assert fast_describe(cluster.address(), None, 10) == asyncio.run(describe())


def serving(content: bytes) -> Address:
    """A listener that says this to one client, and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(content)

    threading.Thread(target=serve, daemon=True).start()
    return Address("127.0.0.1", listener.getsockname()[1])


@given(content=st.binary(max_size=64), framed=st.booleans())
@settings(deadline=None, max_examples=40)
def test_it_knows_nothing_of_what_it_cannot_read(content: bytes, framed: bool) -> None:
    """Any bytes, in a frame or not: no exception, and nothing made up of features."""
    head = len(content).to_bytes(4, "big") if framed else b""
    metadata = fast_describe(serving(head + content), None, 5)
    assert metadata is None or metadata.epoch is None or metadata.epoch >= 0


def test_an_older_node_and_none_at_all_are_left_to_the_client() -> None:
    """The first answers version 4 with an error in the form of version 0; the second not at all."""
    old = (1).to_bytes(4, "big") + (35).to_bytes(2, "big") + (0).to_bytes(4, "big")
    assert fast_describe(serving(len(old).to_bytes(4, "big") + old), None, 5) is None
    assert fast_describe(Address("127.0.0.1", 1), None, 5) is None
