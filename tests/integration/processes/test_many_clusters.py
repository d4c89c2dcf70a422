"""One source process and one worker follow many clusters: the ordinary case."""

import contextlib
import time
from pathlib import Path

import pytest
import yaml

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_change, decode_snapshot
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.topics import FEATURE_CHANGES, STATE
from featurewatch.streams.types import METADATA_VERSION
from tests.processes import Process, wait_ready


@pytest.mark.stack
def test_clusters_of_two_releases_and_both_kinds_of_sources_stay_apart(
    quorum_391: Cluster, quorum_430: Cluster, bus: Cluster, tmp_path: Path
) -> None:
    """By log and by answers, each cluster comes out with its own levels, nodes and revisions."""
    prefix = f"many-{time.time_ns()}"
    config = tmp_path / "featurewatch.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "bus": {"bootstrap_servers": bus.bootstrap_servers, "prefix": prefix},
                "clusters": [
                    {
                        "controllers": quorum_391.controllers,
                        "servers": quorum_391.bootstrap_servers,
                    },
                    {"servers": quorum_430.bootstrap_servers},
                ],
            }
        )
    )
    processes = [
        Process(name, [name, "--config", str(config)], tmp_path) for name in ("watch", "worker")
    ]
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix)
    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        sources = {
            quorum_391.cluster_id: {"kraft", "api-versions"},
            quorum_430.cluster_id: {"api-versions"},
        }
        states = _states(settings, sources)
    finally:
        for process in processes:
            process.kill()
    older, newer = states[quorum_391.cluster_id], states[quorum_430.cluster_id]
    assert older.sources == {"kraft": "following", "api-versions": "following"}
    assert newer.sources == {"api-versions": "following"}
    assert dict(older.finalized) == {"metadata.version": 21}
    assert newer.finalized[METADATA_VERSION] == 30
    assert {(node_class.role, node_class.nodes) for node_class in older.classes} == {
        ("broker", (1, 2, 3)),
        ("controller", (1, 2, 3)),
    }
    assert {node_class.role for node_class in newer.classes} == {"broker", "controller"}
    with contextlib.closing(TopicReader(settings, FEATURE_CHANGES)) as reader:
        changes = [decode_change(message.value()) for message in reader.read_existing()]
    assert {change.revision for change in changes if change.cluster == quorum_391.cluster_id} == {1}
    assert len({change.id for change in changes}) == len(changes)


def _states(settings: BusSettings, sources: dict[str, set[str]]) -> dict[str, Snapshot]:
    """The newest states, once all nodes of all clusters are known, and all sources report."""
    states: dict[str, Snapshot] = {}
    deadline = time.monotonic() + 60
    with contextlib.closing(TopicReader(settings, STATE)) as reader:
        while time.monotonic() < deadline:
            for message in reader.poll(0.5):
                state = decode_snapshot(message.value())
                states[state.cluster] = state
            complete = [
                state.ready
                and sum(len(node_class.nodes) for node_class in state.classes) == 6
                and set(state.sources) == sources[cluster]
                for cluster, state in states.items()
            ]
            if set(states) == set(sources) and all(complete):
                time.sleep(1)  # what comes still must change nothing
                return states
    raise AssertionError(f"the states did not become complete: {states}")
