"""The command that runs one voter of a metadata quorum, as a reference.

It formats an empty directory, listens, and takes part in elections; with ``--controller`` it also
runs a metadata controller, which real brokers can join. Each change is a line on stdout:
``listening HOST:PORT``, ``leader EPOCH``, ``lost EPOCH``, ``committed OFFSET``. With ``--orders``
it reads lines from stdin: ``append N`` appends N NoOp records as the leader and prints ``appended
OFFSET`` or ``not leader``. It ends with 0 at Ctrl-C or SIGTERM, after it has resigned.
"""

import argparse
import asyncio
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

from featurewatch.kafka.address import Address
from featurewatch.reference.kraft.arguments import begin, first_voter_argument, voter_argument
from featurewatch.reference.kraft.controller_node import ControllerNode
from featurewatch.reference.kraft.controller_options import (
    OptionError,
    add_controller_options,
    controller_settings,
    quorum_times,
)
from featurewatch.reference.kraft.formats import DamagedStorageError
from featurewatch.reference.kraft.machines.controller.controller import MetadataController
from featurewatch.reference.kraft.machines.metadata.snapshots import snapshot_bytes
from featurewatch.reference.kraft.machines.protocol import (
    BecameLeader,
    Committed,
    Effect,
    LostLeadership,
)
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from featurewatch.reference.kraft.machines.voter import VoterSettings
from featurewatch.reference.kraft.node import NotLeaderError, RaftNode
from featurewatch.reference.kraft.storage import Identity, format_directory, open_storage
from featurewatch.streams.kraft.directory.files import META_PROPERTIES

FAILED: Final = 1
WRONG_USAGE: Final = 2
_NOOP: Final = bytes([1, 20, 0, 0])
"""A NoOpRecord of version 0: frame version, API key, version, no tags."""


def main(arguments: Sequence[str]) -> int:
    """Runs until a signal arrives or the replica must end; returns the exit code."""
    options = _parser().parse_args(arguments)
    begin()
    try:
        return asyncio.run(_run(options))
    except OptionError as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_USAGE
    except (DamagedStorageError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED


async def _run(options: argparse.Namespace) -> int:
    voters = VoterSet.of(options.voters)
    node = voters.get(options.node_id)
    if node is None:
        sys.stderr.write(f"node {options.node_id} is not one of the voters: correct --voters\n")
        return WRONG_USAGE
    is_dynamic = bool(options.standalone or options.initial_controllers or options.bootstrap)
    if is_dynamic and len(voters.nodes) > 1:
        raise OptionError(
            "--standalone, --initial-controllers and --bootstrap take this node alone as one of "
            "--voters"
        )
    controller = None
    if options.controller is not None:
        if options.orders:
            raise OptionError("--orders is for a voter without --controller: leave one of them out")
        quorum = () if is_dynamic else voters.ids
        found = controller_settings(options, node.endpoints[0], quorum)
        controller = MetadataController(found, Random())
    root: Path = options.directory
    if not (root / META_PROPERTIES).exists():
        _format(root, options, node)
    static = VoterSet(()) if is_dynamic else voters
    storage = open_storage(root, static, cluster_id=options.cluster_id, node_id=options.node_id)
    settings = VoterSettings(
        ReplicaKey(options.node_id, storage.identity.directory_id),
        options.cluster_id,
        node.endpoints,
        tuple(options.bootstrap or ()),
        **quorum_times(options),
    )
    replica = (
        RaftNode(storage, settings, _tell)
        if controller is None
        else ControllerNode(storage, settings, controller, _tell)
    )
    stopped: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result("")

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await replica.start()
    _print(f"listening {node.endpoints[0].host}:{node.endpoints[0].port}")
    if options.orders and isinstance(replica, RaftNode):
        _read_orders(asyncio.get_running_loop(), replica)
    await asyncio.wait([stopped, replica.halted], return_when=asyncio.FIRST_COMPLETED)
    if replica.halted.done():
        sys.stderr.write(f"{replica.halted.result()}\n")
        return FAILED
    await replica.close()
    return 0


def _format(root: Path, options: argparse.Namespace, node: VoterNode) -> None:
    """Formats a directory; for a quorum with voters in the log also with those it begins with."""
    directory_id = uuid.uuid4()
    first: VoterSet | None = None
    if options.standalone:
        first = VoterSet.of([replace(node, key=ReplicaKey(options.node_id, directory_id))])
    elif options.initial_controllers:
        first = VoterSet.of(options.initial_controllers)
        own = first.get(options.node_id)
        if own is None or own.key.directory is None:
            raise OptionError(
                f"node {options.node_id} is not one of --initial-controllers: add it, or give "
                "--bootstrap instead"
            )
        directory_id = own.key.directory
    identity = Identity(options.cluster_id, options.node_id, directory_id)
    voters = None if first is None else snapshot_bytes((), 0, int(time.time() * 1000), first)
    format_directory(root, identity, voters)


def _tell(effect: Effect) -> None:
    match effect:
        case BecameLeader(epoch):
            _print(f"leader {epoch}")
        case LostLeadership(epoch):
            _print(f"lost {epoch}")
        case Committed(offset):
            _print(f"committed {offset}")
        case _:
            pass


def _read_orders(loop: asyncio.AbstractEventLoop, replica: RaftNode) -> None:
    """Performs the lines of stdin in the loop until it ends; reading needs a separate thread."""

    async def perform(count: int) -> None:
        try:
            _print(f"appended {await replica.propose((_NOOP,) * count)}")
        except NotLeaderError:
            _print("not leader")

    def read() -> None:
        for line in sys.stdin:
            order, _, count = line.strip().partition(" ")
            if order != "append" or not count.isdecimal() or not 0 < int(count) <= 1000:
                _print("an order is: append N")
            elif not loop.is_closed():
                asyncio.run_coroutine_threadsafe(perform(int(count)), loop)

    threading.Thread(target=read, name="orders", daemon=True).start()


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _endpoint(text: str) -> Endpoint:
    try:
        return Endpoint("", *Address.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m featurewatch.reference.kraft",
        description="Runs one voter of a KRaft metadata quorum, as a reference of the protocol.",
    )
    add = parser.add_argument
    add("--directory", type=Path, required=True, help="log directory; formatted if it is empty")
    add("--node-id", type=int, required=True, help="id of this voter")
    add("--cluster-id", required=True, help="id of the cluster")
    add(
        "--voters",
        type=voter_argument,
        nargs="+",
        required=True,
        metavar="ID@HOST:PORT",
        help="all voters, as in controller.quorum.voters",
    )
    joining = parser.add_mutually_exclusive_group()
    joining.add_argument(
        "--standalone",
        action="store_true",
        help="begin a quorum with voters in the log (kraft.version 1) and this voter alone",
    )
    joining.add_argument(
        "--initial-controllers",
        type=first_voter_argument,
        nargs="+",
        metavar="ID@HOST:PORT:DIRECTORY_ID",
        help="begin a quorum with voters in the log and these voters, as kafka-storage format",
    )
    joining.add_argument(
        "--bootstrap",
        type=_endpoint,
        nargs="+",
        metavar="HOST:PORT",
        help="follow the quorum of these controllers, to which this voter may be added",
    )
    add("--election-timeout", type=int, metavar="MS", help="default 1000")
    add("--fetch-timeout", type=int, metavar="MS", help="default 2000")
    add("--orders", action="store_true", help="read orders from stdin")
    add_controller_options(parser)
    return parser
