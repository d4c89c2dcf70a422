"""The image of a cluster's topics and partitions (Kafka: ``TopicsImage``), one tuple a partition.

A cluster may have a hundred thousand partitions, so a partition is a flat tuple without objects of
its own, and equal lists of brokers are one tuple.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple, Self

from immutables import Map

from featurewatch.tables.partitions.minimums import NO_MIN_ISRS, MinIsrs

PartitionKey = tuple[str, int]
"""A partition: the id of its topic, and its number."""

Brokers = tuple[int, ...]
"""Ids of brokers."""

MAX_PARTITIONS: Final = 2_000_000
"""Partitions of a cluster; what comes beyond is not readable. Kafka's clusters have fewer."""

MAX_LISTED_IDS: Final = 12_000_000
"""The ids in all lists of brokers of a cluster's partitions; six for each possible partition."""

NO_LEADER: Final = -1


class Condition(StrEnum):
    """A lasting problem of a partition."""

    LEADERLESS = "leaderless"
    BELOW_MIN_ISR = "below-min-isr"
    NOT_PREFERRED = "not-preferred"
    STALE = "stale"
    """A replica is both added and removed by its reassignment."""


Since = tuple[tuple[Condition, int], ...]
"""Conditions that hold, and when each began (ms since the Unix epoch)."""


class Move(NamedTuple):
    """A reassignment in progress: the record and the time at which it began.

    ``began_ms`` is in milliseconds since the Unix epoch; ``offset`` is -1 if it began before the
    image did.
    """

    offset: int
    began_ms: int


class Partition(NamedTuple):
    """One partition. ``offset`` is that of the record that changed it last."""

    replicas: Brokers
    isr: Brokers
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding: Brokers = ()
    removing: Brokers = ()
    recovering: bool = False
    elr: Brokers = ()
    last_known_elr: Brokers = ()
    offset: int = -1
    since: Since = ()
    move: Move | None = None

    @property
    def listed_ids(self) -> int:
        """The number of ids in all of its lists."""
        return (
            len(self.replicas)
            + len(self.isr)
            + len(self.adding)
            + len(self.removing)
            + len(self.elr)
            + len(self.last_known_elr)
        )

    @property
    def reassigns(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)


class TopicEntry(NamedTuple):
    """A topic: its name, how many partitions it has, and the offset of its TopicRecord."""

    name: str
    partitions: int
    offset: int


Conditions = Map[Condition, Map[PartitionKey, int]]
"""The partitions with each condition, and since when (ms since the Unix epoch)."""

NO_CONDITIONS: Final[Conditions] = Map({condition: Map() for condition in Condition})


Numbers = Map[str, Map[int, None]]
"""Numbers of partitions, by topic."""

NO_NUMBERS: Final[Numbers] = Map()


def with_number(sparse: Numbers, topic_id: str, count: int, index: int) -> Numbers:
    """``sparse`` after a topic of ``count`` partitions got one with this number.

    It has the numbers of topics that lack some below the highest, which only a damaged log has for
    long: those of all others are a range.
    """
    numbers = sparse.get(topic_id)
    if numbers is None:
        if index <= count:
            return sparse
        numbers = Map(dict.fromkeys(range(count)))
    numbers = numbers.set(index, None)
    is_whole = len(numbers) == max(count, index + 1)
    return sparse.delete(topic_id) if is_whole else sparse.set(topic_id, numbers)


def _sparse(topics: Map[str, TopicEntry], keys: Collection[PartitionKey]) -> Numbers:
    """The numbers of the partitions of topics that lack some."""
    counts = Counter(topic_id for topic_id, _ in keys)
    numbers: dict[str, dict[int, None]] = {
        topic_id: {} for topic_id, topic in topics.items() if counts[topic_id] != topic.partitions
    }
    for topic_id, index in keys if numbers else ():
        if topic_id in numbers:
            numbers[topic_id][index] = None
    return Map({topic_id: Map(indexes) for topic_id, indexes in numbers.items()})


