"""What the synchronous and the asynchronous readers share: one topic, opened when it is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from featurewatch.client.errors import ClientError, OnProblem
from featurewatch.client.fold import TopicFold
from featurewatch.client.offsets import OffsetStore
from featurewatch.client.since import Since, bus_settings, start_of
from featurewatch.client.subscription import Delivery, Subscription
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import Output
from featurewatch.streams.topics import Topic

POLL_S: Final = 0.5

OutputT = TypeVar("OutputT", bound=Output)


@dataclass(frozen=True, slots=True)
class Reading(Generic[OutputT]):
    """What to read; the fields are the parameters of the public functions."""

    topic: Topic
    cls: type[OutputT]
    bus: BusSettings | str
    since: Since | datetime
    offsets: OffsetStore | None
    cluster: str
    on_problem: OnProblem | None

    def open(self) -> Subscription[OutputT]:
        """Opens the topic; raises what `Subscription` does."""
        return Subscription(
            bus_settings(self.bus),
            self.topic,
            lambda revisions: TopicFold(self.topic, self.cls, revisions, self.cluster),
            start_of(self.since),
            self.offsets,
        )

    def values(
        self, subscription: Subscription[OutputT], deliveries: list[Delivery[OutputT]]
    ) -> Iterator[OutputT]:
        """Yields values; one counts as processed when the next is asked for. Raises problems."""
        for delivery in deliveries:
            if not isinstance(delivery.item, ClientError):
                yield delivery.item
            elif self.on_problem is not None:
                self.on_problem(delivery.item)
            else:
                raise delivery.item
            subscription.done(delivery)


def follow(reading: Reading[OutputT]) -> Iterator[OutputT]:
    """Yields the values of a topic, and waits for new ones for ever."""
    subscription = reading.open()
    try:
        while True:
            yield from reading.values(subscription, subscription.poll(POLL_S))
    finally:
        subscription.close()
