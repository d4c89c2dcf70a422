"""Resync requests are bounded in content, size and number."""

from types import SimpleNamespace
from typing import Any

import pytest

from featurewatch.cli.runtime.resync import MAX_REQUEST_BYTES, MIN_INTERVAL_S, ResyncRequests
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import ResyncRequest
from featurewatch.streams.topics import RESYNC_REQUESTS
from featurewatch.streams.types import ClusterId

ONE, OTHER = ClusterId("cluster-one"), ClusterId("cluster-other")


class Source:
    """A source of a cluster that notes the reasons of its resync requests."""

    def __init__(self, name: str, cluster: str) -> None:
        self.name = name
        self.cluster = cluster
        self.reasons: list[str] = []
        self.source = self

    def report(self) -> Any:
        """The part of a report that names the cluster."""
        return SimpleNamespace(cluster=self.cluster)

    def request_resync(self, reason: str) -> None:
        """Notes the reason."""
        self.reasons.append(reason)


@pytest.fixture
def sources() -> list[Source]:
    """Two sources of one cluster and one of another."""
    return [Source("kraft", ONE), Source("zookeeper", ONE), Source("kraft", OTHER)]


@pytest.fixture
def requests(sources: list[Any]) -> ResyncRequests:
    """The requests to these sources."""
    return ResyncRequests(lambda: sources)


def add(requests: ResyncRequests, cluster: str = ONE, source: str = "", reason: str = "r") -> None:
    """Adds a request as it comes from the topic."""
    message = encode(RESYNC_REQUESTS, ResyncRequest(ClusterId(cluster), source, reason, 1))
    requests.add(message.value, message.key)


def test_the_requested_sources_republish(requests: ResyncRequests, sources: list[Source]) -> None:
    """One source of a cluster, or all of them, and those of no other cluster."""
    add(requests, ONE, "kraft", "lost")
    add(requests, "unknown-cluster")
    requests.begin(0)
    assert [source.reasons for source in sources] == [["lost"], [], []]
    add(requests, ONE, "", "all")
    requests.begin(MIN_INTERVAL_S)
    assert [source.reasons for source in sources] == [["lost", "all"], ["all"], []]


def test_a_flood_leads_to_one_republication_in_ten_seconds(
    requests: ResyncRequests, sources: list[Source]
) -> None:
    """And what was requested in the meantime is not forgotten."""
    for tenths in range(300):
        for _ in range(5):
            add(requests, OTHER)
        requests.begin(tenths / 10)
    assert len(sources[2].reasons) == 3
    requests.begin(31)
    assert len(sources[2].reasons) == 4
    requests.begin(100)
    assert len(sources[2].reasons) == 4


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (None, ONE.encode()),
        (b"", ONE.encode()),
        (b"{", ONE.encode()),
        (b"[" * 10_000, ONE.encode()),
        (b'{"kind": "resync-request", "cluster": 1}', ONE.encode()),
        (encode(RESYNC_REQUESTS, ResyncRequest(ONE, "", "r", 1)).value, OTHER.encode()),
        (
            encode(RESYNC_REQUESTS, ResyncRequest(ONE, "x" * MAX_REQUEST_BYTES, "r", 1)).value,
            ONE.encode(),
        ),
    ],
)
def test_what_is_no_request_is_ignored(
    requests: ResyncRequests, sources: list[Source], value: bytes | None, key: bytes | None
) -> None:
    """Bytes that are no request of the cluster that the key names, and long ones."""
    requests.add(value, key)
    requests.begin(0)
    assert not any(source.reasons for source in sources)
