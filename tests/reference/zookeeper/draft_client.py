"""A minimal client of the drafts of KIP-584 over one connection."""

import asyncio
from types import TracebackType
from typing import Any, Self

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection
from featurewatch.kafka.transport import AsyncioTransport
from featurewatch.reference.zookeeper.wire import draft_messages
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect

TIMEOUT_S = 15.0

CodeAndMessage = tuple[int, str | None]
"""An error code, 0 for none, and an error message."""


class DraftClient:
    """A client of one draft at one node; ``async with await DraftClient.at(address,
    api_dialect)``."""

    def __init__(self, connection: Connection, api_dialect: ApiDialect, version: int) -> None:
        self._connection = connection
        self._api_dialect = api_dialect
        self._version = version
        self.last_response: Any = None
        """The last answer to an update, as it came."""

    @classmethod
    async def at(cls, address: str, api_dialect: ApiDialect, version: int = 1) -> Self:
        """Connects; ``version`` is the API version of its updates and deletions."""
        parsed = Address.parse(address)
        reader, writer = await asyncio.open_connection(parsed.host, parsed.port)
        return cls(Connection(parsed, AsyncioTransport(reader, writer)), api_dialect, version)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._connection.close()

    async def update(self, *items: tuple[str, int, int]) -> CodeAndMessage:
        """Sends UPDATE_FEATURES; an item is a name, a level and its mode: the type, or whether to
        allow a downgrade."""
        classes = draft_messages.update_features(self._api_dialect, self._version)
        level = draft_messages.level_field(self._api_dialect)
        updates = tuple(
            classes.update(
                **self._mode_field(mode), feature=(classes.feature(**{"name": name, level: value}),)
            )
            for name, value, mode in items
        )
        return await self._request(classes, classes.request(feature_update=updates))

    async def delete(self, *names: str) -> CodeAndMessage:
        """Sends DELETE_FEATURES."""
        classes = draft_messages.delete_features(self._version)
        features = tuple(classes.feature(name=name) for name in names)
        return await self._request(classes, classes.request(feature=features))

    async def features(self) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
        """Sends ApiVersions v3; returns supported ranges, finalized levels and epoch."""
        classes = draft_messages.api_versions(self._api_dialect)
        request = ApiVersionsRequest(client_software_name="draft", client_software_version="1")
        response = await self.exchange(request, classes.response)
        level = draft_messages.level_field(self._api_dialect)
        return (
            {
                feature.name: (feature.min_version, feature.max_version)
                for feature in response.supported_features
            },
            {feature.name: getattr(feature, level) for feature in response.finalized_features},
            response.finalized_features_epoch,
        )

    async def exchange(self, request: Any, response_class: Any) -> Any:
        """Sends a request; returns its response."""
        return await self._connection.request(request, response_class, TIMEOUT_S)

    async def controller(self) -> tuple[int, str]:
        """Sends Metadata; returns the controller's id and address."""
        response = await self.exchange(MetadataRequest(topics=()), MetadataResponse)
        addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in response.brokers}
        return response.controller_id, addresses.get(response.controller_id, "")

    def _mode_field(self, mode: int) -> dict[str, Any]:
        if self._api_dialect is ApiDialect.LATER_DRAFT:
            return {"allow_downgrade": bool(mode)}
        return {"feature_update_type": mode}

    async def _request(
        self, classes: draft_messages.MessageClasses, request: Any
    ) -> CodeAndMessage:
        response = await self.exchange(request, classes.response)
        self.last_response = response
        return response.error_code, response.error_message
