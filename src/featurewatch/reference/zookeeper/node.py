"""A reference node: a broker that may become the controller, its session and its listener.

The module is above 300 lines, because a node's parts are joined here alone.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from featurewatch.reference.zookeeper.channels.channels import BrokerChannels
from featurewatch.reference.zookeeper.kip4.api import Kip4Api
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.machines.broker import ReferenceBroker
from featurewatch.reference.zookeeper.machines.controller.controller import ReferenceController
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.dialect import RELEASED, Dialect
from featurewatch.reference.zookeeper.machines.directory import BrokerDirectory
from featurewatch.reference.zookeeper.machines.encoding import BROKER_IDS, BrokerIdentity
from featurewatch.reference.zookeeper.machines.protocol import (
    BrokerEffect,
    SendUpdateMetadata,
    UpdateMetadataDelivered,
    UpdateMetadataReceived,
)
from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    ErrorCode,
    FeaturesResponse,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerResponded,
    SendBrokerRequest,
    SetLiveBrokers,
)
from featurewatch.reference.zookeeper.machines.topics.requests import TopicRequest, TopicResponse
from featurewatch.reference.zookeeper.machines.topics.znodes import TOPIC_CONFIGS
from featurewatch.reference.zookeeper.replica_host import ReplicaHost
from featurewatch.reference.zookeeper.sessions.session import MachineSession
from featurewatch.reference.zookeeper.sessions.slots import MachineExitedError
from featurewatch.reference.zookeeper.topic_api import TopicApi
from featurewatch.reference.zookeeper.wire import requests as wire_requests
from featurewatch.reference.zookeeper.wire import responses as wire_responses
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    KIP4_KEYS,
    METADATA,
    REPLICA_KEYS,
    UPDATE_FEATURES,
    UPDATE_METADATA,
    api_dialect_of,
)
from featurewatch.reference.zookeeper.wire.cluster_responses import topic_metadata
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.responses import ClusterView
from featurewatch.reference.zookeeper.wire.server import WireServer
from featurewatch.reference.zookeeper.wire.update_metadata import UpdateMetadataSender
from featurewatch.streams.types import SupportedRange

LISTENER: Final = "PLAINTEXT"
_START_TIMEOUT_S: Final = 10.0
"""How long requests wait for an elected controller to read the cluster."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One node: ``connect`` may end in a chroot; ``port`` 0 chooses a free port.

    With ``operations`` it controls topics as well, and hosts none. ``credential`` is the user and
    password, ``user:password``, with which the session authenticates to ZooKeeper.
    """

    connect: str
    node_id: int
    supported: Mapping[str, SupportedRange] = field(default_factory=dict)
    dialect: Dialect = RELEASED
    host: str = "127.0.0.1"
    port: int = 0
    rack: str | None = None
    session_timeout_s: float = 6.0
    operations: OperationsSettings | None = None
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class NodeExit:
    """The exit code and the reason of a node that ended on its own."""

    code: int
    reason: str


class ReferenceNode:
    """Runs a broker and a candidate for the controller, and serves requests.

    ``directory`` holds the brokers of the cluster. ``on_end`` is called if the node ends on its
    own; `exit` holds the reason then. It also responds for the light brokers of ``replicas``.
    """

    def __init__(
        self,
        settings: NodeSettings,
        directory: BrokerDirectory,
        on_end: Callable[["ReferenceNode", NodeExit], None] | None = None,
        replicas: ReplicaHost | None = None,
    ) -> None:
        self.settings = settings
        self.name = f"node {settings.node_id}"
        self.exit: NodeExit | None = None
        self._directory = directory
        self._on_end = on_end
        self._ending: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._replicas = replicas
        self._api_dialect = api_dialect_of(
            settings.dialect,
            controls_topics=settings.operations is not None,
            hosts_replicas=replicas is not None,
        )
        self._metadata_sender = UpdateMetadataSender(
            settings.node_id, self.name, directory.brokers.get, self._on_delivered
        )
        self._server = WireServer(
            self._api_dialect,
            self.handle,
            host=settings.host,
            port=settings.port,
            name=self.name,
        )
        self._session = MachineSession(
            settings.connect,
            session_timeout_s=settings.session_timeout_s,
            name=self.name,
            on_exit=self._on_machine_exit,
            on_step=self._changed.set,
            on_broker_effect=self._send_to_brokers,
            credential=settings.credential,
            # Kafka's brokers create their parents at their start, which may be after ours.
            paths=(BROKER_IDS, TOPIC_CONFIGS) if settings.operations else (BROKER_IDS,),
        )
        self._controller = ReferenceController(
            settings.node_id, settings.dialect, settings.supported, settings.operations
        )
        self._channels: BrokerChannels | None = None
        access = ControllerAccess(
            settings.node_id, self._perform_topic_request, lambda: self._controller.partitions
        )
        self._topics = TopicApi(access.node_id, access.perform_request, access.partitions)
        self._kip4 = Kip4Api(access, self._view)

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
        """Whether the node's broker znode exists in its session."""
        return self._broker.registered

    @property
    def is_controller(self) -> bool:
        """Whether the node is the active controller."""
        return self._controller.active

    @property
    def live_brokers(self) -> frozenset[int]:
        """The broker ids in the live set of this node's controller; empty if it is not active."""
        return frozenset(self._controller.accepted)

    @property
    def controller_id(self) -> int | None:
        """The id of the controller as this node last read it; None: no controller, or not known."""
        return self._broker.controller_id

    async def start(self, timeout_s: float = 15.0) -> None:
        """Opens the listener and the ZooKeeper session, and begins to register.

        Raises:
            OSError: if the port is not available.
            ZookeeperUnavailableError: if ZooKeeper cannot be used.
        """
        settings = self.settings
        await self._server.start()
        self._channels = BrokerChannels(self.name, self._on_broker_responded)
        self._broker = ReferenceBroker(
            BrokerIdentity(
                settings.node_id,
                {LISTENER: (self._server.host, self._server.port, LISTENER)},
                settings.rack,
            ),
            settings.dialect,
            settings.supported,
        )
        self._broker_slot = self._session.attach(self._broker)
        self._controller_slot = self._session.attach(
            self._controller, gate=lambda: self._broker.registered
        )
        try:
            await self._session.open(timeout_s)
        except BaseException:
            await self._server.close()
            raise

    async def wait_registered(self, timeout_s: float = 15.0) -> None:
        """Returns when the node has registered or ended.

        Raises:
            TimeoutError: if neither happens within ``timeout_s``.
        """
        await self.wait_until(lambda: self.registered or self.exit is not None, timeout_s)

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
        """Returns when ``condition`` holds; it is checked after each event of this node.

        Raises:
            TimeoutError: if it does not hold within ``timeout_s``.
        """
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def close(self) -> None:
        """Closes the listener, then the session, which removes the node's registration."""
        if self._ending is not None:
            await self._ending
            return
        await self._server.close()
        await self._close_senders()
        await self._session.close()

    async def _close_senders(self) -> None:
        await self._metadata_sender.close()
        if self._channels is not None:
            await self._channels.close()

    def _send_to_brokers(self, effect: BrokerEffect) -> None:
        match effect:
            case SendUpdateMetadata(broker_id, message):
                self._metadata_sender.send(broker_id, message, self._controller.epoch)
            case SetLiveBrokers(brokers) if self._channels is not None:
                self._channels.set_live(brokers)
            case SendBrokerRequest(broker_id, request) if self._channels is not None:
                self._channels.send(broker_id, request)

    def _on_delivered(self, broker_id: int, epoch: int) -> None:
        self._session.deliver_soon(self._controller_slot, UpdateMetadataDelivered(broker_id, epoch))

    def _on_broker_responded(self, event: BrokerResponded) -> None:
        self._session.deliver_soon(self._controller_slot, event)

    def _on_machine_exit(self, code: int, reason: str) -> None:
        self.exit = NodeExit(code, reason)
        self._changed.set()
        self._ending = asyncio.get_running_loop().create_task(self._end(self.exit))

    async def _end(self, exit_: NodeExit) -> None:
        await self._session.close()
        await self._close_senders()
        await self._server.close()
        if self._on_end is not None:
            self._on_end(self, exit_)

    # -- requests over the wire --

    async def handle(self, request: WireRequest) -> Any:
        """The response to a request; None, which closes the connection, if it has no response."""
        try:
            return await self._route(request)
        except MachineExitedError:
            return None

    async def _route(self, request: WireRequest) -> Any:
        if request.key == API_VERSIONS:
            return await self._api_versions(request)
        if request.key == METADATA:
            return await self._metadata(request)
        if request.key == DESCRIBE_CLUSTER:
            return wire_responses.describe_cluster(request, self._view())
        if self._replicas is not None and request.key in REPLICA_KEYS:
            return self._replicas.serve(request)
        if request.key == UPDATE_METADATA:
            message = wire_requests.read_update_metadata(request)
            self._session.deliver(self._broker_slot, UpdateMetadataReceived(message))
            return wire_responses.update_metadata()
        if request.key != UPDATE_FEATURES and self._api_dialect.controls_topics:
            await self._wait_for_topics()
            if request.key in KIP4_KEYS:
                return await self._kip4.serve(request)
            return await self._topics.serve(request)
        update = wire_requests.read_update_features(request, self._api_dialect)
        response = await self._session.request(self._controller_slot, update)
        assert isinstance(response, UpdateResponse)  # noqa: S101 - the response to an update
        return wire_responses.update_features(request, response)

    async def _metadata(self, request: WireRequest) -> Any:
        names_topics = request.body.topics is None or bool(request.body.topics)
        if self._api_dialect.controls_topics and names_topics:
            await self._wait_for_topics()
            if self._controller.partitions is None:
                return None  # a standby knows no topics: the client continues with a broker
        topics = topic_metadata(request, self._controller.partitions)
        return wire_responses.metadata(request, self._view(), topics)

    async def _wait_for_topics(self) -> None:
        """A controller that was just elected responds when it has read the cluster."""
        with contextlib.suppress(TimeoutError):
            await self.wait_until(
                lambda: not self._controller.active or self._controller.partitions is not None,
                _START_TIMEOUT_S,
            )

    async def _perform_topic_request(self, request: TopicRequest) -> TopicResponse:
        return cast("TopicResponse", await self._session.request(self._controller_slot, request))

    async def _api_versions(self, request: WireRequest) -> Any:
        if request.body is None:
            return wire_responses.api_versions_error(ErrorCode.UNSUPPORTED_VERSION)
        if not wire_requests.is_valid_software(request.body):
            return wire_responses.api_versions_error(ErrorCode.INVALID_REQUEST)
        response = await self._session.request(self._broker_slot, ApiVersions(request.version))
        assert isinstance(response, FeaturesResponse)  # noqa: S101 - the response to ApiVersions
        return wire_responses.api_versions(request, self._api_dialect, response)

    def _view(self) -> ClusterView:
        controller_id = self.controller_id
        brokers = self._directory.brokers
        if self.settings.operations is not None:
            # As the controller tells the brokers: its own node, and those that host topics.
            hidden = self.settings.operations.controller_ids - {controller_id}
            brokers = {key: value for key, value in brokers.items() if key not in hidden}
        return ClusterView(
            self._directory.cluster_id, -1 if controller_id is None else controller_id, brokers
        )
