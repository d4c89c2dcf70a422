"""Sends a controller's UpdateMetadata messages to brokers, in the dialect that pushes levels.

Each message is sent once. If it cannot be delivered, it is lost: the controller sends it again, and
the broker reads the znode anyway. While a message to an address is in flight, only the newest later
one is queued.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from featurewatch.kafka.connection import request_frame
from featurewatch.kafka.messages import StruckUpdateMetadataRequestV6
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import UpdateMetadata

_TIMEOUT_S: Final = 5.0
_log = logging.getLogger("featurewatch.reference.zookeeper")


class UpdateMetadataSender:
    """Sends the messages of one node; ``endpoint`` returns a broker's address, None if unknown.

    ``on_delivered`` is called with the id of each broker that has confirmed a message, and the
    epoch of that message.
    """

    def __init__(
        self,
        node_id: int,
        name: str,
        endpoint: Callable[[int], Endpoint | None],
        on_delivered: Callable[[int, int], None],
    ) -> None:
        self._node_id = node_id
        self._name = name
        self._endpoint = endpoint
        self._on_delivered = on_delivered
        self._newest: dict[Endpoint, UpdateMetadata] = {}
        self._receivers: dict[Endpoint, set[int]] = {}
        self._running: dict[Endpoint, asyncio.Task[None]] = {}

    def send(self, broker_id: int, message: UpdateMetadata, controller_epoch: int) -> None:
        """Sends or queues a message for a broker; ``controller_epoch`` is the sender's."""
        endpoint = self._endpoint(broker_id)
        if endpoint is None:
            _log.info("%s: no UpdateMetadata to unknown broker %d", self._name, broker_id)
            return
        self._newest[endpoint] = message
        self._receivers.setdefault(endpoint, set()).add(broker_id)
        if endpoint not in self._running:
            work = self._deliver(endpoint, controller_epoch)
            self._running[endpoint] = asyncio.get_running_loop().create_task(work)

    async def close(self) -> None:
        """Cancels what is in flight."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _deliver(self, endpoint: Endpoint, controller_epoch: int) -> None:
        try:
            while (message := self._newest.pop(endpoint, None)) is not None:
                receivers = self._receivers.pop(endpoint, set())
                await self._send(endpoint, self._request(message, controller_epoch))
                for broker_id in sorted(receivers):
                    self._on_delivered(broker_id, message.epoch)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            address = f"{endpoint.host}:{endpoint.port}"
            reason = str(error) or type(error).__name__
            _log.info("%s: UpdateMetadata did not reach %s: %s", self._name, address, reason)
        finally:
            del self._running[endpoint]

    def _request(
        self, message: UpdateMetadata, controller_epoch: int
    ) -> StruckUpdateMetadataRequestV6:
        form = StruckUpdateMetadataRequestV6
        return form(
            controller_id=self._node_id,
            controller_epoch=controller_epoch,
            broker_epoch=-1,
            topic_states=(),
            live_brokers=(),
            features_epoch=message.epoch,
            features=tuple(
                form.FeatureKey(name=name, version_level=level)
                for name, level in sorted(message.features.items())
            ),
        )

    async def _send(self, endpoint: Endpoint, request: StruckUpdateMetadataRequestV6) -> None:
        async with asyncio.timeout(_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
            try:
                writer.write(request_frame(request, 0, self._name))
                await writer.drain()
                size = int.from_bytes(await reader.readexactly(4))
                await reader.readexactly(size)
            finally:
                writer.close()
