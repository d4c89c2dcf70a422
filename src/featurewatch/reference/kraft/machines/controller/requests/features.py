"""Requests about levels and about the cluster."""

from dataclasses import dataclass
from typing import NamedTuple

from featurewatch.reference.kraft.machines.controller.requests.defaults import DEFAULT_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """One level to finalize (``FeatureUpdateKey``).

    ``allow_downgrade`` is that of version 0; ``upgrade_type`` the number on the wire of the later
    ones: 1, 2 and 3, or in the form of KIP-778 0, 1 and 2 (``DowngradeType``).
    """

    feature: str
    max_version_level: int
    allow_downgrade: bool = False
    upgrade_type: int = 1


@dataclass(frozen=True, slots=True)
class UpdateFeatures:
    """Changes levels (``UpdateFeaturesRequest``, 57, versions 0-2).

    ``validate_only`` is ``DryRun`` in the form of KIP-778, which has the same layout.
    """

    feature_updates: tuple[FeatureUpdate, ...]
    validate_only: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class UpdatableFeatureResult(NamedTuple):
    """The result for one feature, in versions 0 and 1."""

    feature: str
    error_code: int
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateFeaturesResponse:
    """The answer to an `UpdateFeatures`."""

    error_code: int
    error_message: str | None = None
    results: tuple[UpdatableFeatureResult, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeCluster:
    """Asks for the nodes (``DescribeClusterRequest``, 60): of type 1 brokers, 2 controllers."""

    endpoint_type: int = 2
    include_fenced_brokers: bool = False


class DescribeClusterBroker(NamedTuple):
    """A node in a `DescribeClusterResponse`, in which every node is called a broker."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class DescribeClusterResponse:
    """The answer to a `DescribeCluster`; ``controller_id`` is the active controller, -1: unknown.

    It is answered by every controller from what is committed there.
    """

    error_code: int
    error_message: str | None = None
    endpoint_type: int = 2
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
