"""Several requests at once, over two connections: the responses are those of one after another."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from featurewatch.admin.cluster.configs import TopicConfig
from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import UnreachableError
from featurewatch.admin.topics.client import TopicAdmin
from featurewatch.kafka.address import Address
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import DescribeConfigsRequestV4, message_class
from featurewatch.kafka.transport import Transport
from tests.admin.scripted_brokers import Answer, ScriptedBrokers

pytestmark = pytest.mark.form("released")

NAMES = [f"topic-{number:04}" for number in range(1_200)]
"""Five requests."""
RESPONSE: Any = message_class("DescribeConfigsResponse", 4)


def described(request: DescribeConfigsRequestV4) -> bytes:
    """Two settings of each topic, the first of its own for every third."""
    results = tuple(
        RESPONSE.DescribeConfigsResult(
            error_code=0,
            error_message=None,
            resource_type=2,
            resource_name=resource.resource_name,
            configs=tuple(
                RESPONSE.DescribeConfigsResourceResult(
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=source,
                    is_sensitive=False,
                    synonyms=(),
                    config_type=3,
                    documentation=None,
                )
                for name, value, source in settings(resource.resource_name)
            ),
        )
        for resource in request.resources
    )
    return bytes(write_entity(RESPONSE(throttle_time_ms=0, results=results)))


def settings(topic: str) -> list[tuple[str, str, int]]:
    """Name, value and source of each setting of a topic."""
    is_own = NAMES.index(topic) % 3 == 0
    own = ("retention.ms", topic, 1) if is_own else ("retention.ms", "604800000", 5)
    return [own, ("min.insync.replicas", "1", 5)]


def closing(_request: Any) -> Any:
    """A broker that closes the connection instead of a response."""
    raise EOFError


class OneConnection(ScriptedBrokers):
    """Brokers that refuse the second connection, as one with ``max.connections.per.ip`` may."""

    opened = 0
    refused = 2

    async def connect(
        self, address: Address, tls: ssl.SSLContext | None, timeout_s: float
    ) -> Transport:
        """A `Connect`."""
        self.opened += 1
        if self.opened == self.refused:
            raise ConnectionRefusedError
        return await super().connect(address, tls, timeout_s)


def read(cluster: ScriptedBrokers) -> dict[str, TopicConfig]:
    """The settings of all topics."""

    async def work() -> dict[str, TopicConfig]:
        bootstrap = Bootstrap(cluster.addresses)
        async with TopicAdmin(bootstrap, connections=cluster.connections()) as admin:
            return dict(await admin.configs(NAMES))

    return asyncio.run(work())


@pytest.mark.parametrize(
    "answers",
    [
        [described] * 5,
        # The request that got no response is sent again, and those behind it.
        [described, closing, *[described] * 4],
        [closing, *[described] * 5],
        [*[described] * 4, closing, described],
    ],
)
@pytest.mark.parametrize("cluster_class", [ScriptedBrokers, OneConnection])
def test_each_topic_has_its_settings(
    cluster_class: Callable[..., ScriptedBrokers], answers: list[Answer]
) -> None:
    """In the order of the names, whatever connections break or are refused (A-18 as released)."""
    cluster = cluster_class(DescribeConfigsRequestV4, 1, _1=answers, _2=[described] * 5)
    found = read(cluster)
    assert list(found) == NAMES
    for name, config in found.items():
        shown = [(value.name, value.value, value.source) for value in config.values]
        assert (config.topic, shown) == (name, settings(name))


def test_two_are_on_their_way() -> None:
    """The second request is sent before the first response is read."""
    cluster = OneConnection(DescribeConfigsRequestV4, 1, _1=[described] * 5)
    cluster.refused = 0
    read(cluster)
    assert cluster.opened == 2


def test_when_all_fail_the_reasons_are_given() -> None:
    """One line with what each broker did."""
    cluster = ScriptedBrokers(
        DescribeConfigsRequestV4, 1, _1=[closing, closing, closing], _2=[closing]
    )
    with pytest.raises(UnreachableError, match=r"broker-1.*broker-2"):
        read(cluster)
