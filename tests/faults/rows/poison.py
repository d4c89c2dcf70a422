"""Messages that no source would publish, on every topic."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from featurewatch.streams.topics import ALL, INPUTS, METADATA_LOG
from tests.faults.fault import Fault
from tests.faults.outputs import parsed
from tests.faults.stack import Stack

UNREADABLE: Final = ("unreadable",)
_DAY_MS: Final = 86_400_000
_ONE_PARTITION: Final = {"FEATUREWATCH_BUS__PARTITIONS": "1"}
"""Every message, whatever its key, is in the partition of the cluster's own."""
_FOREIGN: Final = "another-cluster"


def last_status(stack: Stack) -> dict[str, Any]:
    """The source's last heartbeat as it is on its topic."""
    config = {
        "bootstrap.servers": stack.bus.bootstrap_servers,
        "group.id": "faults",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(stack.topic(METADATA_LOG.short_name), 0, 0)])
    found: dict[str, Any] = {}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error():
            break  # the end of the partition
        value = parsed(message.value()) if message is not None else {}
        found = value if value.get("kind") == "status" else found
    consumer.close()
    return found


def _dumped(status: dict[str, Any], **fields: object) -> bytes:
    return json.dumps(status | fields).encode()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


Message = tuple[bytes | None, bytes | None, dict[str, Any]]
"""Key, value, and what else the producer takes."""

KINDS: Final[dict[str, tuple[str, Callable[[str, dict[str, Any]], Message]]]] = {
    "bytes": ("bytes that are not text", lambda c, status: (c.encode(), b"\xff\xfe\x00\x80", {})),
    "not-json": ("text that is no JSON", lambda c, status: (c.encode(), b"not JSON", {})),
    "empty": ("an empty value", lambda c, status: (c.encode(), b"", {})),
    "tombstone": ("no value", lambda c, status: (c.encode(), None, {})),
    "nested": ("JSON nested 50,000 deep", lambda c, status: (c.encode(), b"[" * 50_000, {})),
    "huge-integer": (
        "an integer of 5,000 digits",
        lambda c, status: (
            c.encode(),
            b'{"kind":"status","cluster":"' + c.encode() + b'","seen_ms":' + b"9" * 5000 + b"}",
            {},
        ),
    ),
    "unknown-kind": (
        "an unknown kind of event",
        lambda c, status: (c.encode(), json.dumps({"kind": "nonsense", "cluster": c}).encode(), {}),
    ),
    "large": ("a value of 8 MiB", lambda c, status: (c.encode(), b"x" * (8 << 20), {})),
    "no-key": ("an event without a key", lambda c, status: (None, _dumped(status), {})),
    "strange-key": (
        "bytes for a key",
        lambda c, status: (b"\xff\x00\x1b[31m", _dumped(status), {}),
    ),
    "foreign-key": (
        "the key of one cluster and the body of another",
        lambda c, status: (_FOREIGN.encode(), _dumped(status), {}),
    ),
    "future": (
        "an event whose times are a year ahead",
        lambda c, status: (
            c.encode(),
            _dumped(status, seen_ms=_now_ms() + 365 * _DAY_MS),
            {"timestamp": _now_ms() + 365 * _DAY_MS},
        ),
    ),
    "past": (
        "an event whose times are 1970",
        lambda c, status: (c.encode(), _dumped(status, seen_ms=1), {"timestamp": 1}),
    ),
}


@contextmanager
def poisoned(stack: Stack, kind: str) -> Iterator[None]:
    """One message of a kind on each topic."""
    message = KINDS[kind][1]
    config = {"bootstrap.servers": stack.bus.bootstrap_servers, "message.max.bytes": 16 << 20}
    producer, status = Producer(config), last_status(stack)
    for topic in ALL:
        key, value, more = message(stack.quorum.cluster_id, status)
        producer.produce(stack.topic(topic.short_name), value, key, **more)
    producer.flush(30)
    yield


@contextmanager
def transactions(stack: Stack) -> Iterator[None]:
    """Transactions that are committed and aborted leave markers, which are holes in the offsets."""
    config = {
        "bootstrap.servers": stack.bus.bootstrap_servers,
        "transactional.id": f"{stack.prefix}-poison",
    }
    producer = Producer(config)
    producer.init_transactions(30)
    cluster = stack.quorum.cluster_id
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for topic in INPUTS:
            producer.produce(stack.topic(topic.short_name), b"{}", cluster.encode())
        producer.flush(30)
        end(30)
    yield


ROWS: Final = (
    *(
        Fault(
            f"poison-{kind}",
            f"{about}, on every topic",
            partial(poisoned, kind=kind),
            may_fire=(*UNREADABLE, "clock-ahead") if kind == "future" else UNREADABLE,
            settle_s=60,
            environment=_ONE_PARTITION,
        )
        for kind, (about, _) in KINDS.items()
    ),
    Fault(
        "poison-transactions",
        "producers' transactions, committed and aborted, on the inputs",
        transactions,
        may_fire=UNREADABLE,
        settle_s=60,
        environment=_ONE_PARTITION,
    ),
)
