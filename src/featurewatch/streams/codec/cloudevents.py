"""CloudEvents attributes as Kafka headers (binary mode of the CloudEvents Kafka binding 1.0)."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from featurewatch.streams.topics import PREFIX, Topic

Headers = list[tuple[str, bytes]]

_SCHEMA_ID = re.compile(r"urn:featurewatch:([a-z-]+)(?::([0-9]+))?")
_MAX_SCHEMA_ID_BYTES = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def event_type(topic: Topic, kind: str) -> str:
    """The ``ce_type``: ``featurewatch.metadata-log.transaction``, whatever prefix topics have."""
    return f"{PREFIX}.{topic.short_name}.{kind}"


def headers(topic: Topic, kind: str, cluster: str, event_id: str, time_ms: int) -> Headers:
    """The headers of one event.

    ``time_ms`` is in milliseconds since the Unix epoch, up to `types.LATEST_MS`. Source and id
    together are unique, as CloudEvents wants it: the id follows from the event's cause. From
    version 2 of a topic's schema on, ``ce_dataschema`` names the version.
    """
    source = f"/clusters/{quote(cluster, safe='')}/{topic.short_name}"
    attributes = [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode(errors="replace")),
        ("ce_type", event_type(topic, kind).encode()),
        ("ce_source", source.encode()),
        ("ce_time", rfc3339(time_ms).encode()),
        ("content-type", b"application/json"),
    ]
    if topic.version > 1:
        attributes.append(("ce_dataschema", topic.schema_id.encode()))
    return attributes


def version_in(topic: Topic, headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Returns the version of a topic's schema that a message's headers name; without one it is 1.

    The schema of somebody else, as a gateway may name it, says nothing of the version.
    """
    for name, value in headers:
        if name == "ce_dataschema" and value is not None:
            match = _SCHEMA_ID.fullmatch(value[:_MAX_SCHEMA_ID_BYTES].decode(errors="replace"))
            if match is not None and match[1] == topic.short_name:
                return int(match[2] or 1)
    return 1


def rfc3339(time_ms: int) -> str:
    """Milliseconds since the Unix epoch as ``2026-01-31T12:00:00.000Z``."""
    time = _EPOCH + timedelta(milliseconds=time_ms)
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
