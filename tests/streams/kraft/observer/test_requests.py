"""Questions on the wire: every version bears replica id -1, and answers come back as values."""

from typing import Any

import pytest
from kio.serial import entity_reader

from featurewatch.kafka.address import Address
from featurewatch.kafka.encode import write_entity
from featurewatch.streams.kraft.errors import NotAControllerError
from featurewatch.streams.kraft.observer import fetch_api
from featurewatch.streams.kraft.observer.requests import FetchRequest, FetchSnapshotRequest
from featurewatch.streams.types import OffsetAndEpoch
from tests.kafka.kio_messages import kio_class

FETCH = FetchRequest(Address("a", 1), 7, OffsetAndEpoch(5, 3), 4, 500, 1 << 20)
SNAPSHOT = FetchSnapshotRequest(Address("a", 1), 7, OffsetAndEpoch(20, 4), 100, 1 << 20)


class HighestVersions:
    """A node that speaks up to some versions."""

    def __init__(self, **highest: int) -> None:
        self.highest = {1: highest.get("fetch", -1), 59: highest.get("snapshot", -1)}

    def version_of(self, api_key: int, ours: tuple[int, int]) -> int | None:
        """The highest common version."""
        version = min(self.highest[api_key], ours[1])
        return version if version >= ours[0] else None


def read_by_kio(request: Any) -> Any:
    """The request as kio reads its bytes."""
    content = write_entity(request)
    kind = kio_class(type(request).__name__, request.__version__)
    back, end = entity_reader(kind)(content, 0)
    assert end == len(content)
    return back


@pytest.mark.parametrize("version", range(13, 19))
def test_every_fetch_version_bears_no_replica_id(version: int) -> None:
    """The bytes of each Fetch version, read back, have replica id -1 and the place asked for."""
    request, _ = fetch_api.encode_request(
        FETCH, "cluster", HighestVersions(fetch=version, snapshot=0)
    )
    assert request.__version__ == version
    back = read_by_kio(request)
    state = getattr(back, "replica_state", back)
    assert state.replica_id == -1
    assert back.cluster_id == "cluster"
    partition = back.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (5, 3)
    assert partition.current_leader_epoch == 7
    assert getattr(partition, "high_watermark", 4) == 4


@pytest.mark.parametrize("version", [0, 1])
def test_every_fetch_snapshot_version_bears_no_replica_id(version: int) -> None:
    """FetchSnapshot names the log by name, and bears replica id -1."""
    request, _ = fetch_api.encode_request(
        SNAPSHOT, "cluster", HighestVersions(fetch=13, snapshot=version)
    )
    back = read_by_kio(request)
    assert back.replica_id == -1
    assert back.topics[0].name == "__cluster_metadata"
    assert back.topics[0].partitions[0].position == 100


def test_a_request_with_a_replica_id_does_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should anyone ever put an id in, the request is not built."""
    monkeypatch.setattr(fetch_api, "NO_REPLICA", 1)
    request = fetch_api.fetch_request(FETCH, "cluster", 17)
    monkeypatch.undo()
    with pytest.raises(AssertionError, match="has the replica id 1"):
        fetch_api._checked_as_observer(request)


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (HighestVersions(fetch=17), "a:1 is a broker's listener"),
        (HighestVersions(fetch=12, snapshot=0), "a:1 is older than Kafka 3.3"),
    ],
)
def test_nodes_that_do_not_serve_the_log(node: HighestVersions, line: str) -> None:
    """Before anything is asked, what the node speaks tells a broker and an old release."""
    with pytest.raises(NotAControllerError, match=line):
        fetch_api.encode_request(FETCH, "cluster", node)
