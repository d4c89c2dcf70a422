"""What a controller does one after the other: requests, and what it does unasked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.reference.kraft.machines.controller import (
    configs,
    isr,
    nodes,
    reassignments,
    topics,
)
from featurewatch.reference.kraft.machines.controller.features import bootstrap, update_features
from featurewatch.reference.kraft.machines.controller.partitions import balance
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AlterPartition,
    AlterPartitionReassignments,
    AssignReplicasToDirs,
    BrokerHeartbeat,
    BrokerRegistration,
    ControllerRegistration,
    ControllerResponse,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    IncrementalAlterConfigs,
    ListPartitionReassignments,
    UnregisterBroker,
    UnregisterController,
    UpdateFeatures,
)
from featurewatch.reference.kraft.machines.controller.work import Work

UNNUMBERED: Final = -1
"""The request id of an operation that nobody waits for."""
_PER_BALANCE: Final = 1_000


class Bootstrap:
    """Writes the first levels, or ends a transaction of an earlier leader."""


class FenceStale:
    """Fences the brokers whose sessions have ended."""


class Balance:
    """Moves leaders to preferred replicas."""


_Handler = Callable[[Work, Any, int], ControllerResponse | None]
_HANDLERS: Final[dict[type, _Handler]] = {
    BrokerRegistration: lambda work, it, _: nodes.register_broker(work, it),
    BrokerHeartbeat: lambda work, it, _: nodes.heartbeat(work, it),
    UnregisterBroker: lambda work, it, _: nodes.unregister_broker(work, it),
    UnregisterController: lambda work, it, _: nodes.unregister_controller(work, it),
    ControllerRegistration: lambda work, it, _: nodes.register_controller(work, it),
    UpdateFeatures: update_features,
    CreateTopics: lambda work, it, _: topics.create_topics(work, it),
    DeleteTopics: lambda work, it, _: topics.delete_topics(work, it),
    CreatePartitions: lambda work, it, _: topics.create_partitions(work, it),
    AlterPartition: lambda work, it, _: isr.alter_partition(work, it),
    AssignReplicasToDirs: lambda work, it, _: isr.assign_directories(work, it),
    ElectLeaders: lambda work, it, _: isr.elect_leaders(work, it),
    AlterPartitionReassignments: lambda work, it, _: reassignments.alter(work, it),
    ListPartitionReassignments: lambda work, it, _: reassignments.ongoing(work, it),
    AllocateProducerIds: lambda work, it, _: configs.allocate_producer_ids(work, it),
    IncrementalAlterConfigs: lambda work, it, _: configs.alter_configs(work, it),
    Bootstrap: lambda work, _, __: bootstrap(work),
    FenceStale: lambda work, _, __: nodes.fence_stale(work),
    Balance: lambda work, _, __: balance(work, _PER_BALANCE),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """A request with its id and version, or one of the above."""

    request_id: int
    request: Any
    version: int = 0

    @property
    def is_alone(self) -> bool:
        """Whether nothing else may be in its batch, so that snapshots fit before and after it."""
        return isinstance(self.request, (UpdateFeatures, Bootstrap))

    def run(self, work: Work) -> ControllerResponse | None:
        """Writes its records; returns the response."""
        return _HANDLERS[type(self.request)](work, self.request, self.version)
