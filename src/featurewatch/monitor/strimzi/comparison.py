"""Where a live cluster and its Strimzi resources disagree.

The resources say what the operator wants and has; the metadata log has what Kafka holds. A
registration that no node pool knows blocks levels, and the operator does not show it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.common.id_runs import format_ids
from featurewatch.controller.kraft.releases import (
    CONTROLLER_REGISTRATION,
    Release,
    UnknownReleaseError,
    release_of,
)
from featurewatch.controller.levels import level_name
from featurewatch.controller.software import release_name, software_name
from featurewatch.monitor.strimzi.resources import StrimziKafka
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, NodeId, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage

_ROLES: Final = (Role.BROKER, Role.CONTROLLER)


@dataclass(frozen=True, slots=True)
class Difference:
    """One disagreement: the subject, what the resources say, what the cluster has, and a sentence.

    ``is_unknown``: it is not known whether they agree.
    """

    subject: str
    declared: Any
    live: Any
    text: str
    is_unknown: bool = False


def compare(kafka: StrimziKafka, image: ClusterImage) -> tuple[Difference, ...]:
    """The disagreements of the resources and the cluster, whose log or nodes were read.

    If the resources are those of another cluster, that is the only one.
    """
    if kafka.cluster_id and kafka.cluster_id != image.cluster:
        text = f"Kafka {kafka.name} is the cluster {kafka.cluster_id}, and this is {image.cluster}"
        return (Difference("cluster id", kafka.cluster_id, image.cluster, text),)
    return (*_levels(kafka, image), *_software(kafka, image), *_nodes(kafka, image))


def _levels(kafka: StrimziKafka, image: ClusterImage) -> Iterator[Difference]:
    live = image.features.levels.get(METADATA_VERSION, FeatureLevel(0))
    declared = {
        "spec.kafka.metadataVersion": kafka.metadata_version or kafka.version,
        "status.kafkaMetadataVersion": kafka.reported_metadata_version,
    }
    for field, name in declared.items():
        if not name:
            continue
        level = _level(name)
        if level is None:
            text = f"{field} is {name}, which is not known here: it cannot be compared"
            yield Difference(METADATA_VERSION, name, live, text, is_unknown=True)
        elif level != live:
            default = not kafka.metadata_version and field.startswith("spec")
            said = f"{field} is {'not set, which means ' if default else ''}{name}"
            finalized = level_name(METADATA_VERSION, live)
            yield Difference(METADATA_VERSION, level, live, f"{said}, and {finalized} is finalized")


def _level(name: str) -> FeatureLevel | None:
    """The level of a name as ``4.0-IV3``, or the newest of a release as ``4.0`` or ``4.0.1``."""
    try:
        release: Release = release_of(name)
    except UnknownReleaseError:
        return None
    if "IV" in name:
        return next((level.level for level in release.levels if level.name == name), None)
    return release.newest(METADATA_VERSION)


def _software(kafka: StrimziKafka, image: ClusterImage) -> Iterator[Difference]:
    """Nodes that run another release than the resource; patches are not reported by nodes."""
    declared = ".".join(kafka.version.split(".")[:2])
    if not declared:
        return
    for key, ids in sorted(image.nodes.classes.items(), key=lambda item: item[0].role):
        running = release_name(key.capabilities)
        if running != declared:
            software = software_name(key.capabilities)
            nodes = _named(key.role, ids)
            known = f"Kafka {running}" if running else f"software that is not known ({software})"
            text = f"spec.kafka.version is {kafka.version}, and {nodes} registered with {known}"
            yield Difference("version", kafka.version, software, text, is_unknown=not running)


def _nodes(kafka: StrimziKafka, image: ClusterImage) -> Iterator[Difference]:
    """Registrations and voters against the ids of the node pools."""
    if not kafka.pools:
        text = f"no node pool of Kafka {kafka.name} was given: node ids cannot be compared"
        yield Difference("node ids", None, None, text, is_unknown=True)
        return
    level = image.features.levels.get(METADATA_VERSION, 0)
    for role in _ROLES:
        pooled = {node for pool in kafka.pools if role in pool.roles for node in pool.node_ids}
        registered = {key.node_id for key in image.nodes.nodes if key.role is role}
        if extra := registered - pooled:
            text = f"{_named(role, extra)} {_are(extra)} registered, and in no node pool"
            yield Difference(f"{role} ids", sorted(pooled), sorted(registered), text)
        # Controllers register from a level on; without the log, nodes that are off are not seen.
        registers = role is Role.BROKER or level >= CONTROLLER_REGISTRATION
        if registers and (missing := pooled - registered):
            text = f"{_named(role, missing)} {_are(missing)} in a node pool, and not registered"
            unknown = image.authority is not Authority.LOG
            yield Difference(
                f"{role} ids", sorted(pooled), sorted(registered), text, is_unknown=unknown
            )
        voters = {*image.log.quorum.voters}
        if role is Role.CONTROLLER and voters and voters != pooled:
            text = f"the voters are {format_ids(voters)}, the controllers of the node pools are "
            text += format_ids(pooled) or "none"
            yield Difference("voters", sorted(pooled), sorted(voters), text)


def _are(ids: Collection[NodeId]) -> str:
    return "are" if len(ids) > 1 else "is"


def _named(role: Role, ids: Iterable[NodeId]) -> str:
    found = sorted(ids)
    return f"{role}{'s' if len(found) > 1 else ''} {format_ids(found)}"
