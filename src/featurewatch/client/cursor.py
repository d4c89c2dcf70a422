"""One topic of the bus at given positions, and what was lost of it since they were noted."""

from typing import Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from featurewatch.client.errors import (
    ClientError,
    MessagesLostError,
    TopicRecreatedError,
    WrongPrefixError,
)
from featurewatch.client.offsets import Positions
from featurewatch.client.since import Since
from featurewatch.streams.bus.errors import BusError, BusSetupError, BusUnavailableError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import LOG, BusSettings
from featurewatch.streams.topics import FEATURE_CHANGES, STATE, Topic

ANSWER_S: Final = 10.0
_DESCRIBE_S: Final = 2.0
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of a topic on brokers that have none."""


class TopicCursor:
    """One topic of the bus, read from given positions on. ``answer_s``: for a bus that is down.

    Raises what `TopicReader` does, and `WrongPrefixError`.
    """

    def __init__(self, bus: BusSettings, topic: Topic, *, answer_s: float = ANSWER_S) -> None:
        self.name = bus.topic(topic)
        self._bus = bus
        try:
            self.reader = TopicReader(
                bus,
                topic,
                partitions=(),
                answer_s=answer_s,
                group="client",
                log=None,
                # Messages that expired unread must be noticed: the default skips them.
                auto_offset_reset="error",
                fetch_wait_max_ms=100,
            )
        except (BusSetupError, BusUnavailableError):
            raise
        except BusError as error:
            self._check_prefix(error)
            raise
        try:
            self._admin = AdminClient(bus.client(), logger=LOG)
            self.topic_id = self.read_topic_id()
        except BaseException:
            self.reader.close()
            raise

    def read_topic_id(self) -> str:
        """Returns Kafka's id of the topic; empty: the bus has no ids, or the topic is missing.

        Raises `BusUnavailableError`.
        """
        described = self._admin.describe_topics(
            TopicCollection([self.name]), request_timeout=_DESCRIBE_S
        )
        try:
            found = str(described[self.name].result().topic_id)
        except KafkaException as exception:
            error = exception.args[0]
            if error.retriable() or error.code() < 0:
                raise BusUnavailableError(
                    f"the bus at {self._bus.bootstrap_servers} does not describe the topic "
                    f"{self.name} ({error.str()})"
                ) from exception
            return ""
        return "" if found == _NO_ID else found

    def is_recreated(self) -> bool:
        """Whether the topic has another id than at the start; false while the bus is down."""
        if self.reader.error is not None:
            return False
        try:
            return self.read_topic_id() != self.topic_id
        except BusUnavailableError:
            return False

    def begin(self, positions: Positions | None, since: Since | int) -> list[ClientError]:
        """Begins to read where ``positions`` end, else at ``since``; returns what was lost.

        Raises `BusUnavailableError`.
        """
        numbers = range(self.reader.partition_counts[self.name])
        bounds = {number: self.reader.offsets(self.name, number) for number in numbers}
        starts = {number: low for number, (low, _) in bounds.items()}
        problems: list[ClientError] = []
        if positions is not None:
            reason = self._difference(positions, bounds)
            if reason:
                problems.append(TopicRecreatedError(self.name, reason))
            else:
                for number, (low, _) in bounds.items():
                    wanted = positions.offsets.get(number, low)
                    if wanted < low:
                        problems.append(MessagesLostError(self.name, number, wanted, low))
                    starts[number] = max(wanted, low)
        elif since is Since.NOW:
            starts = {number: end for number, (_, end) in bounds.items()}
        elif isinstance(since, int):
            found = self.reader.offsets_at(self.name, since)
            starts = {
                number: max(found[number], low) if found.get(number, -1) >= 0 else end
                for number, (low, end) in bounds.items()
            }
        self.starts = starts
        self.reader.read_from({(self.name, number): start for number, start in starts.items()})
        return problems

    def _difference(self, positions: Positions, bounds: dict[int, tuple[int, int]]) -> str:
        """Why positions are of another topic of this name; empty: they are not."""
        if positions.topic_id and self.topic_id and positions.topic_id != self.topic_id:
            return f"its id is {self.topic_id}, and was {positions.topic_id}"
        for number, offset in positions.offsets.items():
            if number not in bounds:
                return f"it has no partition {number} any more"
            if offset > bounds[number][1]:
                return f"partition {number} ends at offset {bounds[number][1]}, before {offset}"
        return ""

    def _check_prefix(self, error: BusError) -> None:
        """Raises `WrongPrefixError` if the bus has none of the topics of the prefix."""
        try:
            admin = AdminClient(self._bus.client(), logger=LOG)
            names = admin.list_topics(timeout=ANSWER_S).topics
        except KafkaException:
            return
        if any(name in names for name in map(self._bus.topic, (STATE, FEATURE_CHANGES))):
            return
        suffix = f".{FEATURE_CHANGES.short_name}"
        others = sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))
        servers, prefix = self._bus.bootstrap_servers, self._bus.prefix
        raise WrongPrefixError(servers, prefix, others) from error

    def close(self) -> None:
        """Closes the consumer."""
        self.reader.close()
