"""A quorum that grows from one voter to three, and moves to new disks and ports, while it is
followed."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from featurewatch.cli.commands.readiness.assess import states_from
from featurewatch.monitor.quorum.report import QuorumReport, quorum_report
from featurewatch.monitor.step import MonitorState
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.server_properties import Addresses
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import Ports
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.kraft.directory.files import read_meta
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES
from featurewatch.streams.types import FeatureName
from tests.cli.commands import featurewatch
from tests.cli.led_upgrade import DEADLINE_S, running
from tests.integration.processes.level_flips import update_level
from tests.processes import Process, wait_ready
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly, pytest.mark.timeout(7200)]

CONTROLLERS = (101, 102, 103)
BROKER = 1


class Followed:
    """A cluster that a source and a worker follow, which know the addresses of its beginning."""

    def __init__(self, cluster: Cluster, bus: Cluster, directory: Path) -> None:
        self.cluster, self.directory = cluster, directory
        prefix = f"moves-{cluster.cluster_id}"
        self.settings = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)
        on_bus = ["--bus", bus.bootstrap_servers, "--prefix", prefix]
        watched = ["--controllers", cluster.controllers, "--servers", cluster.bootstrap_servers]
        watched += ["--cluster-id", cluster.cluster_id]
        self.processes = [
            Process("watch", ["watch", *watched, *on_bus], directory),
            Process("worker", ["worker", "--store", "memory", *on_bus], directory),
        ]

    @contextmanager
    def following(self) -> Iterator[None]:
        """Both processes run; neither may end on its own."""
        ensure_topics(self.settings)
        try:
            for process in self.processes:
                process.start()
            wait_ready(self.processes, DEADLINE_S)
            yield
            assert [process.ended for process in self.processes] == [None, None]
        finally:
            for process in self.processes:
                process.kill()

    @property
    def voters(self) -> dict[int, tuple[str, tuple[str, ...]]]:
        """Directory ids and endpoints of the voters, as they are."""
        return {
            node_id: (self.directory_id(node_id), (f"CONTROLLER://{node.controller}",))
            for node_id in CONTROLLERS
            for node in (self.cluster.node(node_id),)
        }

    def directory_id(self, node_id: int) -> str:
        """The directory id in a node's ``meta.properties``."""
        return read_meta(self.cluster.node(node_id).data / "meta.properties")["directory.id"]

    def state(self) -> MonitorState | None:
        """What the worker knows."""
        return next(iter(states_from(self.settings).values()), None)

    def report(self) -> QuorumReport | None:
        """What the worker says of the quorum."""
        state = self.state()
        return None if state is None else quorum_report(state.image)

    def is_followed(self, ids: set[int]) -> bool:
        """Whether the worker shows these voters as they are, and that all of them fetch."""
        report = self.report()
        if report is None or report.fetching != len(ids):
            return False
        shown = {int(one.node_id): (one.directory_id, one.endpoints) for one in report.voters}
        return shown == {node_id: self.voters[node_id] for node_id in ids}

    def change(self, node_id: int, *arguments: str, configured: bool = False) -> None:
        """Runs a command of ``quorum`` once its dry run says yes."""
        node = self.cluster.node(node_id)
        config = ("--command-config", str(node.directory / "server.properties"))
        server = ("--bootstrap-server", self.cluster.bootstrap_servers)
        words = ("quorum", *server, *(config if configured else ()), *arguments)

        def is_allowed() -> bool:
            done = featurewatch(self.directory, *words, "--dry-run", timeout_s=DEADLINE_S)
            return done.returncode == 0

        assert eventually(is_allowed, DEADLINE_S), words
        done = featurewatch(self.directory, *words, timeout_s=DEADLINE_S)
        assert done.returncode == 0, done.stderr

    def move(self, node_id: int, ports: Ports) -> None:
        """Gives a voter a new disk and a new port: it leaves the quorum, and comes back."""
        node = self.cluster.node(node_id)
        old = self.directory_id(node_id)
        node.stop()
        removal = ("remove-controller", "-i", str(node_id), "--controller-directory-id", old)
        self.change(node_id, *removal)
        shutil.rmtree(node.data)
        node.addresses = Addresses(None, ports.reserve())
        self.cluster.addresses[node_id] = node.addresses
        self.cluster.change(self.cluster.spec)
        node.format(self.cluster.cluster_id, ["--no-initial-controllers"])
        node.start(timeout_s=DEADLINE_S)
        self.change(node_id, "add-controller", configured=True)

    def firing(self) -> dict[str, str]:
        """The alerts that fire now."""
        with closing(TopicReader(self.settings, ALERTS)) as reader:
            alerts = [decode_alert(message.value()) for message in reader.read_existing()]
        last = {alert.id: alert for alert in alerts}
        return {one.rule: one.summary for one in last.values() if one.state == "firing"}


def test_a_quorum_grows_and_moves(stack_cache: Cache, bus: Cluster, tmp_path: Path) -> None:
    """Each change is shown as it is, with all voters fetching; none of the addresses that the
    source was given is left at the end, and it still follows. One alert stays, and is right: the
    voters have other disks than an hour ago."""
    nodes = [NodeSpec(node_id, "4.3.0", Roles.CONTROLLER) for node_id in CONTROLLERS]
    spec = ClusterSpec(
        [*nodes, NodeSpec(BROKER, "4.3.0", Roles.BROKER)],
        dynamic_voters=True,
        first_voters=CONTROLLERS[:1],
    )
    ports = Ports()
    with running(spec, tmp_path / "cluster", stack_cache) as cluster:
        followed = Followed(cluster, bus, tmp_path)
        given = cluster.controllers
        with followed.following():
            assert eventually(lambda: followed.is_followed({101}), DEADLINE_S), followed.report()
            for count in (2, 3):
                followed.change(CONTROLLERS[count - 1], "add-controller", configured=True)
                ids = {*CONTROLLERS[:count]}
                assert eventually(lambda ids=ids: followed.is_followed(ids), DEADLINE_S)  # type: ignore[misc]
            for node_id in (102, 103, 101):
                if node_id == 101:
                    # A broker finds the next leader by the addresses in its configuration alone,
                    # and this is the last of those that it was started with.
                    cluster.node(BROKER).stop()
                    cluster.node(BROKER).start(timeout_s=DEADLINE_S)
                followed.move(node_id, ports)
                assert eventually(lambda: followed.is_followed({*CONTROLLERS}), DEADLINE_S), (
                    followed.report()
                )
            assert {*given.split(",")}.isdisjoint(cluster.controllers.split(","))

            update_level(cluster, FeatureName("share.version"), 0)
            assert eventually(lambda: _last_change(followed.settings) == (1, 0), DEADLINE_S)
            expected = {"voter-directory-changed"}
            assert eventually(lambda: followed.firing().keys() == expected, DEADLINE_S), (
                followed.firing()
            )
    ports.release()


def _last_change(settings: BusSettings) -> tuple[int | None, int | None]:
    """Levels before and after the newest change of share.version."""
    with closing(TopicReader(settings, FEATURE_CHANGES)) as reader:
        changes = [decode_change(message.value()) for message in reader.read_existing()]
    mine = [change for change in changes if change.feature == "share.version"]
    return (mine[-1].before, mine[-1].after or 0) if mine else (None, None)
