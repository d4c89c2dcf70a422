"""The client for services: its import, a gate's lookup, and how soon a change is in a gate."""

import random
import statistics
import sys
import threading
import time
import timeit
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from featurewatch.client import FeatureGate
from featurewatch.client.gate_state import GateState
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import encode_output, encode_state
from featurewatch.streams.topics import FEATURE_CHANGES, OPERATIONS, STATE
from tests.bench.turns import line, medians
from tests.client.published import CLUSTER, FEATURE, change, snapshot

_CHANGES: Final = 200
_PAUSE_S: Final = (0.01, 0.03)
_TIMEOUT_S: Final = 30.0
_LOOKUPS: Final = 1_000_000
_REPEATS: Final = 7


def light() -> Iterator[dict[str, Any]]:
    """``client_import_vs_confluent`` and ``gate_lookup_ns``."""
    reading = "import featurewatch.client.following"
    took = medians(
        {
            "client": (sys.executable, "-c", "import featurewatch.client"),
            "reading": (sys.executable, "-c", reading),
            "confluent": (sys.executable, "-c", "import confluent_kafka"),
        }
    )
    ratio = took["client"] / took["confluent"]
    with_kafka = round(took["reading"] / took["confluent"], 2)
    yield line(
        "client_import_vs_confluent",
        took["client"],
        took["confluent"],
        ratio,
        ratio_when_reading=with_kafka,
    )
    yield _lookup()


def _lookup() -> dict[str, Any]:
    state = GateState()
    for number in range(100):
        for _ in state.apply_snapshot(snapshot(5, cluster=f"cluster-{number}")):
            raise AssertionError("a snapshot has a problem")
    gate = FeatureGate.__new__(FeatureGate)  # without a bus: a lookup reads memory alone
    gate._state, gate._levels = state, state.levels
    bare = {f"cluster-{number}": 25 for number in range(100)}
    names: dict[str, Any] = {"gate": gate, "bare": bare, "c": "cluster-7", "f": FEATURE}

    def nanoseconds(statement: str) -> float:
        times = timeit.repeat(
            statement,
            globals=names,
            number=_LOOKUPS,
            repeat=_REPEATS,
            timer=time.process_time,
        )
        return min(times) / _LOOKUPS * 1e9

    assert gate.level("cluster-7", FEATURE) == bare["cluster-7"]
    value, baseline = nanoseconds("gate.level(c, f)"), nanoseconds("bare[c]")
    return {
        "measure": "gate_lookup_ns",
        "unit": "ns",
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "ratio": round(value / baseline, 2),
        "clusters": 100,
    }


def latency(bus: BusSettings) -> Iterator[dict[str, Any]]:
    """``change_to_gate_p50``: changes and bare messages in turns, each from produce to its reader.

    The bare consumer waits for messages of another topic, and decodes nothing.
    """
    ensure_topics(bus, (STATE, FEATURE_CHANGES, OPERATIONS))
    producer = Producer(bus.client(linger_ms=0) | {"acks": "all"})
    state = encode_state(snapshot(1))
    producer.produce(bus.topic(STATE), state.value, state.key)
    producer.flush()
    chance = random.Random(37)
    with FeatureGate(bus) as gate, _BareConsumer(bus) as consumer:
        delays: dict[str, list[float]] = {"gate": [], "bare": []}
        for revision in range(2, _CHANGES + 2):
            message = encode_output(change(revision))
            time.sleep(chance.uniform(*_PAUSE_S))
            began_s = time.perf_counter()
            producer.produce(bus.topic(FEATURE_CHANGES), message.value, message.key)
            producer.poll(0)
            gate.wait(CLUSTER, FEATURE, revision + 20, _TIMEOUT_S)
            delays["gate"].append(time.perf_counter() - began_s)
            producer.flush()
            time.sleep(chance.uniform(*_PAUSE_S))
            began_s = time.perf_counter()
            producer.produce(bus.topic(OPERATIONS), message.value, message.key)
            producer.poll(0)
            consumer.wait()
            delays["bare"].append(time.perf_counter() - began_s)
            producer.flush()
    value, baseline = (statistics.median(delays[name]) for name in ("gate", "bare"))
    yield line("change_to_gate_p50", value, baseline, value / baseline, changes=_CHANGES)


class _BareConsumer:
    """Reads a topic in a separate thread, as a gate does, and says when a message came."""

    def __init__(self, bus: BusSettings) -> None:
        self._consumer = Consumer(bus.client(group_id="bench", enable_auto_commit=False))
        name = bus.topic(OPERATIONS)
        numbers = self._consumer.list_topics(name, timeout=10).topics[name].partitions
        self._consumer.assign([TopicPartition(name, number, 0) for number in numbers])
        self._came, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._read)

    def wait(self) -> None:
        """Returns once the next message came."""
        assert self._came.wait(_TIMEOUT_S), "the message did not come"
        self._came.clear()

    def __enter__(self) -> "_BareConsumer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._came.set()
