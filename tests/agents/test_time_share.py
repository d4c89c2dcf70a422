"""A cluster whose messages cost too much does not keep the alerts of others waiting."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.time_share import CAPACITY_S, SHARE, TimeShare
from featurewatch.monitor.input_messages import InputMessage, ProcessResult, process
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Event
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from tests.agents.events import levels

BUS = BusSettings("127.0.0.1:9092", partitions=1)
HOSTILE, OTHER = ClusterId("hostile"), ClusterId("other")
COST_S = 3.0
"""The processor's seconds for each message of the hostile cluster."""

MIB = 1 << 20


def test_what_a_message_explains_is_not_charged() -> None:
    """A large cluster that is read from its beginning takes all of a worker's time for a while."""
    share = TimeShare()
    for number in range(10_000):
        share.charge(HOSTILE, 5.9, 12 * MIB, number)
        share.charge(HOSTILE, 0.002, 100, number)
    assert not share.is_over(HOSTILE, 10_000)


def test_a_cluster_is_over_until_half_of_its_share_is_there_again() -> None:
    """Other clusters are not, and nothing of it stays."""
    share = TimeShare()
    messages = 0
    while not share.is_over(HOSTILE, 0.0):
        share.charge(HOSTILE, COST_S, 100, 0.0)
        messages += 1
    assert messages == CAPACITY_S // COST_S + 1
    assert not share.is_over(OTHER, 0.0)
    half_s = CAPACITY_S / 2 / SHARE
    assert share.is_over(HOSTILE, half_s - 1)
    assert not share.is_over(HOSTILE, half_s + COST_S / SHARE)
    assert not share.is_over(HOSTILE, 3 * half_s)
    assert share._used_s == {}


class _Worker:
    """A processor without a bus, whose clocks are moved by the messages of the hostile cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.offset = 0
        self.processed = 0

        def costly(message: InputMessage, *arguments: Any) -> ProcessResult:
            result = process(message, *arguments)
            if message.key == HOSTILE.encode():
                self.now_s += COST_S
                self.processed += 1
            return result

        monkeypatch.setattr("featurewatch.agents.processor.process", costly)
        nothing = SimpleNamespace(send=self._send, write=self._send, observe=lambda *_: None)
        self.processor = EventProcessor(
            cast("Any", SimpleNamespace(tracker=None)),
            *(BUS, cast("Any", nothing), cast("Any", nothing), cast("Any", nothing)),
            cast("Any", None),
            lambda: self.now_s,
            processor_time=lambda: self.now_s,
        )

    async def _send(self, *_: Any) -> asyncio.Future[None]:
        delivered = asyncio.get_running_loop().create_future()
        delivered.set_result(None)
        return delivered

    async def take(self, event: Event) -> None:
        """Processes the next message of the topic."""
        sent = encode(METADATA_LOG, event)
        place = (BUS.topic(METADATA_LOG), 0, self.offset, 1000 + self.offset)
        self.offset += 1
        message = InputMessage(*place, sent.key, sent.value)
        await self.processor._process(METADATA_LOG, message, None)

    async def raise_level(self, cluster: ClusterId, offset: int, level: int) -> None:
        """Processes a message that finalizes a level."""
        await self.take(levels(offset, {"metadata.version": level}, cluster))

    def level(self, cluster: ClusterId) -> int | None:
        """The level of metadata.version."""
        image = self.processor.states[cluster].image
        return image.features.levels.get(METADATA_VERSION)


async def test_other_clusters_are_processed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hostile cluster is passed over, which an alert about it says."""
    worker = _Worker(monkeypatch)
    for number in range(1, 401):
        for cluster in (HOSTILE, OTHER):
            await worker.raise_level(cluster, number, 20 + number % 2)
    assert worker.level(OTHER) == 20
    # Of its share it gets back a part while it is processed.
    assert CAPACITY_S / COST_S < worker.processed < 2 * CAPACITY_S / COST_S
    firing = worker.processor.states[HOSTILE].firing
    (lost,) = (a for alerts in firing.values() for a in alerts if a.rule == "messages-lost")
    assert "took more of the worker's time" in lost.summary
    assert not worker.processor.states[OTHER].image.sources.has_lost(METADATA_LOG.short_name)
    # Its source answers the request for its whole state later.
    worker.now_s += CAPACITY_S / SHARE
    await worker.raise_level(HOSTILE, 900, 25)
    assert worker.level(HOSTILE) == 25
