"""The demo's second act: clusters in ZooKeeper mode, one of them with features to finalize.

No released broker in ZooKeeper mode has any, so a reference cluster of KIP-584 runs beside a real
Kafka 3.9.1; Kafka's own ``kafka-features`` is what changes it.
"""

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from featurewatch.cli.commands.demo.blockers import blockers_of_level
from featurewatch.cli.commands.demo.monitor import Monitor
from featurewatch.cli.commands.demo.output_log import OutputLog
from featurewatch.cli.commands.demo.printer import DemoPrinter
from featurewatch.cli.commands.demo.retired import retire_sources
from featurewatch.cli.config.settings import ClusterSection as WatchedCluster
from featurewatch.cli.config.settings import Settings
from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    broker_path,
    encode_broker,
)
from featurewatch.stack.errors import StartError
from featurewatch.stack.java.jars import tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import KAFKA_WITH_ZOOKEEPER, zookeeper_mode
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.reference_nodes import ReferenceProcess, reference_nodes
from featurewatch.stack.wire.znodes import read_json
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    SupportedRange,
)
from featurewatch.tables.image.cluster import ClusterImage

_FEATURE_COMMAND: Final = "org.apache.kafka.tools.FeatureCommand"
_FEATURES: Final = (
    "group_coordinator=1-2",
    "transaction_coordinator=1-5",
    "consumer_offsets_topic_schema=1-1",
)
"""The example of KIP-584."""
_TRANSACTIONS: Final = FeatureName("transaction_coordinator")
_BROKERS: Final = 5
_NEWER, _UNGUARDED = NodeId(77), NodeId(99)


def play_zookeeper(
    directory: Path, settings: Settings, bus: Cluster, feed: OutputLog, narrator: DemoPrinter
) -> list[tuple[str, int]]:
    """Plays the act on ``bus``, which ``settings`` name; everything that it starts ends with it.

    Returns the levels that were finalized in it, in order.
    """
    with ExitStack() as stack:
        narrator.step(
            f"On ZooKeeper: an ensemble of three, a reference cluster of {_BROKERS} brokers, "
            f"Kafka {KAFKA_WITH_ZOOKEEPER}"
        )
        ensemble = Ensemble(directory / "ensemble", EnsembleSpec(3), temporary=True)
        stack.enter_context(ensemble)
        connect = ensemble.connect_string
        spec = zookeeper_mode(1, f"{connect}/kafka")
        kafka = Cluster(spec, directory / "kafka", temporary=True)
        nodes = reference_nodes(
            _BROKERS,
            directory,
            f"{connect}/reference",
            ("--features", *_FEATURES),
            temporary=True,
        )
        stack.callback(_stop, nodes)
        with ThreadPoolExecutor(1) as pool:
            reference = pool.submit(_start, nodes)
            stack.enter_context(kafka)
            reference.result()
        watched = [WatchedCluster(zookeeper=f"{connect}/{name}") for name in ("reference", "kafka")]
        settings = settings.model_copy(update={"clusters": watched})
        ended = list(feed.states)
        monitor = stack.enter_context(Monitor(settings, bus))
        retire_sources(settings.bus_settings(), ended, narrator)
        drama = _ZookeeperScript(f"{connect}/reference", nodes, kafka, monitor, feed, narrator)
        drama.play()
        return drama.finalized


def _start(nodes: list[ReferenceProcess]) -> None:
    for node in nodes:
        node.start()


def _stop(nodes: list[ReferenceProcess]) -> None:
    for node in nodes:
        node.kill()


