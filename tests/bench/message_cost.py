"""``pipeline_us_per_message``: Python's processor time for one message of the pipeline.

The messages are those of `tests.bench.pipeline`: commits of a hundred records, and a heartbeat
after each. They go through the pass that Spark calls in its Python processes (decode, fold, rules,
and the rows of silver and gold as Arrow blocks), on one core and without Spark, from an empty state
to the packed rows of the state. The baseline is a bare ``orjson.loads`` of the same messages. Both
take turns, and the best of several rounds counts: a busy machine only adds to it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from featurewatch.monitor.input_messages import InputMessage
from featurewatch.pipeline.derived.packed_rows import pack
from featurewatch.pipeline.derived.table_pass import TablePass
from featurewatch.pipeline.fold.messages import state_rows
from featurewatch.streams.codec.events import encode
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from featurewatch.tables.garbage import collect_rarely
from tests.bench.histories import history

CLUSTERS: Final = 2
RECORDS: Final = 20_000
"""Of each cluster, in 400 messages."""
ROUNDS: Final = 21

Messages = Mapping[str, Sequence[InputMessage]]
"""The messages of each cluster, in order."""


def generated(cluster: str) -> list[InputMessage]:
    """The messages of a cluster, as the bus has them."""
    found = []
    for offset, event in enumerate(history(ClusterId(cluster), RECORDS)):
        message = encode(METADATA_LOG, event)
        position = (METADATA_LOG.name(), 0, offset, event.seen_ms)
        found.append(InputMessage(*position, message.key, message.value))
    return found


def one_pass(messages: Messages) -> int:
    """Makes all rows; returns the number of bytes of the blocks and the states."""
    work, size = TablePass(), 0
    for cluster, of_cluster in messages.items():
        work.begin(cluster, {})
        size += sum(len(block.content) for blocks in work.apply(of_cluster) for block in blocks)
        state = work.end()
        size += 0 if state is None else len(pack(state_rows(state)))
    return size + sum(len(block.content) for block in work.take_blocks())


def parsed(messages: Messages) -> None:
    """Parses all messages and does nothing with them."""
    for of_cluster in messages.values():
        for message in of_cluster:
            orjson.loads(message.value or b"")


def measure() -> dict[str, Any]:
    """The measure."""
    collect_rarely()
    messages = {name: generated(name) for name in (f"bench-{n}" for n in range(CLUSTERS))}
    count = sum(map(len, messages.values()))
    works: tuple[Callable[[Messages], object], ...] = (one_pass, parsed)
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for work in works:
            began = time.process_time()
            work(messages)
            best[work] = min(best[work], time.process_time() - began)
    value, baseline = (best[work] / count * 1e6 for work in works)
    return {
        "measure": "pipeline_us_per_message",
        "unit": "us",
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "messages": count,
    }
