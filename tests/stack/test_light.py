"""Light nodes on a real controller."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from featurewatch.stack.errors import RefusedError, WireError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire.light_nodes import LONG_SESSIONS, LightBroker, LightNodes
from featurewatch.stack.wire.probe import supported_ranges
from tests.waiting import eventually

pytestmark = pytest.mark.stack

UNSUPPORTED_VERSION, DUPLICATE, INVALID_REGISTRATION = 35, 101, 119


@pytest.fixture(scope="module")
def controller(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One 4.3.0 controller without brokers."""
    spec = ClusterSpec([NodeSpec(1, "4.3.0", Roles.CONTROLLER)], "4.0-IV3", LONG_SESSIONS)
    directory = tmp_path_factory.mktemp("light") / "cluster"
    with Cluster(spec, directory, cache=stack_cache, temporary=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ranges(controller: Cluster) -> dict[str, tuple[int, int]]:
    """The ranges that a real 4.3.0 node supports, from its own ApiVersions response."""
    port = controller.node(1).addresses.controller
    assert port is not None
    return supported_ranges(LOOPBACK, port)


@pytest.fixture
def light(controller: Cluster) -> Iterator[LightNodes]:
    """Unregisters the brokers that a test registered."""
    with LightNodes(controller.controllers, controller.cluster_id) as nodes:
        yield nodes
        nodes.unregister(nodes.ids)


def log_contains(cluster: Cluster, *words: str) -> bool:
    """Whether a line of the controller's log contains all these words before the deadline."""
    log = cluster.node(1).log
    return eventually(
        lambda: any(all(word in line for word in words) for line in log.read_text().splitlines())
    )


@pytest.mark.form("released")
def test_hundreds_register_and_are_rejected_by_range(
    light: LightNodes, controller: Cluster, ranges: dict[str, tuple[int, int]]
) -> None:
    """Brokers in range are live at once; Kafka rejects each other kind with its own error
    (M-42 as released)."""
    assert ranges["metadata.version"] == (7, 30)
    assert light.register(LightBroker(number, ranges) for number in range(100, 400)) == []
    assert light.ids == list(range(100, 400))
    assert log_contains(controller, "unfence has been granted", "broker 399 ")
    old = {"metadata.version": (1, 21), "kraft.version": (0, 1)}
    refused = light.register(
        [LightBroker(1, old), LightBroker(2, {}), LightBroker(100, ranges)], unfence=False
    )
    assert [(r.id, r.code) for r in refused] == [
        (1, UNSUPPORTED_VERSION),
        (2, INVALID_REGISTRATION),
        (100, DUPLICATE),
    ]
    assert refused[0].text == "UNSUPPORTED_VERSION"


def test_roll_to_other_ranges_after_a_controlled_shutdown(
    light: LightNodes, controller: Cluster, ranges: dict[str, tuple[int, int]]
) -> None:
    """After a shutdown 4.3.0 keeps the session: only the same incarnation may return."""
    before = LightBroker(500, ranges)
    light.register([before, LightBroker(501, ranges)])
    light.shut_down([500])
    assert light.ids == [501]
    wider = ranges | {"metadata.version": (7, 31)}
    assert [r.code for r in light.register([LightBroker(500, wider)])] == [DUPLICATE]
    assert light.register([replace(before, ranges=wider)]) == []
    assert log_contains(controller, "brokerId=500", "maxSupportedVersion=31")
    light.unregister([500])
    assert light.register([LightBroker(500, ranges)]) == []


def test_fencing_and_unregistering(
    light: LightNodes, controller: Cluster, ranges: dict[str, tuple[int, int]]
) -> None:
    """wantFence fences, unregistering removes, and a heartbeat of an unknown broker is rejected."""
    light.register([LightBroker(600, ranges)])
    light.fence([600])
    assert log_contains(controller, "brokerId=600", "fenced=1")
    light.heartbeat([600])
    light.unregister([600])
    with pytest.raises(RefusedError, match="unregistering broker 600: BROKER_ID_NOT_REGISTERED"):
        light.unregister([600])


def test_large_topics_without_a_broker(
    light: LightNodes, controller: Cluster, ranges: dict[str, tuple[int, int]]
) -> None:
    """Thousands of partitions are written to a real metadata log; rejections have Kafka's text."""
    light.register([LightBroker(700, ranges)])
    light.create_topic("wide", 5_000)
    log = controller.node(1).metadata_log / "00000000000000000000.log"
    assert log.stat().st_size > 5_000 * 70
    with pytest.raises(RefusedError, match=r"creating topic wide: TOPIC_ALREADY_EXISTS: .*wide"):
        light.create_topic("wide", 1)


def test_ghost_controllers_block_an_upgrade(
    light: LightNodes, controller: Cluster, ranges: dict[str, tuple[int, int]]
) -> None:
    """The real controller accepts the registration of a controller without a process."""
    light.register_controller(9, ranges)
    assert log_contains(controller, "RegisterControllerRecord", "id=9")


def test_session_ends_without_heartbeats(
    stack_cache: Cache, tmp_path: Path, ranges: dict[str, tuple[int, int]]
) -> None:
    """A light broker stays while its heartbeats continue; when they stop, the controller fences
    it."""
    sessions = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}
    spec = ClusterSpec([NodeSpec(1, "3.9.1", Roles.CONTROLLER)], properties=sessions)
    cluster = Cluster(spec, tmp_path / "cluster", cache=stack_cache, temporary=True)
    with cluster, LightNodes(cluster.controllers, cluster.cluster_id) as light:
        assert light.register([LightBroker(1, ranges), LightBroker(2, ranges)]) == []
        light.forget([2])
        with light.kept_alive(0.3):
            assert log_contains(cluster, "Fencing broker 2", "timed out")
            assert "Fencing broker 1" not in cluster.node(1).log.read_text()
        assert log_contains(cluster, "Fencing broker 1", "timed out")


