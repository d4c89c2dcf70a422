"""An asyncio shell around light brokers: many brokers in one process, over few connections.

A reference, not for production. ``python -m featurewatch.reference.kraft light-brokers`` runs it:
each change is a line on stdout, ``listening HOST:PORT``, ``running N of M``, ``level L`` and
``ended ID REASON``. It ends with 0 at Ctrl-C or SIGTERM, after all brokers were shut down, and with
1 when all of them have ended because of an error.
"""

import argparse
import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final
from uuid import uuid4

from featurewatch.controller.kraft import UnknownReleaseError, release_of
from featurewatch.kafka.messages import message_class, request_names
from featurewatch.reference.kraft.machines.broker.connections import (
    AskPeer,
    ClientConnected,
    ClientGone,
    CloseClient,
    Connections,
    PeerVersions,
)
from featurewatch.reference.kraft.machines.broker.light_brokers import (
    BrokerBecame,
    BrokerEnded,
    ControllerAnswered,
    LightBrokers,
    LightEffect,
    LightEvent,
    ShutDownBrokers,
    StartBrokers,
    ToController,
)
from featurewatch.reference.kraft.machines.broker.loader import ImagePublished
from featurewatch.reference.kraft.machines.broker.observer import Observer, Quorum
from featurewatch.reference.kraft.machines.broker.protocol import WriteLog
from featurewatch.reference.kraft.machines.broker.settings import DEFAULT_RELEASE, BrokerSettings
from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.reference.kraft.machines.protocol import AnswerReceived, Halt, Send, Tick
from featurewatch.reference.kraft.machines.replicas import ReplicaKey, VoterNode, VoterSet, text_of
from featurewatch.reference.kraft.machines.voter import VoterSettings
from featurewatch.reference.kraft.wire.messages import API_VERSIONS
from featurewatch.reference.kraft.wire.peers import Peers
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, FeaturesResponse
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect, Versions
from featurewatch.reference.zookeeper.wire.frames import WireRequest, read_offered
from featurewatch.reference.zookeeper.wire.responses import api_versions, api_versions_error
from featurewatch.reference.zookeeper.wire.server import WireServer

TICK_S: Final = 0.02
REQUEST_TIMEOUT_S: Final = 10.0
CONNECTIONS: Final = 32
"""Connections to the active controller, which answers those of one connection in order."""
MAX_CLIENTS: Final = 1_000
MAX_BROKERS: Final = 10_000
SHUTDOWN_S: Final = 30.0
_KEYS: Final[Mapping[str, int]] = {name: key for key, name in request_names().items()}
_SERVED: Final[Mapping[int, Versions]] = {API_VERSIONS: (0, 4)}
_log = logging.getLogger("featurewatch.reference.kraft")


class BrokerListener(WireServer):
    """The one listener of all brokers of a process, which answers ApiVersions."""

    def __init__(
        self,
        form: Form,
        features: Callable[[], Any],
        on: Callable[[LightEvent], None],
        **place: Any,
    ) -> None:
        self._dialect = ApiDialect.KIP_778 if form is Form.KIP_778 else ApiDialect.RELEASED
        super().__init__(self._dialect, self._handle, name="light brokers", **place)
        self._features = features
        self._on = on
        self._writers: dict[int, asyncio.StreamWriter] = {}
        self._numbers = 0

    def decode(self, frame: bytes) -> WireRequest:
        """See `WireServer.decode`."""
        return read_offered(
            frame, _SERVED, lambda _, version: message_class("ApiVersionsRequest", version)
        )

    def close_client(self, connection_id: int) -> None:
        """Closes a connection, after what was written to it."""
        writer = self._writers.get(connection_id)
        if writer is not None:
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= MAX_CLIENTS:
            writer.close()
            return
        self._numbers += 1
        number = self._numbers
        self._writers[number] = writer
        self._on(ClientConnected(number))
        try:
            await super()._connected(reader, writer)
        finally:
            del self._writers[number]
            self._on(ClientGone(number))

    async def _handle(self, request: WireRequest) -> Any:
        if request.body is None:
            return api_versions_error(ErrorCode.UNSUPPORTED_VERSION)
        response, offered = self._features()
        return api_versions(request, self._dialect, response, offered)


