"""Builders of Strimzi's resources, for tests."""

from typing import Any

from tests.simulation.records import CLUSTER


def kafka(level: str = "4.3-IV0", version: str = "4.3.0", cluster: str = CLUSTER) -> dict[str, Any]:
    """A resource of the kind Kafka."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "Kafka",
        "metadata": {"name": "orders"},
        "spec": {"kafka": {"version": version, **({"metadataVersion": level} if level else {})}},
        "status": {"clusterId": cluster, "kafkaMetadataVersion": level or "4.3-IV0"},
    }


def pool(name: str, roles: list[str], ids: list[int], of: str = "orders") -> dict[str, Any]:
    """A node pool; ids are texts, as in YAML that is read without types."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaNodePool",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": of}},
        "spec": {"roles": roles},
        "status": {"nodeIds": [str(node) for node in ids]},
    }


def document(*resources: dict[str, Any]) -> dict[str, Any]:
    """What kubectl prints for several resources."""
    return {"apiVersion": "v1", "kind": "List", "items": [*resources]}
