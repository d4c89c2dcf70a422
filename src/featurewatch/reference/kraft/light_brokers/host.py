"""Runs the machine of light brokers: its events, effects, connections and clock."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final
from uuid import uuid4

from featurewatch.kafka.messages import request_names
from featurewatch.reference.kraft.light_brokers.links import BrokerLinks
from featurewatch.reference.kraft.light_brokers.listener import SERVED, BrokerListener
from featurewatch.reference.kraft.machines.broker.connections import (
    AskPeer,
    CloseClient,
    Connections,
    PeerDisconnected,
    PeerVersions,
)
from featurewatch.reference.kraft.machines.broker.light_brokers import (
    ControllerAnswered,
    LightBrokers,
    LightEffect,
    LightEvent,
    ShutDownBrokers,
    StartBrokers,
    ToController,
)
from featurewatch.reference.kraft.machines.broker.observer import Observer, Quorum
from featurewatch.reference.kraft.machines.broker.protocol import WriteLog
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.reference.kraft.machines.protocol import AnswerReceived, Halt, Send, Tick
from featurewatch.reference.kraft.machines.replicas import ReplicaKey, VoterSet, text_of
from featurewatch.reference.kraft.machines.voter import VoterSettings
from featurewatch.reference.kraft.task_set import TaskSet
from featurewatch.reference.kraft.wire.peers import Peers
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.reference.zookeeper.wire.api_keys import Versions
from featurewatch.streams.types import KRAFT_VERSION

TICK_S: Final = 0.02
REQUEST_TIMEOUT_S: Final = 10.0
CONNECTIONS: Final = 32
"""Connections to the active controller, which answers those of one connection in order."""
SHUTDOWN_S: Final = 30.0
_KEYS: Final[Mapping[str, int]] = {name: key for key, name in request_names().items()}
_log = logging.getLogger("featurewatch.reference.kraft")


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
        self._links = BrokerLinks(name, REQUEST_TIMEOUT_S, is_kip_778=is_kip_778)
        self._tasks = TaskSet("the light brokers", self._halt)
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
        self._tasks.spawn(self._tick())

    async def close(self) -> None:
        """Shuts the brokers down in a controlled way, within a limit, and ends everything."""
        self._receive(ShutDownBrokers(frozenset(self.machine.states)))
        deadline = time.monotonic() + SHUTDOWN_S
        while self.machine.states and time.monotonic() < deadline and not self.halted.done():
            await asyncio.sleep(TICK_S)
        await self._tasks.close()
        await self._listener.close()
        await self._links.close()
        for peers in (self._fetcher, *self._peers):
            await peers.close()

    async def _tick(self) -> None:
        while True:
            self._receive(Tick())
            for broker_id in self._links.take_ended():
                self._receive(PeerDisconnected(broker_id))
            await asyncio.sleep(TICK_S)

    def _features(self) -> tuple[FeaturesResponse, dict[int, Versions]]:
        """The features of the brokers, and the versions of requests that the level enables."""
        supported = {str(name): (low, high) for name, (low, high) in self._ranges().items()}
        image = self.machine.image
        levels: dict[str, int] = {}
        epoch = -1
        if image is not None:
            levels = {str(name): int(it) for name, it in image.state.levels.items()}
            epoch = image.position.offset - 1
        if kraft_version := self.machine.observer.kraft_version:
            # As ``KRaftMetadataCache``: it is the replica's, and listed from level 1 on.
            levels[str(KRAFT_VERSION)] = kraft_version
        offered = {
            _KEYS[name]: (low, high)
            for name, (low, high) in self.machine.connections.offered.items()
            if name in _KEYS
        }
        return FeaturesResponse(supported, levels, epoch), offered | dict(SERVED)

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
                self._tasks.spawn(self._send(effect))
            case ToController():
                self._tasks.spawn(self._ask(effect))
            case AskPeer():
                self._tasks.spawn(self._ask_peer(effect))
            case CloseClient(connection_id):
                self._listener.close_client(connection_id)
            case WriteLog(line, is_warning):
                _log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)
            case Halt(reason):
                self._halt(reason)
            case _:
                pass

    async def _send(self, send: Send) -> None:
        answer = await self._fetcher.ask(send.endpoint, send.request)
        self._receive(AnswerReceived(send.number, answer))

    async def _ask_peer(self, ask: AskPeer) -> None:
        image = self.machine.image
        broker = None if image is None else image.state.brokers.get(ask.broker_id)
        versions = None if broker is None else await self._links.versions(broker)
        self._receive(PeerVersions(ask.number, versions))

    async def _ask(self, send: ToController) -> None:
        leader = self.machine.observer.leader
        if leader is None:
            await asyncio.sleep(TICK_S)
            self._receive(ControllerAnswered(send.number, None))
            return
        peers = self._peers[send.broker_id % CONNECTIONS]
        response = await peers.ask_controller(leader, send.request)
        self._receive(ControllerAnswered(send.number, response))

    def _halt(self, reason: str) -> None:
        if not self.halted.done():
            self.halted.set_result(reason)


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
