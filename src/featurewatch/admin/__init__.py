"""Clients that read and change real clusters, in KRaft mode and in ZooKeeper mode.

    from featurewatch.admin import TopicAdmin

    async with TopicAdmin.connect("kafka-1:9092", config="client.properties") as admin:
        await admin.create_topic("orders", 12, 3)

A client has one cluster: `FeatureAdmin` its finalized levels, `TopicAdmin` its topics,
`ReassignmentAdmin` its replicas, `ElectionAdmin` its leaders, `RegistrationAdmin` its registered
nodes and `QuorumAdmin` the voters of its metadata quorum. `DraftAdminClient` speaks the draft of
KIP-4, which the reference system serves. They are asynchronous; `blocking` gives one to ordinary
code.

A name is imported at its first use, so that a command loads its own client alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from featurewatch.admin.blocking_client import blocking
    from featurewatch.admin.cluster.configs import SettingChange
    from featurewatch.admin.cluster.registrations import RegistrationAdmin
    from featurewatch.admin.elections.client import ElectionAdmin, ElectionType
    from featurewatch.admin.elections.status import ElectionStatus
    from featurewatch.admin.errors import (
        AdminError,
        KafkaApiError,
        OutcomeUnknownError,
        RequestError,
        UnreachableError,
        UpdateRefusedError,
    )
    from featurewatch.admin.features.client import FeatureAdmin
    from featurewatch.admin.features.metadata import FeatureDialect
    from featurewatch.admin.features.updates import FeatureUpdate
    from featurewatch.admin.kip4.client import DraftAdminClient, DraftApiError, OperationState
    from featurewatch.admin.quorum.client import QuorumAdmin
    from featurewatch.admin.reassignments.client import ReassignmentAdmin
    from featurewatch.admin.reassignments.types import ReassignmentStatus
    from featurewatch.admin.topics.client import TopicAdmin
    from featurewatch.admin.topics.values import PartitionIncrease, TopicSpec, check_changes
    from featurewatch.controller.partitions.assignment import TopicPartition

_HOMES: Final = {
    "admin.blocking_client": ("blocking",),
    "admin.cluster.configs": ("SettingChange",),
    "admin.cluster.registrations": ("RegistrationAdmin",),
    "admin.elections.client": ("ElectionAdmin", "ElectionType"),
    "admin.elections.status": ("ElectionStatus",),
    "admin.errors": (
        "AdminError",
        "KafkaApiError",
        "OutcomeUnknownError",
        "RequestError",
        "UnreachableError",
        "UpdateRefusedError",
    ),
    "admin.features.client": ("FeatureAdmin",),
    "admin.features.metadata": ("FeatureDialect",),
    "admin.features.updates": ("FeatureUpdate",),
    "admin.kip4.client": ("DraftAdminClient", "DraftApiError", "OperationState"),
    "admin.quorum.client": ("QuorumAdmin",),
    "admin.reassignments.client": ("ReassignmentAdmin",),
    "admin.reassignments.types": ("ReassignmentStatus",),
    "admin.topics.client": ("TopicAdmin",),
    "admin.topics.values": ("PartitionIncrease", "TopicSpec", "check_changes"),
    "controller.partitions.assignment": ("TopicPartition",),
}
"""The names of each module below ``featurewatch``."""

__all__ = [
    "AdminError",
    "DraftAdminClient",
    "DraftApiError",
    "ElectionAdmin",
    "ElectionStatus",
    "ElectionType",
    "FeatureAdmin",
    "FeatureDialect",
    "FeatureUpdate",
    "KafkaApiError",
    "OperationState",
    "OutcomeUnknownError",
    "PartitionIncrease",
    "QuorumAdmin",
    "ReassignmentAdmin",
    "ReassignmentStatus",
    "RegistrationAdmin",
    "RequestError",
    "SettingChange",
    "TopicAdmin",
    "TopicPartition",
    "TopicSpec",
    "UnreachableError",
    "UpdateRefusedError",
    "blocking",
    "check_changes",
]


def __getattr__(name: str) -> Any:
    """Imports an exported name."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"featurewatch.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
