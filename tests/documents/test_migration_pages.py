"""The page about the way from ZooKeeper to KRaft, on a real migration that obeys the tool.

The command lines of a section are run and compared as on every page; then the section's step is
carried out, on the nodes that ``upgrade status`` names and when ``upgrade check restart`` agrees.
A producer runs from the beginning to the end.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import Roles, zookeeper_mode
from tests.conftest import MakeCluster, MakeEnsemble
from tests.documents.blocks import Command, blocks, commands
from tests.documents.following import ended
from tests.documents.scripts import codes_of, place_of
from tests.documents.session import Session, assert_shown
from tests.paths import ROOT
from tests.stack.migration import ClusterMigration
from tests.stack.traffic import Traffic
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

PAGE: Final = "docs/how-to/zookeeper-to-kraft.md"
PLACE: Final = "migration"
PROTOCOL: Final = "inter.broker.protocol.version"
BROKERS: Final = (1, 2, 3)
WITHOUT_MIGRATION: Final = {
    "zookeeper.metadata.migration.enable": "false",
    "controller.listener.names": "",
    "controller.quorum.voters": "",
}
"""A stack's properties can be replaced and not removed; Kafka takes these as if they were."""


class Reader:
    """Follows the page, and does by hand what it says; asks the tool before each node."""

    def __init__(self, session: Session, cluster: Cluster, zookeeper: str) -> None:
        self._session, self._cluster, self._zookeeper = session, cluster, zookeeper
        self._migration = ClusterMigration(cluster)
        self._actions: dict[str, Callable[[], None]] = {
            "2. Restart the brokers on the bridge release": self._install_bridge,
            "3. Raise the protocol version": self._raise_protocol,
            "4. Start the controllers": self._start_controllers,
            "5. Switch the brokers to migration": lambda: self._obey("migrate", self._restart),
            "6. Restart the brokers in KRaft mode": self._move_brokers,
            "8. The way back": self._go_back,
            "Where it ends": self._begin_again,
            "9. End the migration": self._end,
        }

    def read(self) -> None:
        """Runs the lines of each section, and carries out its step."""
        headings = [
            (number, found[1])
            for number, line in enumerate((ROOT / PAGE).read_text().splitlines(), start=1)
            if (found := re.match(r"##+ (.+)", line))
        ]
        assert {*self._actions} <= {heading for _, heading in headings}
        lines = [command for block in blocks(ROOT / PAGE) for command in commands(block)]
        ends = [number for number, _ in headings[1:]] + [10**6]
        for (begin, heading), end in zip(headings, ends, strict=True):
            for command in lines:
                if begin < command.line < end and place_of(command) == PLACE:
                    printed = self._run(command)
                    if command.output:
                        assert_shown(command.output, printed)
            self._actions.get(heading, lambda: None)()

    def _run(self, command: Command) -> str:
        self._session.done.clear()  # the same question has other answers
        return self._session.run(command, codes_of(command))

    def _ask(self, text: str, codes: tuple[int, ...] = (0,)) -> str:
        self._session.done.clear()
        return self._session.run(Command(PAGE, 0, f"featurewatch upgrade {text}"), frozenset(codes))

    @property
    def _where(self) -> str:
        controllers = "controller-1:9093"
        read = (
            f"--bootstrap-controller {controllers}"
            if controllers in self._session.names
            else "--running 3.9 --zookeeper zk-1:2181/kafka"
        )
        return f"{read} --bootstrap-server kafka-1:9092"

    def _may_restart(self, node: int) -> None:
        where = self._where.removeprefix("--running 3.9 ")
        self._ask(f"check restart --node {node} --wait {where}")

    def _status(self) -> dict[str, Any]:
        text = self._ask(f"status --plan plan.yaml --json {self._where}", (0, 3, 4))
        status: dict[str, Any] = json.loads(text)
        return status

    def _obey(self, step: str, restart: Callable[[int], None]) -> None:
        """Carries out a step as the tool leads: until another one is the current one."""
        restarted: list[int] = []
        while True:
            found: dict[str, Any] = {}

            def answers(found: dict[str, Any] = found) -> bool:
                found.update(self._status())
                return found["current"] != step or (
                    found["verdict"] == "yes" and found["next_node"] not in (None, *restarted)
                )

            assert eventually(answers, 180), found
            if found["current"] != step:
                return
            node = found["next_node"]
            self._may_restart(node)
            restart(node)
            restarted.append(node)

    def _restart(self, node: int) -> None:
        self._cluster.roll(ids=[node])

    def _install_bridge(self) -> None:
        for node in BROKERS:
            self._may_restart(node)
            self._cluster.roll("3.9.1", [node])

    def _raise_protocol(self) -> None:
        spec = self._cluster.spec
        self._cluster.change(replace(spec, properties={**spec.properties, PROTOCOL: "3.9"}))
        self._obey("bridge-protocol", self._restart)

    def _start_controllers(self) -> None:
        self._migration.add_controllers(3)
        self._read_controllers()

    def _read_controllers(self) -> None:
        controllers = {"controller-1:9093": self._cluster.controllers}
        self._session.names = {**self._session.names, **controllers}

    def _move_brokers(self) -> None:
        self._obey("kraft-brokers", self._migration.move_broker)

    def _with_brokers(self, properties: dict[str, str]) -> None:
        """Sets the brokers up for ZooKeeper mode."""
        spec = self._cluster.spec
        nodes = [
            replace(node, roles=Roles.ZOOKEEPER, properties=properties)
            if node.id in BROKERS
            else node
            for node in spec.nodes
        ]
        self._cluster.change(replace(spec, nodes=nodes))

    def _go_back(self) -> None:
        self._with_brokers({})
        for number, node in enumerate(BROKERS, start=1):
            self._may_restart(node)
            self._restart(node)
            status = self._status()
            (text,) = (one["text"] for one in status["steps"] if one["id"] == "kraft-brokers")
            assert (status["current"], text) == ("kraft-brokers", f"{3 - number} of 3 brokers")
        for controller in self._migration.controllers:
            self._cluster.node(controller).stop()
        with _zookeeper(self._zookeeper) as client:
            client.delete("/controller")
            client.delete("/migration")
            assert eventually(lambda: client.exists("/controller") is not None)
        del (names := dict(self._session.names))["controller-1:9093"]
        self._session.names = names
        self._with_brokers(WITHOUT_MIGRATION)
        for node in BROKERS:
            self._may_restart(node)
            self._restart(node)

    def _begin_again(self) -> None:
        """With new directories; the plan has no time of validation, for which a test has none."""
        arguments = "--target 4.4 --running 3.9 --validation-hours 0 --out plan.yaml"
        where = "--zookeeper zk-1:2181/kafka --bootstrap-server kafka-1:9092"
        self._ask(f"plan {arguments} {where}")
        self._with_brokers({})
        for controller in self._migration.controllers:
            shutil.rmtree(self._cluster.node(controller).data)
        self._cluster.start()
        self._read_controllers()
        self._obey("migrate", self._restart)
        self._move_brokers()
        # The page shows an answer of yes: alerts of the last restart take some seconds to resolve.
        found: dict[str, Any] = {}

        def may_end() -> bool:
            found.update(self._status())
            return (found["current"], found["verdict"]) == ("finalize-migration", "yes")

        assert eventually(may_end, 180), found

    def _end(self) -> None:
        self._cluster.change(replace(self._cluster.spec, zookeeper=None, migrating=False))
        self._obey("finalize-migration", self._restart)


