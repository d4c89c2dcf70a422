"""A reference node: a broker that may become the controller, with its session and its listener."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.errors import ErrorCode

from featurewatch.reference.machines.broker import ReferenceBroker
from featurewatch.reference.machines.controller.controller import ReferenceController
from featurewatch.reference.machines.dialect import RELEASED, Dialect
from featurewatch.reference.machines.directory import BrokerDirectory
from featurewatch.reference.machines.encoding import BrokerIdentity
from featurewatch.reference.machines.protocol import SendUpdateMetadata, UpdateMetadataReceived
from featurewatch.reference.machines.requests import (
    ApiVersions,
    FeaturesResponse,
    Response,
    UpdateResponse,
)
from featurewatch.reference.wire import requests as asking
from featurewatch.reference.wire import responses as answers
from featurewatch.reference.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    METADATA,
    UPDATE_METADATA,
    api_dialect_of,
)
from featurewatch.reference.wire.frames import WireRequest
from featurewatch.reference.wire.responses import ClusterView
from featurewatch.reference.wire.server import WireServer
from featurewatch.reference.wire.update_metadata import UpdateMetadataSender
from featurewatch.reference.zookeeper.session import MachineSession
from featurewatch.reference.zookeeper.slots import MachineExitedError
from featurewatch.streams.types import Range

LISTENER: Final = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What one node is: ``connect`` may end in a chroot, ``port`` 0 takes a free one."""

    connect: str
    node_id: int
    supported: Mapping[str, Range] = field(default_factory=dict)
    dialect: Dialect = RELEASED
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    session_timeout_s: float = 6.0


@dataclass(frozen=True, slots=True)
class NodeExit:
    """How a node ended by itself."""

    code: int
    reason: str


class ReferenceNode:
    """Starts, answers, and ends when it is told to or when it must.

    ``directory`` knows the other brokers; ``on_end`` is told if the node ends by itself.
    """

    def __init__(
        self,
        settings: NodeSettings,
        directory: BrokerDirectory,
        on_end: Callable[["ReferenceNode", NodeExit], None] | None = None,
    ) -> None:
        self.settings = settings
        self.name = f"node {settings.node_id}"
        self.exit: NodeExit | None = None
        self._directory = directory
        self._on_end = on_end
        self._ending: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._api_dialect = api_dialect_of(settings.dialect)
        self._pushes = UpdateMetadataSender(settings.node_id, self.name, directory.brokers.get)
        self._server = WireServer(
            self._api_dialect,
            self._answer,
            host=settings.host,
            port=settings.port,
            name=self.name,
        )
        self._session = MachineSession(
            settings.connect,
            session_timeout_s=settings.session_timeout_s,
            name=self.name,
            on_exit=self._exits,
            on_step=self._changed.set,
            on_update_metadata=self._tells,
        )
        self._controller = ReferenceController(
            settings.node_id, settings.dialect, settings.supported
        )

    @property
    def address(self) -> str:
        """``host:port`` of the listener."""
        return f"{self._server.host}:{self._server.port}"

    @property
    def session(self) -> MachineSession:
        """Its ZooKeeper session."""
        return self._session

    @property
    def registered(self) -> bool:
        """Whether its znode stands."""
        return self._broker.registered

    @property
    def is_controller(self) -> bool:
        """Whether it is the active controller."""
        return self._controller.active

    @property
    def live_brokers(self) -> frozenset[int]:
        """The brokers that it counts as live, while it is the controller."""
        return frozenset(self._controller.accepted)

    @property
    def controller_id(self) -> int | None:
        """Who is the controller, as far as it knows."""
        return self._broker.controller_id

    async def start(self, timeout_s: float = 15.0) -> None:
        """Listens, joins ZooKeeper, and begins to register.

        Raises:
            OSError: if the port cannot be had.
            EnsembleError: if ZooKeeper cannot be used.
        """
        settings = self.settings
        await self._server.start()
        self._broker = ReferenceBroker(
            BrokerIdentity(
                settings.node_id,
                {LISTENER: (self._server.host, self._server.port, LISTENER)},
                settings.rack,
            ),
            settings.dialect,
            settings.supported,
        )
        self._broker_seat = self._session.attach(self._broker)
        self._controller_seat = self._session.attach(
            self._controller, gate=lambda: self._broker.registered
        )
        try:
            await self._session.open(timeout_s)
        except BaseException:
            await self._server.close()
            raise

    async def wait_registered(self, timeout_s: float = 15.0) -> None:
        """Until it has registered or ended.

        Raises:
            TimeoutError: if neither happens in time.
        """
        await self.wait_until(lambda: self.registered or self.exit is not None, timeout_s)

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
        """Until something is true of this node, looked at whenever something happens to it.

        Raises:
            TimeoutError: if it is not in time.
        """
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def close(self) -> None:
        """Ends it in order: the listener, then the session with the node's registration."""
        if self._ending is not None:
            await self._ending
            return
        await self._server.close()
        await self._pushes.close()
        await self._session.close()

    def _tells(self, tell: SendUpdateMetadata) -> None:
        self._pushes.send(tell.broker_id, tell.message, self._controller.epoch)

    def _exits(self, code: int, reason: str) -> None:
        self.exit = NodeExit(code, reason)
        self._changed.set()
        self._ending = asyncio.get_running_loop().create_task(self._end(self.exit))

    async def _end(self, ended: NodeExit) -> None:
        await self._session.close()
        await self._pushes.close()
        await self._server.close()
        if self._on_end is not None:
            self._on_end(self, ended)

    # -- what is asked over the wire --

    async def _answer(self, call: WireRequest) -> Any:
        try:
            return await self._answered(call)
        except MachineExitedError:
            return None

    async def _answered(self, call: WireRequest) -> Any:
        match call.key:
            case _ if call.key == API_VERSIONS:
                return await self._api_versions(call)
            case _ if call.key == METADATA:
                return answers.metadata(call, self._view())
            case _ if call.key == DESCRIBE_CLUSTER:
                return answers.describe_cluster(call, self._view())
            case _ if call.key == UPDATE_METADATA:
                self._session.deliver(
                    self._broker_seat, UpdateMetadataReceived(asking.read_update_metadata(call))
                )
                return answers.update_metadata()
        request = asking.read_update_features(call, self._api_dialect)
        response: Response = await self._session.request(self._controller_seat, request)
        assert isinstance(response, UpdateResponse)  # noqa: S101 - answers what was asked
        return answers.update_features(call, self._api_dialect, response)

    async def _api_versions(self, call: WireRequest) -> Any:
        if call.body is None:
            return answers.api_versions_error(ErrorCode.unsupported_version)
        if not asking.is_valid_software(call.body):
            return answers.api_versions_error(ErrorCode.invalid_request)
        asked = ApiVersions(call.version)
        response: Response = await self._session.request(self._broker_seat, asked)
        assert isinstance(response, FeaturesResponse)  # noqa: S101 - answers what was asked
        return answers.api_versions(call, self._api_dialect, response)

    def _view(self) -> ClusterView:
        controller_id = self.controller_id
        return ClusterView(
            self._directory.cluster_id,
            -1 if controller_id is None else controller_id,
            self._directory.brokers,
        )
