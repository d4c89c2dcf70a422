"""The brokers and partitions of a rehearsal between two steps."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import (
    NO_LEADER,
    KraftElection,
    KraftElectionRules,
    KraftPartition,
)
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName

_ELR: Final = FeatureName("eligible.leader.replicas.version")
_EPOCH_ON_SHRINK: Final = FeatureLevel(12)


def election_rules(release: str, levels: Mapping[FeatureName, FeatureLevel]) -> KraftElectionRules:
    """The rules of a controller of a release (as in 4.3) at the finalized levels."""
    major, minor = release.split(".")[:2]
    return KraftElectionRules(
        (int(major), int(minor)),
        elr=levels.get(_ELR, 0) > 0,
        raises_epoch_on_shrink=levels.get(METADATA_VERSION, 0) < _EPOCH_ON_SHRINK,
    )


class RehearsedBroker(NamedTuple):
    """A broker: ``is_fenced`` or gone, ``is_stopping`` while it shuts down in order.

    ``is_unclean``: it died, and may have lost what was not on its disk yet.
    """

    rack: str | None = None
    is_fenced: bool = False
    is_stopping: bool = False
    is_unclean: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether it may lead partitions."""
        return not self.is_fenced and not self.is_stopping


class TopicSettings(NamedTuple):
    """The settings of a topic that decide on its partitions; None: the default holds."""

    min_isr: int | None = None
    is_unclean_allowed: bool | None = None


class DefaultSettings(NamedTuple):
    """The settings of topics that do not override them."""

    min_isr: int = 1
    is_unclean_allowed: bool = False


@dataclass(frozen=True, slots=True)
class RehearsedPartitions:
    """All brokers and partitions. ``rules`` are those of a KRaft release; None: ZooKeeper mode.

    ``failed`` are replicas in a log directory that is offline.
    """

    rules: KraftElectionRules | None
    brokers: Mapping[int, RehearsedBroker]
    partitions: Mapping[TopicPartition, KraftPartition]
    settings: Mapping[str, TopicSettings] = field(default_factory=dict)
    defaults: DefaultSettings = field(default_factory=DefaultSettings)
    failed: frozenset[tuple[TopicPartition, int]] = frozenset()

    def usable(self) -> frozenset[int]:
        """The brokers that may lead partitions, but for those in `failed`."""
        brokers = self.brokers.items()
        return frozenset(broker_id for broker_id, broker in brokers if broker.is_usable)

    def usable_for(self, partition: TopicPartition, usable: Set[int]) -> Set[int]:
        """Those of the ``usable`` brokers whose replica of a partition is not in `failed`."""
        if not self.failed:
            return usable
        return {broker_id for broker_id in usable if (partition, broker_id) not in self.failed}

    def minimum_isrs(self) -> dict[str, int]:
        """The effective minimum of the ISR by topic: at most the replicas of partition 0."""
        minimums = {}
        for topic in self.topics():
            own = self.settings.get(topic, TopicSettings()).min_isr
            first = self.partitions.get(TopicPartition(topic, 0))
            wanted = self.defaults.min_isr if own is None else own
            minimums[topic] = min(wanted, len(first.replicas)) if first else wanted
        return minimums

    def allows_unclean(self, topic: str) -> bool:
        """Whether a replica outside the ISR may lead a partition of the topic without a request."""
        own = self.settings.get(topic, TopicSettings()).is_unclean_allowed
        return self.defaults.is_unclean_allowed if own is None else own

    def election(self, topic: str) -> KraftElection:
        """The election that a failure causes."""
        return KraftElection.UNCLEAN if self.allows_unclean(topic) else KraftElection.ONLINE

    def with_broker(self, broker_id: int, broker: RehearsedBroker) -> Self:
        """The same with a broker added or replaced."""
        return replace(self, brokers={**self.brokers, broker_id: broker})

    def without_broker(self, broker_id: int) -> Self:
        """The same without a broker; its replicas stay assigned to it."""
        brokers = {other: broker for other, broker in self.brokers.items() if other != broker_id}
        return replace(self, brokers=brokers)

    def with_partitions(self, changed: Mapping[TopicPartition, KraftPartition]) -> Self:
        """The same with partitions added or replaced."""
        return replace(self, partitions={**self.partitions, **changed}) if changed else self

    def topics(self) -> Counter[str]:
        """The topics with their numbers of partitions."""
        return Counter(partition.topic for partition in self.partitions)


def is_under_min_isr(state: KraftPartition, minimum: int) -> bool:
    """Whether the leader of a partition refuses writes with ``acks=all``."""
    return state.leader != NO_LEADER and len(state.isr) < minimum
