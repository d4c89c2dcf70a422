"""Which topics may be created: names and collisions, with Kafka's texts (``internals.Topic``)."""

import re
from collections.abc import Collection
from typing import Final

_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def topic_name_error(name: str) -> str | None:
    """Why a name is no valid one for a topic, None if it is."""
    prefix = "Topic name is invalid: "
    if not name:
        return f"{prefix}the empty string is not allowed"
    if name in (".", ".."):
        return f"{prefix}'{name}' is not allowed"
    if len(name) > _LENGTH:
        return f"{prefix}the length of '{name}' is longer than the max allowed length {_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return (
            f"{prefix}'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def colliding_topics(name: str, topics: Collection[str]) -> list[str]:
    """The other topics whose metrics would have the same names: ``.`` and ``_`` are one there."""
    if "." not in name and "_" not in name:
        return []
    unified = name.replace(".", "_")
    return sorted(topic for topic in topics if topic != name and topic.replace(".", "_") == unified)
