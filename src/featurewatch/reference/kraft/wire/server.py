"""The listener of a controller: Raft, the metadata controller, ApiVersions (``ControllerApis``)."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRequest,
    ControllerResponse,
)
from featurewatch.reference.kraft.machines.requests import (
    INVALID_REQUEST,
    RaftAnswer,
    RaftRequest,
)
from featurewatch.reference.kraft.wire.controller_messages import (
    APIS,
    BY_KEY,
    KIP_778_VERSIONS,
    controller_request_of,
    controller_response_message,
    request_class,
)
from featurewatch.reference.kraft.wire.envelope import (
    ENVELOPE,
    EnvelopeError,
    envelope_error,
    envelope_response,
    forwarded_request,
)
from featurewatch.reference.kraft.wire.messages import (
    API_VERSIONS,
    VERSIONS,
    InvalidRequestError,
    answer_message,
    error_message,
    request_of,
)
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, FeaturesResponse
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALTER_PARTITION,
    UPDATE_FEATURES,
    ApiDialect,
    Versions,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest, read_offered
from featurewatch.reference.zookeeper.wire.responses import api_versions, api_versions_error
from featurewatch.reference.zookeeper.wire.server import MAX_BROKER_REQUEST_BYTES, WireServer

_RAFT: Final[Mapping[int, Versions]] = MappingProxyType(
    {**{key: versions for _, key, versions in VERSIONS.values()}, API_VERSIONS: (0, 4)}
)
_CONTROLLER: Final[Mapping[int, Versions]] = MappingProxyType(
    {**_RAFT, ENVELOPE: (0, 0), **{api.key: api.versions for api in APIS.values()}}
)
_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {ENVELOPE: "Envelope", **{key: name for name, key, _ in VERSIONS.values()}}
)
_LIMITS: Final = MappingProxyType({ALTER_PARTITION: MAX_BROKER_REQUEST_BYTES})

Answering = Callable[[RaftRequest], Awaitable[RaftAnswer]]
"""Answers a request of Raft, maybe after a while."""


class MetadataApi(Protocol):
    """The metadata controller of a node, as its listener sees it."""

    def features(self) -> FeaturesResponse:
        """The ranges that this controller supports and the levels that it knows."""

    async def answer(self, request: ControllerRequest, version: int) -> ControllerResponse:
        """Answers a request, as soon as what follows from it is committed."""


def offered(*, has_controller: bool, as_written: bool = False) -> Mapping[int, Versions]:
    """API key → (oldest, newest version): what ApiVersions lists; ``as_written``: by KIP-778."""
    if not has_controller:
        return _RAFT
    if as_written:
        return MappingProxyType({**_CONTROLLER, UPDATE_FEATURES: KIP_778_VERSIONS})
    return _CONTROLLER


class RaftServer(WireServer):
    """Listens for other replicas, brokers and clients.

    Without ``metadata`` there is no controller above the voter, and ``features`` are what it
    supports. ``as_written``: the requests are those of KIP-778, not those of released Kafka.
    """

    def __init__(
        self,
        answering: Answering,
        features: FeaturesResponse,
        metadata: MetadataApi | None = None,
        *,
        host: str,
        port: int,
        name: str,
        as_written: bool = False,
    ) -> None:
        self._dialect = ApiDialect.KIP_778 if as_written else ApiDialect.RELEASED
        super().__init__(
            self._dialect, self._handle, host=host, port=port, name=name, limits=_LIMITS
        )
        self._answering = answering
        self._features = features
        self._metadata = metadata
        self._offered = offered(has_controller=metadata is not None, as_written=as_written)

    def decode(self, frame: bytes) -> WireRequest:
        """See `WireServer.decode`."""
        return read_offered(frame, self._offered, self._class_of)

    def _class_of(self, key: int, version: int) -> Any:
        if key in BY_KEY:
            is_written = self._dialect is ApiDialect.KIP_778
            return request_class(key, version, as_written=is_written)
        return message_class(f"{_NAMES[key]}Request", version)

    async def _handle(self, request: WireRequest) -> Any:
        if request.key == API_VERSIONS:
            return self._api_versions(request)
        if request.key == ENVELOPE:
            return await self._forwarded(request)
        if request.key in BY_KEY and self._metadata is not None:
            asked = controller_request_of(request.key, request.body)
            answer = await self._metadata.answer(asked, request.version)
            return controller_response_message(request.key, request.version, answer)
        try:
            of_raft = request_of(request.key, request.body)
        except InvalidRequestError:
            return error_message(request.key, request.version, INVALID_REQUEST)
        return answer_message(request.key, request.version, await self._answering(of_raft))

    async def _forwarded(self, request: WireRequest) -> Any:
        try:
            inner = forwarded_request(request.body, self._offered, self._class_of)
        except EnvelopeError as error:
            return envelope_error(error.code)
        return envelope_response(inner.correlation_id, await self._handle(inner))

    def _api_versions(self, request: WireRequest) -> Any:
        if request.body is None:
            return api_versions_error(ErrorCode.UNSUPPORTED_VERSION)
        features = self._features if self._metadata is None else self._metadata.features()
        return api_versions(request, self._dialect, features, self._offered)