def test_heartbeats_outlast_a_lost_broker_and_an_outage(
    stack_cache: Cache,
    tmp_path: Path,
    ranges: dict[str, tuple[int, int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that another client unregisters is dropped, and requests are retried if the
    controller is down for longer than the timeout. Both are logged, and the heartbeats of the
    others continue and unfence new registrations."""
    caplog.set_level(logging.WARNING, "featurewatch.stack.wire.light_nodes")
    spec = ClusterSpec([NodeSpec(1, "3.9.1", Roles.CONTROLLER)], properties=LONG_SESSIONS)
    cluster = Cluster(spec, tmp_path / "cluster", cache=stack_cache, temporary=True)
    with cluster, LightNodes(cluster.controllers, cluster.cluster_id, retry_timeout_s=1.0) as light:
        assert light.register([LightBroker(1, ranges), LightBroker(2, ranges)]) == []
        with light.kept_alive(0.05):
            with LightNodes(cluster.controllers, cluster.cluster_id, 1) as second_client:
                second_client.unregister([2])
            assert eventually(lambda: light.ids == [1])
            assert "light broker 2 is dropped: heartbeat of broker 2: STALE_BROKER" in caplog.text
            light.register([LightBroker(3, ranges)], unfence=False)
            assert log_contains(cluster, "unfence has been granted", "broker 3 ")

            cluster.node(1).kill()
            assert eventually(lambda: "failed, trying again" in caplog.text)
            cluster.node(1).start()
            light.register([LightBroker(4, ranges)], unfence=False)
            assert log_contains(cluster, "unfence has been granted", "broker 4 ")
        assert light.ids == [1, 3, 4]


def test_leader_is_found_again(quorum_430: Cluster, ranges: dict[str, tuple[int, int]]) -> None:
    """The active controller is found through any controller; a malformed address raises an
    error."""
    follower = next(n for n in quorum_430.nodes if n.id != quorum_430.leader().id)
    assert follower.controller is not None
    admin = AdminClient({"bootstrap.servers": quorum_430.bootstrap_servers})
    with LightNodes(follower.controller, quorum_430.cluster_id) as light:
        light.register([LightBroker(900, ranges)])
        try:
            assert eventually(lambda: 900 in admin.list_topics(timeout=60).brokers)
        finally:
            light.unregister([900])
    with pytest.raises(WireError, match="'nowhere' is not an address: write host:port"):
        LightNodes("nowhere", quorum_430.cluster_id)
