"""Builders of metadata records about topics and partitions, for tests."""

from featurewatch.streams.events import RecordJson
from tests.simulation import records as r


def topic(name: str = "t", topic_id: str = "id-t") -> RecordJson:
    """A topic is created."""
    return r.record("TOPIC_RECORD", {"name": name, "topicId": topic_id})


def partition(number: int = 0, replicas: tuple[int, ...] = (1, 2), **fields: object) -> RecordJson:
    """A partition is created, all replicas in sync."""
    data = {
        "partitionId": number,
        "topicId": "id-t",
        "replicas": [*replicas],
        "isr": [*replicas],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": replicas[0],
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        **fields,
    }
    return r.record("PARTITION_RECORD", data)


def changed(number: int = 0, **fields: object) -> RecordJson:
    """A partition changes."""
    data = {"partitionId": number, "topicId": "id-t", **fields}
    return r.record("PARTITION_CHANGE_RECORD", data)


def setting(kind: int, name: str, key: str, value: str | None) -> RecordJson:
    """A configuration changes."""
    data = {"resourceType": kind, "resourceName": name, "name": key, "value": value}
    return r.record("CONFIG_RECORD", data)