class LightBrokerHost:
    """A process with light brokers that runs; ``watcher`` sees each effect when it is performed."""

    def __init__(
        self,
        quorum: VoterSet,
        brokers: Sequence[BrokerSettings],
        listener: tuple[str, int] = ("127.0.0.1", 0),
        watcher: Callable[[LightEffect], None] = lambda _: None,
    ) -> None:
        self._started = (time.time(), time.monotonic())
        first = brokers[0]
        raft = VoterSettings(ReplicaKey(first.broker_id, uuid4()), first.cluster_id, ())
        random = Random()
        observer = Observer(first, raft, Quorum(quorum), random, self._now_ms())
        self.machine = LightBrokers(observer, Connections(first), random)
        self._brokers = brokers
        self._watcher = watcher
        self._listener = BrokerListener(
            first.form, self._features, self._receive, host=listener[0], port=listener[1]
        )
        name = f"broker-{first.broker_id}"
        is_kip_778 = first.form is Form.KIP_778
        self._fetcher, *self._peers = (
            Peers(name, REQUEST_TIMEOUT_S, is_kip_778=is_kip_778) for _ in range(CONNECTIONS + 1)
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self.halted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The reason for which the process must end."""

    def _now_ms(self) -> int:
        wall, monotonic = self._started
        return int((wall + time.monotonic() - monotonic) * 1000)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port of the listener."""
        return self._listener.host, self._listener.port

    @property
    def running(self) -> int:
        """The number of brokers that are registered and unfenced."""
        states = self.machine.states.values()
        return sum(state is BrokerState.RUNNING for state in states)

    async def start(self) -> None:
        """Opens the listener and starts the brokers, which register it.

        Raises:
            OSError: if the port is not available.
        """
        await self._listener.start()
        listeners = (Listener("PLAINTEXT", *self.address),)
        self._receive(StartBrokers(tuple(replace(it, listeners=listeners) for it in self._brokers)))
        self._spawn(self._tick())

    async def close(self) -> None:
        """Shuts the brokers down in a controlled way, within a limit, and ends everything."""
        self._receive(ShutDownBrokers(frozenset(self.machine.states)))
        deadline = time.monotonic() + SHUTDOWN_S
        while self.machine.states and time.monotonic() < deadline and not self.halted.done():
            await asyncio.sleep(TICK_S)
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.close()
        for peers in (self._fetcher, *self._peers):
            await peers.close()

    async def _tick(self) -> None:
        while True:
            self._receive(Tick())
            await asyncio.sleep(TICK_S)

    def _features(self) -> tuple[FeaturesResponse, dict[int, Versions]]:
        """The features of the brokers, and the versions of requests that the level enables."""
        supported = {str(name): (low, high) for name, (low, high) in self._ranges().items()}
        image = self.machine.image
        levels: dict[str, int] = {}
        epoch = -1
        if image is not None:
            levels = {str(name): int(it) for name, it in image.cluster.features.levels.items()}
            epoch = image.position.offset - 1
        offered = {
            _KEYS[name]: (low, high)
            for name, (low, high) in self.machine.connections.offered.items()
            if name in _KEYS
        }
        return FeaturesResponse(supported, levels, epoch), offered | dict(_SERVED)

    def _ranges(self) -> Mapping[Any, tuple[int, int]]:
        return self._brokers[0].supported

    # -- events and effects ------------------------------------------------------------------------

    def _receive(self, event: LightEvent) -> None:
        if self.halted.done():
            return
        for effect in self.machine.receive(event, self._now_ms()):
            self._perform(effect)
            self._watcher(effect)

    def _perform(self, effect: LightEffect) -> None:
        match effect:
            case Send():
                self._spawn(self._send(effect))
            case ToController():
                self._spawn(self._ask(effect))
            case AskPeer(number, _):
                self._receive(PeerVersions(number, None))  # brokers of others are not connected to
            case CloseClient(connection_id):
                self._listener.close_client(connection_id)
            case WriteLog(line, is_warning):
                _log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)
            case Halt(reason):
                if not self.halted.done():
                    self.halted.set_result(reason)
            case _:
                pass

    async def _send(self, send: Send) -> None:
        answer = await self._fetcher.ask(send.endpoint, send.request)
        self._receive(AnswerReceived(send.number, answer))

    async def _ask(self, send: ToController) -> None:
        leader = self.machine.observer.leader
        if leader is None:
            await asyncio.sleep(TICK_S)
            self._receive(ControllerAnswered(send.number, None))
            return
        peers = self._peers[send.broker_id % CONNECTIONS]
        response = await peers.ask_controller(leader, send.request)
        self._receive(ControllerAnswered(send.number, response))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the light brokers failed", exc_info=error)
            if not self.halted.done():
                self.halted.set_result(f"a task failed: {error}")