@contextmanager
def _zookeeper(connect: str) -> Iterator[KazooClient]:
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_a_migration_that_obeys_the_tool(
    make_ensemble: MakeEnsemble, make_cluster: MakeCluster, tmp_path: Path
) -> None:
    """The page in its order, a way back taken, and nothing lost that was acknowledged."""
    zookeeper = f"{make_ensemble().connect_string}/kafka"
    cluster = make_cluster(
        zookeeper_mode(3, zookeeper, release="3.8.1", properties={PROTOCOL: "3.8"})
    )
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic("orders", 6, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([topic])["orders"].result(60)
    names = {
        "kafka-1:9092": cluster.bootstrap_servers,
        "zk-1:2181/kafka": zookeeper,
    }
    with (
        ended(Session(tmp_path, names)) as session,
        Traffic(cluster.bootstrap_servers, "orders", 6, pause_s=0.05) as traffic,
    ):
        assert eventually(lambda: traffic.acknowledged_count > 100)
        Reader(session, cluster, zookeeper).read()
        before = traffic.acknowledged_count
        assert eventually(lambda: traffic.acknowledged_count > before)
        traffic.end_writing()
        assert eventually(lambda: traffic.unread_count == 0)
        assert (traffic.errors, traffic.order_errors()) == ([], [])
