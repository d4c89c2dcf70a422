"""The channels of a controller: requests go out in order, responses come back as events.

Follows ``kafka.controller.ControllerChannelManager``. Each live broker has its own queue and
connection, so a broker that does not answer delays no other. A request is repeated until the broker
responds or leaves the live set: a broker's znode is there before its port listens.
"""

import asyncio
from collections.abc import Callable, Mapping

from featurewatch.reference.zookeeper.channels.channel import BrokerChannel, ChannelSettings
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponded,
)
from featurewatch.reference.zookeeper.machines.topics.context import ClusterBroker

Deliver = Callable[[BrokerResponded], None]
"""Puts an event in the queue of the controller's event loop.

A channel calls it from its own task, so it must not run the machine.
"""


class BrokerChannels:
    """The channels to the live brokers; at first no broker is live.

    ``name`` is the client id and is part of log lines. All methods are called in the event loop.
    """

    def __init__(
        self,
        name: str,
        deliver: Deliver,
        *,
        settings: ChannelSettings | None = None,
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._settings = settings or ChannelSettings()
        self._channels: dict[int, BrokerChannel] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def set_live(self, brokers: Mapping[int, ClusterBroker]) -> None:
        """Opens channels to new brokers, and ends those to brokers that are not in the set.

        A broker with another epoch is a new one: what was queued for the one before is dropped. A
        broker without an address keeps its queue until it has one. A deposed controller calls this
        with no brokers. Call it before the requests that follow from the change are sent.
        """
        for broker_id, channel in [*self._channels.items()]:
            broker = brokers.get(broker_id)
            if broker is None or broker.epoch != channel.broker_epoch:
                del self._channels[broker_id]
                self._end(channel)
        for broker_id, broker in brokers.items():
            if broker_id not in self._channels:
                self._channels[broker_id] = BrokerChannel(
                    broker_id,
                    broker.epoch,
                    self._name,
                    self._deliver,
                    self._settings,
                )
            self._channels[broker_id].set_endpoint(broker.endpoint)

    def send(self, broker_id: int, request: BrokerRequest) -> None:
        """Queues a request; it is dropped if the broker is not live in the request's epoch."""
        channel = self._channels.get(broker_id)
        if channel is not None and channel.broker_epoch == request.broker_epoch:
            channel.send(request)

    def queued_states(self, broker_id: int) -> int:
        """How many states of partitions wait for a broker, those in flight included."""
        channel = self._channels.get(broker_id)
        return 0 if channel is None else channel.queued_states

    async def close(self) -> None:
        """Ends all channels and returns when their tasks have ended."""
        self.set_live({})
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _end(self, channel: BrokerChannel) -> None:
        task = asyncio.get_running_loop().create_task(channel.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
