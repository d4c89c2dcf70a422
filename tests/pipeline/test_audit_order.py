"""The search for the order in which a worker took the topics of a cluster in."""

from collections.abc import Callable

import orjson

from pipeline.audit_order import Live, Queued, Search
from pipeline.folding import Message
from streams.codec import encode
from streams.output_codec import encode_output
from tests.pipeline.audit_filling import Read, Topics, history, in_another_order, work

Order = Callable[[list[Read], int], list[Read]]


def said_by(reads: list[Read]) -> dict[str, Live]:
    """What a worker says live that takes messages in in an order."""
    found = {}
    for output, at_ms in work(reads):
        message = encode_output(output)
        name = dict(message.headers)["ce_id"].decode()
        found[name] = Live([orjson.loads(message.value or b"")], at_ms, due=True)
    return found


def search(seed: int, reads: list[Read], live: dict[str, Live]) -> bool:
    """Whether an order is found for the messages of a history."""
    queues: dict[str, list[Queued]] = {}
    for read in reads:
        at_ms, topic, event = read.told
        sent = encode(topic, event)
        message = Message(topic.name(), 0, read.offset, at_ms, sent.key, sent.value)
        queues.setdefault(topic.short_name, []).append(Queued(message, at_ms, settled=True))
    return Search(f"cluster-{seed}", [*queues.values()], live).succeeds()


def topic_by_topic(reads: list[Read], _: int) -> list[Read]:
    """As a worker that stood still since the middle may take in what came: one topic at once."""
    at = len(reads) // 2
    late = sorted(reads[at:], key=lambda read: read.told[1].short_name)
    first = reads[-1].taken_ms
    return [*reads[:at], *(one._replace(taken_ms=first + n) for n, one in enumerate(late))]


def is_found(seed: int, order: Order) -> bool:
    """Whether the order of one worker is found."""
    reads = Topics().publish(history(seed))
    return search(seed, reads, said_by(order(reads, seed)))


def test_an_order_is_found_where_there_is_one() -> None:
    """Whether a worker was late with a topic now and then, or took one topic after the other."""
    assert [seed for seed in range(60) if not is_found(seed, in_another_order)] == []
    assert [seed for seed in range(60) if not is_found(seed, topic_by_topic)] == []


def test_no_order_says_what_is_wrong() -> None:
    """Of what was said, nothing may be missing, be made up, or have other words."""
    for seed in range(20):
        reads = Topics().publish(history(seed))
        live = said_by(reads)
        assert search(seed, reads, live)
        name = [*live][seed % len(live)]
        one = live[name]
        assert not search(seed, reads, {k: v for k, v in live.items() if k != name})
        assert not search(seed, reads, live | {f"{name}/again": one})
        other = one._replace(contents=[{**one.contents[0], "cluster": "another"}])
        assert not search(seed, reads, live | {name: other})
