"""A minimal client of the drafts of KIP-584 over one connection."""

import asyncio
from types import TracebackType
from typing import Any, Self

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection
from featurewatch.kafka.messages import (
    DraftApiVersionsRequestV3,
    MetadataRequestV1,
    message_class,
)
from featurewatch.kafka.transport import AsyncioTransport
from featurewatch.reference.zookeeper.wire.api_keys import DRAFT_UPDATE, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import request_class

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
        form = request_class(self._api_dialect, DRAFT_UPDATE, self._version)
        updates = tuple(
            form.FeatureUpdateKey(
                **self._mode_field(mode),
                feature=(form.FeatureKey(name=name, version_level=value),),
            )
            for name, value, mode in items
        )
        return await self._request(form(feature_update=updates))

    async def delete(self, *names: str) -> CodeAndMessage:
        """Sends DELETE_FEATURES."""
        form = message_class("EarlyDeleteFeaturesRequest", self._version)
        features = tuple(form.FeatureKey(name=name) for name in names)
        return await self._request(form(feature=features))

    async def features(self) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
        """Sends ApiVersions v3; returns supported ranges, finalized levels and epoch."""
        response = await self.exchange(
            DraftApiVersionsRequestV3(client_software_name="draft", client_software_version="1")
        )
        return (
            {
                feature.name: (feature.min_version, feature.max_version)
                for feature in response.supported_features
            },
            {feature.name: feature.version_level for feature in response.finalized_features},
            response.finalized_features_epoch,
        )

    async def exchange(self, request: Any, form: Any = None) -> Any:
        """Sends a request; returns its response, or one of the class ``form``."""
        if form is not None:
            body = await self._connection._exchange(request, TIMEOUT_S)
            return self._connection.parse(body, form, 100)
        return await self._connection.request(request, TIMEOUT_S)

    async def controller(self) -> tuple[int, str]:
        """Sends Metadata; returns the controller's id and address."""
        response = await self.exchange(MetadataRequestV1(topics=()))
        addresses = {broker.node_id: f"{broker.host}:{broker.port}" for broker in response.brokers}
        return response.controller_id, addresses.get(response.controller_id, "")

    def _mode_field(self, mode: int) -> dict[str, Any]:
        if self._api_dialect is ApiDialect.LATER_DRAFT:
            return {"allow_downgrade": bool(mode)}
        return {"feature_update_type": mode}

    async def _request(self, request: Any) -> CodeAndMessage:
        response = await self.exchange(request)
        self.last_response = response
        return response.error_code, response.error_message
