"""A tiny client of the drafts of KIP-584: what their texts let a client ask, over a connection."""

import asyncio
from types import TracebackType
from typing import Any, Self

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse

from featurewatch.reference.wire import draft_messages
from featurewatch.reference.wire.api_keys import ApiDialect
from featurewatch.streams.net.address import Address
from featurewatch.streams.net.asyncio_transport import AsyncioTransport
from featurewatch.streams.net.connection import Connection

TIMEOUT_S = 15.0

Answer = tuple[int, str | None]
"""An error code, 0 for none, and an error message."""


class DraftClient:
    """Speaks one draft with one node; ``async with await DraftClient.at(address, speech)``."""

    def __init__(self, connection: Connection, speech: ApiDialect, version: int) -> None:
        self._connection = connection
        self._speech = speech
        self._version = version
        self.last: Any = None
        """The last answer to an update, as it came."""

    @classmethod
    async def at(cls, address: str, speech: ApiDialect, version: int = 1) -> Self:
        """Connects; ``version`` is that of the updates and deletions that it sends."""
        where = Address.parse(address)
        reader, writer = await asyncio.open_connection(where.host, where.port)
        return cls(Connection(where, AsyncioTransport(reader, writer)), speech, version)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self._connection.close()

    async def update(self, *items: tuple[str, int, int]) -> Answer:
        """Sends UPDATE_FEATURES; an item is a name, a level and the type or whether to allow."""
        classes = draft_messages.update_features(self._speech, self._version)
        level = draft_messages.level_field(self._speech)
        updates = tuple(
            classes.update(
                **self._how(how), feature=(classes.feature(**{"name": name, level: wanted}),)
            )
            for name, wanted, how in items
        )
        return await self._ask(classes, classes.request(feature_update=updates))

    async def delete(self, *names: str) -> Answer:
        """Sends DELETE_FEATURES."""
        classes = draft_messages.delete_features(self._version)
        features = tuple(classes.feature(name=name) for name in names)
        return await self._ask(classes, classes.request(feature=features))

    async def features(self) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
        """Asks ApiVersions v3; supported ranges, finalized levels, epoch."""
        classes = draft_messages.api_versions(self._speech)
        asked = ApiVersionsRequest(client_software_name="draft", client_software_version="1")
        answer = await self._connection.request(asked, classes.response, TIMEOUT_S)
        level = draft_messages.level_field(self._speech)
        return (
            {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
            {each.name: getattr(each, level) for each in answer.finalized_features},
            answer.finalized_features_epoch,
        )

    async def controller(self) -> tuple[int, str]:
        """Asks Metadata; the controller's id and address."""
        answer = await self._connection.request(
            MetadataRequest(topics=()), MetadataResponse, TIMEOUT_S
        )
        where = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
        return answer.controller_id, where.get(answer.controller_id, "")

    def _how(self, how: int) -> dict[str, Any]:
        if self._speech is ApiDialect.LATER_DRAFT:
            return {"allow_downgrade": bool(how)}
        return {"feature_update_type": how}

    async def _ask(self, classes: draft_messages.MessageClasses, request: Any) -> Answer:
        answer: Any = await self._connection.request(request, classes.response, TIMEOUT_S)
        self.last = answer
        return answer.error_code, answer.error_message
