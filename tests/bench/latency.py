"""``commit_to_alert_p50`` and ``_p99``: from the controller's append to the alert on its topic.

A controller that registers with a range that a finalized level excludes fires alerts; when it
registers anew with a good one they are resolved. Each registration is one change in the metadata
log of a real quorum, stamped by its leader. The baseline is one bare message from produce to
consume on the same bus.
"""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from cli.demo.ghost import Ghost
from streams.bus import BusSettings
from streams.output_codec import decode_alert
from streams.topics import ALERTS, DEAD_LETTERS
from streams.types import NodeId

GHOST = NodeId(9)
GOOD, BAD = (7, 30), (1, 9)


def alerts_after(
    bus: BusSettings, controllers: str, changes: int
) -> list[float]:
    """Milliseconds from each change's append to its alert, read on the topic."""
    consumer = _reader(bus, bus.topic(ALERTS))
    arrived: dict[tuple[str, int], float] = {}
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            message = consumer.poll(0.05)
            now_ms = time.time() * 1000
            if message is not None and message.error() is None:
                alert = decode_alert(message.value())
                if alert.rule == "incompatible-node":
                    arrived.setdefault((str(alert.state), alert.at_ms), now_ms)

    thread = threading.Thread(target=read)
    thread.start()
    ghost = Ghost(controllers, GHOST)
    try:
        for number in range(changes):
            supported = BAD if number % 2 == 0 else GOOD
            asyncio.run(ghost.register({"metadata.version": supported}))
            deadline = time.monotonic() + 20
            while len(arrived) <= number and time.monotonic() < deadline:
                time.sleep(0.002)
    finally:
        done.set()
        thread.join()
        consumer.close()
    if len(arrived) != changes:
        raise RuntimeError(f"{changes} changes led to {len(arrived)} alerts")
    return [now_ms - at_ms for (_, at_ms), now_ms in arrived.items()]


def bare_messages(bus: BusSettings, count: int) -> list[float]:
    """Milliseconds from produce to consume of single messages."""
    name = bus.topic(DEAD_LETTERS)
    consumer = _reader(bus, name)
    producer = Producer(bus.client(linger_ms=0) | {"acks": "all", "enable.idempotence": True})
    delays = []
    for number in range(count + 10):
        key = str(number).encode()
        began = time.perf_counter()
        producer.produce(name, b"{}", key)
        producer.poll(0)
        while True:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None and message.key() == key:
                break
        if number >= 10:
            delays.append((time.perf_counter() - began) * 1000)
        producer.flush()
    consumer.close()
    return delays


def measures(delays: list[float], bare: list[float], **facts: Any) -> Iterator[str]:
    """Both measures as JSON."""
    for name, at in (("p50", 0.5), ("p99", 0.99)):
        value, baseline = (_quantile(each, at) for each in (delays, bare))
        yield orjson.dumps(
            {
                "measure": f"commit_to_alert_{name}",
                "unit": "ms",
                "value": round(value, 1),
                "baseline": round(baseline, 1),
                "ratio": round(value / baseline, 2),
                "changes": len(delays),
                **facts,
            }
        ).decode()


def _quantile(values: list[float], at: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(at * 100) - 1]


def _reader(bus: BusSettings, name: str) -> Consumer:
    consumer = Consumer(
        bus.client() | {"group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 50}
    )
    found = consumer.list_topics(name, timeout=10).topics[name].partitions
    consumer.assign([TopicPartition(name, number, -1) for number in found])
    # An assignment is not yet a fetch: the first poll waits for the end offsets.
    consumer.poll(1.0)
    return consumer
