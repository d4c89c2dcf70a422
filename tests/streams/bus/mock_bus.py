"""librdkafka's broker inside this process: a bus in milliseconds, without creation of topics."""

from confluent_kafka import Producer

from featurewatch.streams.bus.settings import BusSettings


class MockBus:
    """One mock broker; keep a reference while it is in use. Topics appear when they are used."""

    def __init__(self, partitions: int = 4) -> None:
        self._owner = Producer(
            {
                "bootstrap.servers": "mock",
                "test.mock.num.brokers": 1,
                "log_level": 0,
            }
        )
        (broker,) = self._owner.list_topics(timeout=60).brokers.values()
        self.settings = BusSettings(f"{broker.host}:{broker.port}", partitions=partitions)

    def put(self, topic: str, key: bytes, value: bytes, partition: int, time_ms: int = 0) -> None:
        """A message as somebody else would write it, once it is on the topic; 0: current time."""
        self._owner.produce(topic, value, key, partition=partition, timestamp=time_ms)
        assert self._owner.flush(10) == 0
