"""Updates that are written, and whose levels live brokers have yet to confirm.

The early draft's struck-out text: a success means that UPDATE_METADATA was successfully made to all
live brokers. A message that got lost is sent again at each tick, and a broker that leaves is not
waited for.
"""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from featurewatch.reference.zookeeper.machines.controller.pending import (
    UNCONFIRMED,
    PendingRequest,
    PendingRequests,
    RequestStage,
)
from featurewatch.reference.zookeeper.machines.protocol import Effect, SendUpdateMetadata
from featurewatch.reference.zookeeper.machines.requests import UpdateMetadata, UpdateResponse


@dataclass(slots=True)
class _Delivery:
    pending: PendingRequest
    response: UpdateResponse
    message: UpdateMetadata
    unconfirmed: set[int]


class LevelDeliveries:
    """Responds to each update once every live broker has confirmed its levels."""

    def __init__(self, pending: PendingRequests, emit: Callable[[Effect], None]) -> None:
        self._pending = pending
        self._emit = emit
        self._deliveries: list[_Delivery] = []

    def begin(
        self,
        pending: PendingRequest,
        response: UpdateResponse,
        message: UpdateMetadata,
        broker_ids: Iterable[int],
    ) -> None:
        """Waits for these brokers, to which the message was sent, before it responds."""
        pending.stage = RequestStage.DELIVERING
        self._deliveries.append(_Delivery(pending, response, message, {*broker_ids}))
        self._respond()

    def confirm(self, broker_id: int, epoch: int) -> None:
        """A broker has confirmed the levels of this epoch, and so all older ones."""
        for delivery in self._deliveries:
            if delivery.message.epoch <= epoch:
                delivery.unconfirmed.discard(broker_id)
        self._respond()

    def retain(self, live_ids: Set[int]) -> None:
        """Brokers that are not live are not waited for."""
        for delivery in self._deliveries:
            delivery.unconfirmed &= live_ids
        self._respond()

    def send_again(self) -> None:
        """Sends what is not confirmed, unless the request has timed out."""
        self._deliveries = [
            delivery for delivery in self._deliveries if self._pending.is_pending(delivery.pending)
        ]
        newest = {
            broker_id: delivery.message
            for delivery in self._deliveries
            for broker_id in sorted(delivery.unconfirmed)
        }
        for broker_id, message in newest.items():
            self._emit(SendUpdateMetadata(broker_id, message))

    def abandon(self) -> None:
        """Responds that not all have confirmed, since another controller sends from now on."""
        for delivery in self._deliveries:
            self._pending.answer(delivery.pending, UNCONFIRMED)
        self._deliveries.clear()

    def _respond(self) -> None:
        for delivery in self._deliveries:
            if not delivery.unconfirmed:
                self._pending.answer(delivery.pending, delivery.response)
        self._deliveries = [delivery for delivery in self._deliveries if delivery.unconfirmed]
