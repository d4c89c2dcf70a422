"""CloudEvents attributes as Kafka headers (binary mode of the CloudEvents Kafka binding 1.0)."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from featurewatch.streams.topics import PREFIX, Topic

Headers = list[tuple[str, bytes]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_type(topic: Topic, kind: str) -> str:
    """The ``ce_type``: ``featurewatch.metadata-log.transaction``, whatever prefix topics have."""
    return f"{PREFIX}.{topic.short_name}.{kind}"


def headers(topic: Topic, kind: str, cluster: str, event_id: str, time_ms: int) -> Headers:
    """The headers of one event.

    ``time_ms`` is in milliseconds since the Unix epoch, up to `types.LATEST_MS`. Source and id
    together are unique, as CloudEvents wants it: the id follows from the event's cause.
    """
    source = f"/clusters/{quote(cluster, safe='')}/{topic.short_name}"
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode(errors="replace")),
        ("ce_type", event_type(topic, kind).encode()),
        ("ce_source", source.encode()),
        ("ce_time", rfc3339(time_ms).encode()),
        ("content-type", b"application/json"),
    ]


def rfc3339(time_ms: int) -> str:
    """Milliseconds since the Unix epoch as ``2026-01-31T12:00:00.000Z``."""
    time = _EPOCH + timedelta(milliseconds=time_ms)
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