def light_settings(
    first_id: int, count: int, cluster_id: str, form: Form, release: str
) -> list[BrokerSettings]:
    """The settings of brokers with consecutive ids; incarnations and directories are random."""
    return [
        BrokerSettings(
            broker_id=first_id + number,
            cluster_id=cluster_id,
            incarnation_id=text_of(uuid4()),
            listeners=(),
            log_dirs=(text_of(uuid4()),),
            release=release,
            form=form,
        )
        for number in range(count)
    ]


# -- the command -----------------------------------------------------------------------------------


def main(arguments: Sequence[str], voter: Callable[[str], VoterNode], notice: str) -> int:
    """Runs the command; ``voter`` parses one of ``--voters``. Returns the exit code."""
    options = _parser(voter).parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    sys.stderr.write(f"{notice}\n")
    sys.stderr.flush()
    try:
        release = release_of(options.release).name
    except UnknownReleaseError as error:
        sys.stderr.write(f"--release: {error}\n")
        return 2
    if not 0 < options.count <= MAX_BROKERS:
        sys.stderr.write(f"--count: give a number from 1 to {MAX_BROKERS}\n")
        return 2
    try:
        return asyncio.run(_run(options, release))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1


async def _run(options: argparse.Namespace, release: str) -> int:
    brokers = light_settings(
        options.first_id, options.count, options.cluster_id, options.form, release
    )
    told: dict[str, Any] = {"level": None}
    changed = asyncio.Event()

    def watch(effect: LightEffect) -> None:
        match effect:
            case BrokerBecame():
                changed.set()
            case BrokerEnded(broker_id, reason, _):
                _print(f"ended {broker_id} {reason}")
                changed.set()
            case ImagePublished(image) if image.level != told["level"]:
                told["level"] = image.level
                _print(f"level {image.level}")
            case _:
                pass

    host = LightBrokerHost(
        VoterSet.of(options.voters), brokers, (options.host, options.port), watch
    )
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await host.start()
    _print("listening {}:{}".format(*host.address))
    waiting = asyncio.ensure_future(stopped.wait())
    count = -1
    while not waiting.done() and not host.halted.done() and host.machine.states:
        if host.running != count:
            count = host.running
            _print(f"running {count} of {len(brokers)}")
        changed.clear()
        change = asyncio.ensure_future(changed.wait())
        ends: list[asyncio.Future[Any]] = [waiting, host.halted, change]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        change.cancel()
    has_failed = host.halted.done() or not host.machine.states
    await host.close()
    waiting.cancel()
    if host.halted.done():
        sys.stderr.write(f"{host.halted.result()}\n")
    return int(has_failed)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _parser(voter: Callable[[str], VoterNode]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m featurewatch.reference.kraft light-brokers",
        description="Runs brokers that register and follow the metadata, and serve no data.",
    )
    add = parser.add_argument
    add("--cluster-id", required=True, help="id of the cluster")
    add(
        "--voters",
        type=voter,
        nargs="+",
        required=True,
        metavar="ID@HOST:PORT",
        help="all voters, as in controller.quorum.voters",
    )
    add("--count", type=int, default=1, help=f"number of brokers, at most {MAX_BROKERS}; default 1")
    add("--first-id", type=int, default=1001, metavar="ID", help="id of the first; default 1001")
    add("--release", default=DEFAULT_RELEASE, help=f"their Kafka; default {DEFAULT_RELEASE}")
    add(
        "--form",
        type=Form,
        default=Form.RELEASED,
        choices=list(Form),
        help="how they treat levels: released, as Kafka, or kip-778, as the document",
    )
    add("--host", default="127.0.0.1", help="address of their listener; default 127.0.0.1")
    add("--port", type=int, default=0, help="port of their listener; default: a free one")
    return parser
