"""A real cluster whose release is not known: without its file, and with a level of the next one.

Nothing false is said meanwhile, and what is learned from the jars is as good as the own file.
"""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from featurewatch.controller.software import LEARN
from featurewatch.kafka.releases import package_files
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire import requests
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION
from tests.integration.published import PublishedOutputs
from tests.learned_releases import HIDDEN, hidden, libs_of
from tests.process_logs import started
from tests.processes import Process, free_port
from tests.waiting import eventually

pytestmark = pytest.mark.stack

BEFORE, NEWEST = package_files()[-2:]
PATCH = NEWEST.content["kafka"]
RANGES = {feature: (low, high) for feature, (low, high) in NEWEST.content["supported"].items()}
NEWER = f"unknown, newer than {BEFORE.release} (metadata.version {{}}-{{}})".format(
    *RANGES[METADATA_VERSION]
)
NEXT = NEWEST.content["unstable"][METADATA_VERSION][1]
UPGRADE, SAFE_DOWNGRADE = 1, 2
NOWHERE = "99.0"
"""A release from which on nothing is hidden."""


@pytest.fixture(scope="module")
def cluster(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Node 1 runs the newest release already, and broker 2 the one before."""
    nodes = [NodeSpec(1, PATCH), NodeSpec(2, BEFORE.content["kafka"], Roles.BROKER)]
    directory = tmp_path_factory.mktemp("unknown") / "cluster"
    spec = ClusterSpec(nodes)
    with started(Cluster(spec, directory, cache=stack_cache, temporary=True)) as running:
        yield running


class Product:
    """A featurewatch whose package ends before a release, and what it says of a cluster."""

    def __init__(self, cluster: Cluster, directory: Path, first: str) -> None:
        self._cluster, self._directory, self._first = cluster, directory, first

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the JSON of a command."""
        learned = {VARIABLE: str(self._directory / "learned")}
        done = hidden(self._directory, self._first, *arguments, **learned)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def monitored(self) -> dict[str, Any]:
        """The alerts of a monitor, and its page."""
        program = str(Path(__file__).with_name("monitored.py"))
        return self.run(program, self._cluster.controllers)[1]

    def readiness(self) -> tuple[int, dict[str, Any]]:
        """Of the newest release that runs."""
        at = ("--bootstrap-controller", self._cluster.controllers)
        return self.run("readiness", *at, "--json")


def set_levels(cluster: Cluster, levels: dict[str, int], kind: int = UPGRADE) -> None:
    """Finalizes levels, one after another."""
    port = cluster.node(1).addresses.controller
    assert port is not None
    with BlockingConnection(LOOPBACK, port, 60) as connection:
        for feature, level in levels.items():
            response = connection.request(requests.update_features([(feature, level, kind)]))
            assert response.error_code == 0, response


def upgrade(cluster: Cluster) -> None:
    """Ends the roll, and finalizes the newest levels."""
    cluster.roll(PATCH, [2])
    levels = {feature: high for feature, (_, high) in RANGES.items() if feature != KRAFT_VERSION}
    set_levels(cluster, {METADATA_VERSION: levels.pop(METADATA_VERSION), **levels})


def unregister_a_controller(cluster: Cluster) -> None:
    """Has a record written that only the newest release has."""
    with LightNodes(cluster.controllers, cluster.cluster_id) as nodes:
        nodes.register_controller(9, RANGES)
        nodes.unregister_controller(9)


def test_without_its_file_nothing_false_is_reported_until_it_is_learned(
    cluster: Cluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """In a roll, at its newest levels, with its own record, and after `releases learn`."""
    ignorant = Product(cluster, tmp_path, NEWEST.release)
    rolling = ignorant.monitored()
    page = rolling["page"]
    assert (page["newest_release"], page["nodes_on_newest"], page["nodes"]) == (NEWER, 1, 2)
    # It is true that the old broker holds the levels back, which a controller would refuse.
    assert {*rolling["alerts"]} == {"release-unknown", "upgrade-blocked"}
    assert "broker 2 holds" in rolling["alerts"]["upgrade-blocked"]

    upgrade(cluster)
    rolled = ignorant.monitored()
    assert [*rolled["alerts"]] == ["release-unknown"]
    assert LEARN in rolled["alerts"]["release-unknown"]
    page = rolled["page"]
    assert (page["newest_release"], page["nodes_on_newest"], page["nodes"]) == (NEWER, 2, 2)
    code, report = ignorant.readiness()
    assert (code, report["verdict"], report["target"]) == (4, "unknown", None)
    assert (report["blockers"], report["ghosts"]) == ([], [])
    assert any(LEARN in reason for reason in report["reasons"])

    unregister_a_controller(cluster)
    with_record = ignorant.monitored()
    assert {*with_record["alerts"]} == {"release-unknown", "unreadable"}
    assert "RECORD_TYPE_29-v0" in with_record["alerts"]["unreadable"]
    assert ignorant.readiness()[0] == 4

    libs = libs_of(stack_cache, PATCH, tmp_path / "libs")
    code, document = ignorant.run("releases", "learn", "--libs", str(libs), "--json")
    assert (code, document["release"]) == (0, NEWEST.release)
    own = Product(cluster, tmp_path / "own", NOWHERE)
    assert own.monitored()["alerts"] == {}
    note = f"by tables learned from {libs} (Kafka {PATCH})"
    expected_page, page = own.monitored()["page"], ignorant.monitored()["page"]
    assert page == {**expected_page, "learned": [note]}
    (code, expected), (learned_code, learned) = own.readiness(), ignorant.readiness()
    assert (code, learned_code) == (0, 0)
    # What is learned was not compared with the classes of its release.
    response = {**expected["controller_response"], "exact": False}
    assert learned == {
        **expected,
        "at_ms": learned["at_ms"],
        "learned": [note],
        "controller_response": response,
    }


@pytest.mark.nightly
def test_a_worker_that_starts_with_the_learned_file_has_the_record_read_again(
    cluster: Cluster, bus: Cluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """It keeps its tables, and the alerts about what was not known end."""
    if cluster.node(2).release != PATCH:
        upgrade(cluster)
        unregister_a_controller(cluster)
    outputs = PublishedOutputs(bus, "learned")
    learned = {VARIABLE: str(tmp_path / "learned")}
    ports = ("FEATUREWATCH_WEB__SOURCE_PORT", "FEATUREWATCH_WEB__PAGE_PORT")
    up = Process(
        "up",
        ["up", "--controllers", cluster.controllers, *outputs.flags],
        tmp_path,
        {**learned, **{name: str(free_port()) for name in ports}},
        program=(HIDDEN, NEWEST.release),
    )
    try:
        up.start()
        not_known = {"release-unknown", "unreadable"}
        before = outputs.state(
            cluster.cluster_id,
            lambda state, rules: rules == not_known and not state.ready and state.revision > 1,
            [up],
        )
        # In order: with other tables the message that a crash leaves unfinished says other things.
        os.kill(up.pid, signal.SIGTERM)
        assert eventually(lambda: up.ended is not None)
        libs = libs_of(stack_cache, PATCH, tmp_path / "libs")
        learn = ("releases", "learn", "--libs", str(libs))
        assert hidden(tmp_path, NEWEST.release, *learn, **learned).returncode == 0
        up.start()
        after = outputs.state(
            cluster.cluster_id, lambda state, rules: not rules and state.ready, [up]
        )
    finally:
        up.kill()
    assert (after.finalized, after.revision) == (before.finalized, before.revision)
    assert "was not known when it was read, and is known now" in up.log.read_text()


@pytest.mark.nightly
def test_the_release_after_is_not_taken_for_the_newest(cluster: Cluster, tmp_path: Path) -> None:
    """Its level is finalized on nodes that have it, as one that is not in production yet."""
    cluster.change(replace(cluster.spec, properties={"unstable.feature.versions.enable": "true"}))
    cluster.roll(PATCH)
    set_levels(cluster, {METADATA_VERSION: NEXT})
    own = Product(cluster, tmp_path, NOWHERE)
    monitored = own.monitored()
    assert monitored["alerts"] == {}
    assert monitored["page"]["levels"][0] == {
        "feature": METADATA_VERSION,
        "level": NEXT,
        "name": f"{NEXT} (newer than {NEWEST.content['levels'][-2]['name']})",
    }
    code, report = own.readiness()
    assert (code, report["target"]) == (0, NEWEST.release)
    # Towards the newest release this level is one to go back from: the controller says the same.
    set_levels(cluster, {METADATA_VERSION: RANGES[METADATA_VERSION][1]}, SAFE_DOWNGRADE)
    assert report["controller_response"]["accepted"]
    assert report["downgrade_path"]["lossless"]
    set_levels(cluster, {METADATA_VERSION: NEXT})
    ignorant = Product(cluster, tmp_path, NEWEST.release)
    # The record of the test before is in the log, where that ran.
    assert {*ignorant.monitored()["alerts"]} - {"unreadable"} == {"release-unknown"}
    code, report = ignorant.readiness()
    assert (code, report["target"], report["controller_response"]) == (4, None, None)
