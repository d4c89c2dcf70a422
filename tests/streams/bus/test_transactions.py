"""The publisher of transactions: what its errors mean. Pure; tests/agents fences real ones."""

import pytest
from confluent_kafka import KafkaError

from featurewatch.streams.bus.errors import FencedError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.transactions import TransactionalPublisher

FENCED = "Local: This instance has been fenced by a newer instance"


@pytest.mark.parametrize(
    ("code", "text", "is_fenced"),
    [
        (KafkaError._FENCED, FENCED, True),
        (KafkaError.INVALID_PRODUCER_EPOCH, "an old epoch", True),
        (KafkaError._ALL_BROKERS_DOWN, FENCED, False),
    ],
)
def test_a_fenced_publisher_fails_as_fenced(code: int, text: str, is_fenced: bool) -> None:
    """By the code of the error, whatever its text."""
    publisher = TransactionalPublisher(BusSettings("127.0.0.1:1"), "worker-0")
    failure = publisher._failure_of(KafkaError(code, text), text)
    assert isinstance(failure, FencedError) == is_fenced
