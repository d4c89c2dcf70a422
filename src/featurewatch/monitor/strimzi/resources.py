"""What a comparison needs of Strimzi's resources ``Kafka`` and ``KafkaNodePool``.

Their fields are those of Strimzi's API reference (KafkaClusterSpec, KafkaStatus,
KafkaNodePoolStatus). The values come from a file, so nothing of them is taken for granted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.common.text import plain
from featurewatch.streams.types import NodeId, Role

_GROUP: Final = "kafka.strimzi.io/"
_CLUSTER_LABEL: Final = "strimzi.io/cluster"
_MAX_NODES: Final = 100_000
_MAX_ID: Final = 2_147_483_647


class StrimziError(ValueError):
    """The resources cannot be compared: one line that says why."""


@dataclass(frozen=True, slots=True)
class NodePool:
    """A node pool: its name, the roles of its nodes, and their ids."""

    name: str
    roles: frozenset[Role]
    node_ids: frozenset[NodeId]


@dataclass(frozen=True, slots=True)
class StrimziKafka:
    """A ``Kafka`` resource and its node pools.

    ``metadata_version`` is the desired level, ``reported_metadata_version`` the one of its status;
    ``version`` is the desired release. ``cluster_id`` is that of its status. All are empty where
    the resource does not have them.
    """

    name: str
    cluster_id: str
    version: str
    metadata_version: str
    reported_metadata_version: str
    pools: tuple[NodePool, ...]


def kafka_of(documents: Iterable[Any], name: str = "") -> StrimziKafka:
    """The ``Kafka`` resource of this name with its node pools, or the only one.

    ``documents`` are those of a YAML file: resources, and lists of them.

    Raises:
        StrimziError: It is missing, the choice is open, or a field is invalid.
    """
    resources = [resource for document in documents for resource in _resources(document)]
    kafkas = {_name(resource): resource for resource in resources if resource["kind"] == "Kafka"}
    if name and name not in kafkas:
        raise StrimziError(f"there is no resource Kafka with the name {plain(name)}")
    if not kafkas:
        raise StrimziError(
            "there is no resource of the kind Kafka (kafka.strimzi.io): save it with kubectl get "
            "kafka,kafkanodepool -o yaml"
        )
    if len(kafkas) > 1 and not name:
        raise StrimziError(f"there is more than one Kafka ({_some(kafkas)}): pass --name")
    name = name or next(iter(kafkas))
    kafka = kafkas[name]
    spec, status = _mapping(kafka, "spec", "kafka"), _mapping(kafka, "status")
    pools = [
        _pool(resource)
        for resource in resources
        if resource["kind"] == "KafkaNodePool"
        and _text(_mapping(resource, "metadata", "labels"), _CLUSTER_LABEL) == name
    ]
    return StrimziKafka(
        name,
        _text(status, "clusterId"),
        _text(spec, "version"),
        _text(spec, "metadataVersion"),
        _text(status, "kafkaMetadataVersion"),
        tuple(sorted(pools, key=lambda pool: pool.name)),
    )


def _resources(document: Any) -> Iterator[Mapping[str, Any]]:
    """The Strimzi resources of a document."""
    if not isinstance(document, Mapping):
        return
    items = document.get("items")
    if document.get("kind") in ("List", "KafkaList", "KafkaNodePoolList"):
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping) and item.get("kind") != "List":
                yield from _resources(item)
    elif str(document.get("apiVersion", "")).startswith(_GROUP) and "kind" in document:
        yield document


def _pool(resource: Mapping[str, Any]) -> NodePool:
    name, status = _name(resource), _mapping(resource, "status")
    roles = status.get("roles") or _mapping(resource, "spec").get("roles")
    ids = status.get("nodeIds")
    if ids is None:
        raise StrimziError(f"the node pool {name} has no status.nodeIds: save it from the cluster")
    if not isinstance(roles, list) or not isinstance(ids, list) or len(ids) > _MAX_NODES:
        raise StrimziError(f"the roles or the nodeIds of the node pool {name} are not lists")
    try:
        return NodePool(name, frozenset(map(Role, roles)), frozenset(map(_node_id, ids)))
    except (TypeError, ValueError):
        raise StrimziError(
            f"the node pool {name} has a role or an id that is none of Kafka's"
        ) from None


def _node_id(value: Any) -> NodeId:
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MAX_ID):
        raise ValueError(text)
    return NodeId(int(text))


def _name(resource: Mapping[str, Any]) -> str:
    name = _text(_mapping(resource, "metadata"), "name")
    if not name:
        raise StrimziError("a resource has no metadata.name")
    return name


def _mapping(resource: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping at a path; empty where there is none."""
    for name in path:
        found = resource.get(name)
        resource = found if isinstance(found, Mapping) else {}
    return resource


def _text(resource: Mapping[str, Any], name: str) -> str:
    value = resource.get(name, "")
    return plain(value)[:200] if isinstance(value, str) else ""


def _some(names: Iterable[str]) -> str:
    return ", ".join([*names][:3])
