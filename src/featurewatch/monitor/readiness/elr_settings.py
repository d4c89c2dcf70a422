"""What finalizing eligible.leader.replicas.version does to min.insync.replicas (KIP-966). Pure.

As the active controller does it (``ConfigurationControlManager.maybeGenerateElrSafetyRecords``): a
setting of single brokers is removed, and the cluster gets one, unless it has one: the value in the
active controller's own file. From then on it counts for all brokers, also for those whose file says
otherwise, and single brokers can no longer set it. Topics that set their own keep it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from featurewatch.streams.types import FeatureName, NodeId
from featurewatch.tables.partitions.image import PartitionsImage
from featurewatch.tables.partitions.minimums import MinIsrs

ELR_VERSION: Final = FeatureName("eligible.leader.replicas.version")
NAMED_TOPICS: Final = 20
"""At most this many topics are named."""

_CLUSTER: Final = "b/"


@dataclass(frozen=True, slots=True)
class MinIsrFacts:
    """What is known of min.insync.replicas in a cluster.

    ``settings`` are those that were set by requests, as the metadata log has them, ``topics`` the
    names of all topics. ``files`` are the values in the files of nodes that were asked, or Kafka's
    default where the file has none.
    """

    settings: MinIsrs
    topics: frozenset[str]
    files: Mapping[NodeId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerMinIsr:
    """A broker whose minimum changes. ``removed``: its own setting is removed, else the cluster's
    new one counts instead of its file. ``after`` None: what the active controller's file says."""

    broker: NodeId
    before: int
    after: int | None
    removed: bool


@dataclass(frozen=True, slots=True)
class ElrSettings:
    """The changes of min.insync.replicas that go with the level.

    ``cluster_before`` is None where the cluster has no setting, ``cluster_after`` where it gets
    what the file of the active controller says, which is not known. ``unread_brokers`` are those
    whose files were not read and that have no setting: their minimum changes if their file says
    otherwise. ``topics`` are the first of the ``topic_count`` topics without a setting of their
    own, which follow the brokers; ``topics_with_own`` keep theirs.
    """

    controller: NodeId
    cluster_before: int | None
    cluster_after: int | None
    brokers: tuple[BrokerMinIsr, ...]
    unread_brokers: tuple[NodeId, ...]
    topic_count: int
    topics: tuple[str, ...]
    topics_with_own: int


def facts_of(partitions: PartitionsImage | None) -> MinIsrFacts | None:
    """What a worker knows that follows operations; None where it does not, or not yet."""
    if partitions is None:
        return None
    topics = frozenset(topic.name for topic in partitions.topics.values())
    return MinIsrFacts(partitions.min_isrs, topics)


def elr_settings(facts: MinIsrFacts, controller: NodeId, brokers: Iterable[NodeId]) -> ElrSettings:
    """The changes when the level is finalized now, by the active controller, with these brokers."""
    settings = facts.settings
    of_cluster = settings.get(_CLUSTER)
    before = None if of_cluster is None else of_cluster.value
    after = facts.files.get(controller) if before is None else before
    changed, unread = [], []
    own_setting = {
        NodeId(int(name)): found.value
        for resource, found in settings.items()
        if resource.startswith(_CLUSTER) and (name := resource[len(_CLUSTER) :]).isdecimal()
    }
    for broker in sorted({*brokers, *own_setting}):
        if broker in own_setting:
            changed.append(BrokerMinIsr(broker, own_setting[broker], after, removed=True))
        elif before is None and broker not in facts.files:
            unread.append(broker)
        elif before is None and facts.files[broker] != after:
            changed.append(BrokerMinIsr(broker, facts.files[broker], after, removed=False))
    unset = sorted(name for name in facts.topics if f"t/{name}" not in settings)
    return ElrSettings(
        controller,
        before,
        after,
        tuple(changed),
        tuple(unread),
        len(unset),
        tuple(unset[:NAMED_TOPICS]),
        len(facts.topics) - len(unset),
    )