class _ZookeeperScript:
    """The scenes; each waits until featurewatch has seen what was done."""

    def __init__(
        self,
        connect: str,
        nodes: list[ReferenceProcess],
        kafka: Cluster,
        monitor: Monitor,
        feed: OutputLog,
        narrator: DemoPrinter,
    ) -> None:
        self.finalized: list[tuple[str, int]] = []
        self._connect = connect
        self._nodes = nodes
        self._kafka = kafka
        self._monitor = monitor
        self._feed = feed
        self._narrator = narrator
        self._id = ClusterId(read_json(connect, "/cluster/id")["id"])

    def play(self) -> None:
        """All scenes."""
        self._wait(lambda image: image.ready and len(image.nodes) == _BROKERS)
        for text in _FEATURES:
            name, _, span = text.partition("=")
            self.finalized.append((name, int(span.rpartition("-")[2])))
        self._wait_changes()
        self._narrator.did("a new cluster finalizes what its first controller supports (KIP-584)")
        self._show_kafka()
        self._narrator.step("Kafka's own kafka-features takes a level back")
        self._update("downgrade", 4)
        self._narrator.step(f"Broker {_NEWER} is too new: it supports transaction_coordinator 5-6")
        self._newcomer()
        self._narrator.step(f"Broker {_UNGUARDED} is of the release before")
        with self._registered(SupportedRange(1, 4)):
            self._update("upgrade", 5, accepted=False)
        self._wait_left(_UNGUARDED)
        self._narrator.did(f"broker {_UNGUARDED} has left")
        self._update("upgrade", 5)
        self._narrator.step(
            f"Broker {_UNGUARDED} comes back, and does not look before it registers"
        )
        with self._registered(SupportedRange(1, 4)):
            self._wait_firing(True)
            self._narrator.did("the controller ignores it; only featurewatch reports it")
        self._wait_firing(False)
        self._kill_controller()
        self._update("downgrade", 3)
        self._show()

    def _update(self, command: str, level: int, *, accepted: bool = True) -> None:
        """Runs the tool, and waits for what follows."""
        running = next(node for node in self._nodes if node.running)
        arguments = [command, "--feature", f"{_TRANSACTIONS}={level}"]
        self._narrator.did(f"kafka-features {' '.join(arguments)}")
        done = subprocess.run(
            tool_command(
                KAFKA_WITH_ZOOKEEPER,
                _FEATURE_COMMAND,
                *("--bootstrap-server", running.address),
                *arguments,
            ),
            check=False,
            capture_output=True,
            text=True,
        )
        printed = done.stdout.strip().splitlines()
        self._narrator.did(f"  {printed[0] if printed else done.stderr.strip().splitlines()[-1]}")
        if (done.returncode == 0) is not accepted:
            raise RuntimeError(f"the reference controller answered with {done.returncode}")
        if accepted:
            self.finalized.append((_TRANSACTIONS, level))
            self._wait_changes()
            return
        image = self._monitor.image(self._id)
        blockers = blockers_of_level(image, _TRANSACTIONS, FeatureLevel(level)) if image else []
        self._narrator.blockers(blockers)

    def _newcomer(self) -> None:
        """A broker that a finalized level excludes exits before it registers."""
        directory = self._nodes[0].directory.parent / f"reference-{_NEWER}"
        features = ("--features", *_FEATURES[:1], f"{_TRANSACTIONS}=5-6", *_FEATURES[2:])
        node = ReferenceProcess(_NEWER, directory, self._connect, features, temporary=True)
        try:
            node.start()
        except StartError:
            self._narrator.did(node.last_log_line)
        else:
            raise RuntimeError(f"broker {_NEWER} should not have been let in")
        finally:
            node.kill()

    @contextmanager
    def _registered(self, transactions: SupportedRange) -> Iterator[None]:
        """A broker that registers and does nothing else, until the end of the block."""
        identity = BrokerIdentity(_UNGUARDED, {"PLAINTEXT": ("127.0.0.1", 9, "PLAINTEXT")})
        ranges = {
            "group_coordinator": SupportedRange(1, 2),
            "consumer_offsets_topic_schema": SupportedRange(1, 1),
            _TRANSACTIONS: transactions,
        }
        client = KazooClient(self._connect)
        client.start()
        try:
            content = encode_broker(RELEASED, identity, ranges, now_ms=0)
            client.create(broker_path(_UNGUARDED), content, ephemeral=True)
            self._wait(lambda image: NodeKey(Role.BROKER, _UNGUARDED) in image.nodes.nodes)
            yield
        finally:
            client.stop()
            client.close()

    def _kill_controller(self) -> None:
        image = self._wait(lambda image: image.zookeeper.controller is not None)
        controller = image.zookeeper.controller
        epoch = image.zookeeper.controller_epoch
        node = next(
            node for node in self._nodes if controller and node.node_id == controller.node_id
        )
        self._narrator.step(f"kill -9 of broker {node.node_id}, the controller")
        node.kill()
        image = self._wait(lambda image: image.zookeeper.controller_epoch > epoch)
        image = self._wait(lambda image: image.zookeeper.controller not in (None, controller))
        successor = image.zookeeper.controller
        self._narrator.did(
            f"broker {successor.node_id if successor else '?'} is elected, controller epoch "
            f"{image.zookeeper.controller_epoch}"
        )
        self._wait_left(NodeId(node.node_id))
        self._narrator.did(f"broker {node.node_id} has left: its session has expired")

    def _show(self) -> None:
        """The newest state of the reference cluster, as soon as it has the last level."""
        level = self.finalized[-1][1]

        def newest(feed: OutputLog) -> bool:
            state = feed.states.get(self._id)
            return state is not None and state.finalized.get(_TRANSACTIONS) == level

        self._wait_published(newest)
        state = self._feed.states[self._id]
        self._narrator.state(state, self._feed.firing_of(self._id))

    def _show_kafka(self) -> None:
        """The real Kafka beside it: watched the same way, and nothing to finalize."""
        cluster = ClusterId(self._kafka.cluster_id)
        image = self._monitor.wait(cluster, lambda image: image.ready and len(image.nodes) == 1)
        self._narrator.did(
            f"Kafka {KAFKA_WITH_ZOOKEEPER} in ZooKeeper mode ({cluster}): "
            f"{len(image.nodes)} broker, {len(image.features.levels)} finalized features, "
            f"controller {image.zookeeper.controller and image.zookeeper.controller.node_id}"
        )

    def _wait_firing(self, firing: bool) -> None:
        self._wait_published(lambda feed: bool(feed.firing_of(self._id)) is firing)

    def _wait_changes(self) -> None:
        """Waits until every finalized level is published on its topic."""

        def has_changes(feed: OutputLog) -> bool:
            mine = [change for change in feed.changes if change.cluster == self._id]
            return len(mine) >= len(self.finalized)

        self._wait_published(has_changes)

    def _wait_published(self, done: Callable[[OutputLog], bool]) -> None:
        for _ in attempts(30.0):
            if done(self._feed):
                return
        raise TimeoutError("featurewatch published no state within 30 s")

    def _wait_left(self, broker: NodeId) -> None:
        self._wait(lambda image: NodeKey(Role.BROKER, broker) not in image.nodes.nodes)

    def _wait(self, done: Callable[[ClusterImage], bool]) -> ClusterImage:
        return self._monitor.wait(self._id, done)
