"""A configured cluster that nobody reaches is in the state and in an alert."""

import uuid
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from tests.integration.published import PublishedOutputs
from tests.processes import Process, wait_ready

pytestmark = pytest.mark.stack


def test_a_cluster_that_is_never_reached(bus: Cluster, tmp_path: Path) -> None:
    """Its addresses stand for it while its id is not known."""
    published = PublishedOutputs(bus, f"unreached-{uuid.uuid4().hex[:8]}")
    worker = Process("worker", ["worker", *published.flags], tmp_path)
    source = Process("watch", ["watch", "--servers", "127.0.0.1:9", *published.flags], tmp_path)
    worker.start()
    try:
        wait_ready([worker])
        source.start()
        state = published.state(
            "127.0.0.1:9", lambda _, firing: firing == {"source-stalled"}, [worker, source]
        )
        assert (state.ready, dict(state.sources)) == (False, {"api-versions": "stalled"})
    finally:
        source.kill()
        worker.kill()