def with_eligible(
    eligible: Numbers, key: PartitionKey, before: Partition | None, after: Partition | None
) -> Numbers:
    """``eligible`` after a partition changed."""
    had = before is not None and bool(before.elr or before.last_known_elr)
    has = after is not None and bool(after.elr or after.last_known_elr)
    if had is has:
        return eligible
    topic_id, index = key
    numbers: Map[int, None] = eligible.get(topic_id, Map())
    numbers = numbers.set(index, None) if has else numbers.delete(index)
    return eligible.set(topic_id, numbers) if numbers else eligible.delete(topic_id)


@dataclass(frozen=True, slots=True)
class PartitionsImage:
    """All topics by id, and all partitions; ``min_isrs`` are the minimums of the ISR that were set.

    The others follow from these: ``ids`` are the topics' ids by name, ``listed_ids`` is the sum of
    the partitions', ``eligible`` has the partitions with eligible leader replicas, or last known
    ones, and ``sparse`` all partitions of the topics that lack some.
    """

    topics: Map[str, TopicEntry] = field(default_factory=Map)
    partitions: Map[PartitionKey, Partition] = field(default_factory=Map)
    ids: Map[str, str] = field(default_factory=Map)
    conditions: Conditions = NO_CONDITIONS
    min_isrs: MinIsrs = NO_MIN_ISRS
    listed_ids: int = 0
    eligible: Numbers = NO_NUMBERS
    sparse: Numbers = NO_NUMBERS

    def name_of(self, key: PartitionKey) -> str:
        """A partition as people call it, ``orders-3``."""
        topic = self.topics.get(key[0])
        return f"{topic.name if topic else key[0]}-{key[1]}"

    @classmethod
    def of(
        cls,
        topics: Map[str, TopicEntry],
        partitions: Map[PartitionKey, Partition],
        min_isrs: MinIsrs = NO_MIN_ISRS,
    ) -> Self:
        """The image of these topics and partitions."""
        members: dict[Condition, dict[PartitionKey, int]] = {name: {} for name in Condition}
        eligible = NO_NUMBERS
        for key, partition in partitions.items():
            eligible = with_eligible(eligible, key, None, partition)
            for condition, since_ms in partition.since:
                members[condition][key] = since_ms
        return cls(
            topics,
            partitions,
            Map({topic.name: topic_id for topic_id, topic in topics.items()}),
            NO_CONDITIONS.update(
                {condition: Map(since.items()) for condition, since in members.items()}
            ),
            min_isrs,
            sum(partition.listed_ids for partition in partitions.values()),
            eligible,
            _sparse(topics, partitions),
        )


NO_PARTITIONS: Final = PartitionsImage()


def conditions_of(
    leader: int,
    replicas: Brokers,
    isr: Brokers,
    adding: Brokers,
    removing: Brokers,
    elr: Brokers,
    min_isr: int,
) -> tuple[Condition, ...]:
    """The conditions of a partition with these fields; ``min_isr`` is the minimum that was set.

    The log does not have the brokers' files; a minimum that is set only there is noticed by the
    eligible leader replicas, which a partition has only below it (KIP-966). With fewer replicas
    than the minimum, all of them are enough (``Partition.effectiveMinIsr``).
    """
    is_below = bool(elr) or len(isr) < min(min_isr, len(replicas))
    if leader == replicas[0] and not is_below and not adding:
        return ()
    conditions = []
    if leader == NO_LEADER:
        conditions.append(Condition.LEADERLESS)
    elif leader != replicas[0]:
        conditions.append(Condition.NOT_PREFERRED)
    if is_below:
        conditions.append(Condition.BELOW_MIN_ISR)
    if not {*adding}.isdisjoint(removing):
        conditions.append(Condition.STALE)
    return tuple(conditions)


def advance_since(before: Since, conditions: tuple[Condition, ...], at_ms: int) -> Since:
    """When the conditions of a partition began; one that continues keeps its time."""
    if not conditions:
        return ()
    if len(conditions) == len(before) and all(
        condition is old for condition, (old, _) in zip(conditions, before, strict=True)
    ):
        return before
    if not before:
        return _begun(conditions, at_ms)
    began = dict(before)
    return tuple((condition, began.get(condition, at_ms)) for condition in conditions)


@lru_cache(maxsize=64)
def _begun(conditions: tuple[Condition, ...], at_ms: int) -> Since:
    """One tuple for all partitions whose conditions begin at once, as in a loss of a broker."""
    return tuple((condition, at_ms) for condition in conditions)
