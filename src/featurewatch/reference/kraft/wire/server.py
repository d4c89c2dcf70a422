"""The listener of a replica: the requests of Raft, and ApiVersions (``ControllerApis``)."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from featurewatch.kafka.messages import build_message, message_class, request_names
from featurewatch.reference.kraft.machines.requests import (
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    RaftAnswer,
    RaftRequest,
)
from featurewatch.reference.kraft.wire.messages import (
    API_VERSIONS,
    VERSIONS,
    InvalidRequestError,
    answer_message,
    error_message,
    request_of,
)
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.reference.zookeeper.wire.frames import WireRequest, read_offered
from featurewatch.reference.zookeeper.wire.server import WireServer
from featurewatch.streams.types import KRAFT_VERSION, SupportedRange

OFFERED: Final[Mapping[int, tuple[int, int]]] = MappingProxyType(
    {**{key: versions for _, key, versions in VERSIONS.values()}, API_VERSIONS: (0, 4)}
)
"""API key → (oldest, newest version): what ApiVersions lists."""
_NAMES: Final = request_names()

Answering = Callable[[RaftRequest], Awaitable[RaftAnswer]]
"""Answers a request, maybe after a while."""


class RaftServer(WireServer):
    """Listens for other replicas and for clients; ``levels`` are the features that it supports."""

    def __init__(
        self,
        answering: Answering,
        kraft_versions: SupportedRange,
        *,
        host: str,
        port: int,
        name: str,
    ) -> None:
        super().__init__(ApiDialect.RELEASED, self._handle, host=host, port=port, name=name)
        self._answering = answering
        self._kraft_versions = kraft_versions

    def decode(self, frame: bytes) -> WireRequest:
        """See `WireServer.decode`."""
        return read_offered(
            frame, OFFERED, lambda key, version: message_class(f"{_NAMES[key]}Request", version)
        )

    async def _handle(self, request: WireRequest) -> Any:
        if request.key == API_VERSIONS:
            return self._api_versions(request)
        try:
            asked = request_of(request.key, request.body)
        except InvalidRequestError:
            return error_message(request.key, request.version, INVALID_REQUEST)
        return answer_message(request.key, request.version, await self._answering(asked))

    def _api_versions(self, request: WireRequest) -> Any:
        is_known = request.body is not None
        form = message_class("ApiVersionsResponse", request.version if is_known else 0)
        keys = tuple(
            form.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in sorted(OFFERED.items())
        )
        values: dict[str, Any] = {
            "error_code": 0 if is_known else UNSUPPORTED_VERSION,
            "api_keys": keys,
            "throttle_time_ms": 0,
        }
        low, high = self._kraft_versions
        # Before version 4 a range that begins at 0 cannot be sent (KIP-1022).
        if hasattr(form, "SupportedFeatureKey") and (low > 0 or request.version > 3):
            values["supported_features"] = (
                form.SupportedFeatureKey(name=KRAFT_VERSION, min_version=low, max_version=high),
            )
        return build_message(form, **values)
