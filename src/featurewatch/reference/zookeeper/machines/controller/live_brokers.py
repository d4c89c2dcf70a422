"""The registered brokers of a controller, and the live set of those that support all levels."""

from collections.abc import Mapping
from typing import NamedTuple

from featurewatch.reference.zookeeper.machines.compatibility import incompatible_levels
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.topics.context import ClusterBroker
from featurewatch.tables.image.nodes import Capabilities


class LiveBroker(NamedTuple):
    """A broker's znode: its ranges, and the transaction that created it (the broker epoch).

    ``endpoint`` is its plaintext address, None if it has none or the znode is unreadable.
    """

    capabilities: Capabilities
    czxid: int
    endpoint: Endpoint | None = None


class LiveBrokers:
    """Every registered broker; ``accepted`` groups the live set by ranges.

    Brokers of one release share one `Capabilities` object, so ten thousand brokers are a few
    groups, and a check of all of them costs a few lookups.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.brokers: dict[int, LiveBroker] = {}
        self.accepted: dict[Capabilities, set[int]] = {}
        self.excluded: set[int] = set()

    def put(self, broker_id: int, broker: LiveBroker, levels: Mapping[str, int]) -> bool:
        """Stores a broker's znode; False if it is new or changed and excluded from the live set."""
        if self.brokers.get(broker_id) == broker:
            return True
        self.remove(broker_id)
        self.brokers[broker_id] = broker
        return self._admit(broker_id, levels)

    def remove(self, broker_id: int) -> None:
        """Removes a broker whose znode no longer exists."""
        broker = self.brokers.pop(broker_id, None)
        self.excluded.discard(broker_id)
        group = None if broker is None else self.accepted.get(broker.capabilities)
        if broker is not None and group is not None:
            group.discard(broker_id)
            if not group:
                del self.accepted[broker.capabilities]

    def reevaluate(self, levels: Mapping[str, int]) -> list[int]:
        """Checks all brokers against changed levels; returns those that leave the live set, sorted.

        The cost depends on the numbers of groups and of excluded brokers, not on the cluster's
        size.
        """
        previously_excluded, self.excluded = self.excluded, set()
        leaving: set[int] = set()
        for capabilities in [*self.accepted]:
            if any(incompatible_levels(self._dialect, capabilities, levels)):
                leaving |= self.accepted.pop(capabilities)
        for broker_id in previously_excluded:
            self._admit(broker_id, levels)
        self.excluded |= leaving
        return sorted(leaving)

    def cluster_brokers(self) -> dict[int, ClusterBroker]:
        """The live set with epochs and addresses, by id."""
        return {
            broker_id: ClusterBroker(
                self.brokers[broker_id].czxid, self.brokers[broker_id].endpoint
            )
            for group in self.accepted.values()
            for broker_id in group
        }

    def clear(self) -> None:
        """Removes all brokers."""
        self.brokers.clear()
        self.accepted.clear()
        self.excluded.clear()

    def _admit(self, broker_id: int, levels: Mapping[str, int]) -> bool:
        capabilities = self.brokers[broker_id].capabilities
        if capabilities not in self.accepted and any(
            incompatible_levels(self._dialect, capabilities, levels)
        ):
            self.excluded.add(broker_id)
            return False
        self.accepted.setdefault(capabilities, set()).add(broker_id)
        return True
