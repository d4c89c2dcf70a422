"""Topics with data, and the throttles that are set on a cluster."""

import asyncio

from confluent_kafka import Producer

from featurewatch.admin.cluster.configs import OwnConfigs
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.kafka.address import parse_addresses

MESSAGE = bytes(100_000)
MESSAGES = 120
"""Twelve megabytes: with a throttle of 1,000 bytes a second they take longer than any test."""


def throttles_of(servers: str, topic: str) -> OwnConfigs:
    """The throttles of a topic and of all brokers."""

    async def read() -> OwnConfigs:
        async with ReassignmentAdmin(Bootstrap(parse_addresses(servers))) as admin:
            found = await admin.throttles([topic], (await admin.topics(())).brokers)
            return {owner: values for owner, values in found.items() if values}

    return asyncio.run(read())


def fill(servers: str, topic: str) -> None:
    """Writes some megabytes to the partition 0 of a topic."""
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for _ in range(MESSAGES):
        producer.produce(topic, MESSAGE, partition=0)
    assert producer.flush(60) == 0
