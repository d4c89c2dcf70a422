"""The names of one cluster that are completed: topics, brokers and features; pure.

They come from nodes, which may send anything: what Kafka would not accept as a name is left out,
so that a name needs no quotation marks and holds nothing that a terminal would obey.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

MAX_TOPICS: Final = 250_000
MAX_BROKERS: Final = 20_000
MAX_FEATURES: Final = 1_000
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""``org.apache.kafka.common.internals.Topic``; Kafka's features are named in the same letters."""


class BrokerName(NamedTuple):
    """A broker: its id as it is typed, and where it listens."""

    node_id: str
    address: str


class FeatureLevels(NamedTuple):
    """A feature: its name, the levels that a node supports, and the one that is finalized."""

    name: str
    lowest: int
    highest: int
    finalized: int | None


class ClusterNames(NamedTuple):
    """The names of a cluster at one moment, each list ordered."""

    topics: Sequence[str] = ()
    brokers: Sequence[BrokerName] = ()
    features: Sequence[FeatureLevels] = ()


def bounded_names(
    topics: Iterable[str],
    brokers: Iterable[tuple[int, str]],
    features: Iterable[FeatureLevels],
) -> ClusterNames:
    """The names that can be typed, and no more than a person's terminal can be asked to hold."""
    legal_topics = {name for name in topics if _LEGAL.fullmatch(name)}
    legal_brokers = {node_id: address for node_id, address in brokers if node_id >= 0}
    legal_features = {item.name: item for item in features if _LEGAL.fullmatch(item.name)}
    return ClusterNames(
        sorted(legal_topics)[:MAX_TOPICS],
        [
            BrokerName(str(node_id), address)
            for node_id, address in sorted(legal_brokers.items())[:MAX_BROKERS]
        ],
        [item for _, item in sorted(legal_features.items())[:MAX_FEATURES]],
    )


def topics_with(names: ClusterNames, prefix: str) -> Iterator[str]:
    """The topics that begin so, in their order; the others are not looked at."""
    for index in range(bisect_left(names.topics, prefix), len(names.topics)):
        if not names.topics[index].startswith(prefix):
            return
        yield names.topics[index]
