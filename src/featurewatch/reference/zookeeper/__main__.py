"""``python -m featurewatch.reference.zookeeper``: a node or a cluster of any size, in one process.

Prints ``node ID host:port`` on stdout for each full node, then ``ready`` when all brokers are
registered. Exits with 0 at Ctrl-C or SIGTERM. When the last full node has ended on its own, exits
with that node's code; the reason is on stderr. With ``--orders`` it reads orders to the light
replicas from stdin, and prints a line for each.
"""

import argparse
import asyncio
import base64
import logging
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from featurewatch.kafka.operations_form import OperationsForm
from featurewatch.reference.zookeeper.cluster import FULL_NODES, ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.dialect import DIALECTS, EARLY_DRAFT_STRUCK, RELEASED
from featurewatch.reference.zookeeper.machines.topics.dialect import OPERATIONS_DIALECTS
from featurewatch.reference.zookeeper.node import NodeExit, NodeSettings, ReferenceNode
from featurewatch.reference.zookeeper.orders import MAX_LINE, Orders
from featurewatch.reference.zookeeper.sessions.slots import ZookeeperUnavailableError
from featurewatch.streams.types import SupportedRange

FAILED = 1
_ALL = {**DIALECTS, EARLY_DRAFT_STRUCK.name: EARLY_DRAFT_STRUCK}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until a signal arrives or the last full node ends; returns the exit code."""
    command_line = parser()
    options = command_line.parse_args(arguments)
    if options.control_topics and not _ALL[options.dialect].released:
        command_line.error(f"--control-topics needs a released dialect, not {options.dialect}")
    if options.operations_dialect and not options.control_topics:
        command_line.error("--operations-dialect is of --control-topics: give both")
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    try:
        return asyncio.run(_run(_settings(options), takes_orders=options.orders))
    except (ZookeeperUnavailableError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    except TimeoutError as error:
        reason = str(error) or "ZooKeeper is slow"
        sys.stderr.write(f"the cluster was not ready in time: {reason}; start it again\n")
        return FAILED


async def _run(settings: ClusterSettings, *, takes_orders: bool = False) -> int:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def finish(code: int) -> None:
        if not stopped.done():
            stopped.set_result(code)

    def ended(node: ReferenceNode, node_exit: NodeExit) -> None:
        sys.stderr.write(f"{node.name} ended with {node_exit.code}: {node_exit.reason}\n")
        if all(other.exit is not None for other in cluster.nodes):
            finish(node_exit.code)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, finish, 0)
    cluster = ReferenceCluster(settings, ended)
    starting = loop.create_task(cluster.start())
    stopped.add_done_callback(lambda _: starting.cancel())
    try:
        await starting
    except asyncio.CancelledError:
        return stopped.result()
    for node in cluster.nodes:
        if node.exit is None:
            _print(f"node {node.settings.node_id} {node.address}")
    if any(node.exit is None for node in cluster.nodes):
        _print("ready")
    if takes_orders:
        _read_orders(loop, Orders(cluster))
    code = await stopped
    await cluster.close()
    return code


def _read_orders(loop: asyncio.AbstractEventLoop, orders: Orders) -> None:
    """Performs the lines of stdin in the loop until it ends; reading needs a separate thread."""

    def perform(line: str) -> None:
        _print(orders.perform(line))

    def read() -> None:
        while line := sys.stdin.readline(MAX_LINE + 1):
            rest = line
            while rest and not rest.endswith("\n"):  # of a line that is too long
                rest = sys.stdin.readline(MAX_LINE)
            if loop.is_closed():
                return
            loop.call_soon_threadsafe(perform, line)

    threading.Thread(target=read, name="orders", daemon=True).start()


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _settings(options: argparse.Namespace) -> ClusterSettings:
    first = NodeSettings(
        connect=options.zookeeper,
        node_id=options.node_id,
        supported=dict(options.features or ()),
        dialect=_ALL[options.dialect],
        host=options.host,
        port=options.port,
        rack=options.rack,
        session_timeout_s=options.session_timeout,
        operations=operations_of(options),
        credential=options.credential_file and options.credential_file.read_text().strip(),
    )
    return ClusterSettings(first, options.brokers, options.full)


def operations_of(options: argparse.Namespace) -> OperationsSettings | None:
    """The settings of a controller of topics; None without ``--control-topics``."""
    if not options.control_topics:
        return None
    interval_s = options.balance_interval
    return OperationsSettings(
        new_topic_id,
        controller_ids=frozenset(options.controller_ids or ()),
        dialect=OPERATIONS_DIALECTS[options.operations_dialect or OperationsForm.RELEASED],
        deletes_topics=not options.no_topic_deletion,
        balance_interval_ms=interval_s * 1000 or None,
    )


def new_topic_id() -> str:
    """A random topic id, as Kafka writes it: URL-safe base64 that does not begin with a dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]).startswith("-"):
        pass
    return text


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    command_line = argparse.ArgumentParser(
        prog="python -m featurewatch.reference.zookeeper",
        description="Runs the reference system of KIP-584 on a ZooKeeper ensemble.",
    )
    add = command_line.add_argument
    add("--zookeeper", required=True, metavar="HOST:PORT,.../CHROOT", help="the ensemble")
    add("--node-id", type=_at_least(0), default=1, help="id of the (first) broker; default 1")
    add(
        "--features",
        type=_feature,
        nargs="*",
        action="extend",
        metavar="NAME=MIN-MAX",
        help="what the brokers support",
    )
    add("--dialect", choices=sorted(_ALL), default=RELEASED.name, help="form of KIP-584")
    add("--host", default="127.0.0.1", help="where to listen; default 127.0.0.1")
    add("--port", type=_at_least(0), default=0, help="(first) port; default: any free port")
    add("--rack", help="the rack that brokers advertise")
    add("--brokers", type=_at_least(1), default=1, help="how many brokers; default 1")
    add(
        "--full",
        type=_at_least(1),
        default=FULL_NODES,
        help=f"how many of them are full nodes; the others only register; default {FULL_NODES}",
    )
    add("--session-timeout", type=float, default=6.0, metavar="SECONDS", help="default 6")
    add(
        "--control-topics",
        action="store_true",
        help="control topics and partitions of real Kafka brokers in ZooKeeper mode; light brokers"
        " host replicas then",
    )
    add("--orders", action="store_true", help="read orders to the light replicas from stdin")
    add(
        "--controller-ids",
        type=_at_least(0),
        nargs="*",
        metavar="ID",
        help="ids of all nodes that control topics; they host none",
    )
    add(
        "--operations-dialect",
        choices=[str(form) for form in OperationsForm],
        help="form of the operations on topics: what Kafka does, or the document Kafka Controller"
        f" Internals; default {OperationsForm.RELEASED}",
    )
    add("--no-topic-deletion", action="store_true", help="as delete.topic.enable=false")
    add(
        "--balance-interval",
        type=_at_least(0),
        default=300,
        metavar="SECONDS",
        help="between two balances of leaders; 0 for none; default 300",
    )
    add(
        "--credential-file",
        type=Path,
        metavar="FILE",
        help="user:password for ZooKeeper; nobody else can be elected then",
    )
    add("--verbose", action="store_true", help="log more")
    return command_line


def _feature(text: str) -> tuple[str, SupportedRange]:
    name, equals, bounds = text.partition("=")
    low, dash, high = bounds.partition("-")
    if not (name and equals and low.isdecimal() and (high.isdecimal() or not dash)):
        raise argparse.ArgumentTypeError(f"{text!r} is no feature: write NAME=MIN-MAX")
    return name, SupportedRange(int(low), int(high or low))


def _at_least(lowest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < lowest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {lowest} on")
        return int(text)

    return number


if __name__ == "__main__":
    sys.exit(main())
