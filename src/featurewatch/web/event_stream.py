"""Server-sent events: how they are written, and which of them a client has still to get. Pure.

A client never has a queue. It has the set of documents that changed since it was last served, and
gets the newest content of each, so a slow one costs no more memory than a quick one and skips what
was overtaken. The id of an event is ``<boot>.<number>``; a client that reconnects with one
continues there, or gets ``reset`` if that is impossible, and then fetches everything again.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from featurewatch.web.change_index import ChangeIndex, DocumentKey

RETRY_MS: Final = 2_000
"""A client reconnects after this many milliseconds, and up to as many more at random."""

PING: Final = b":\n\n"
"""Keeps an otherwise idle connection open."""

MAX_EVENTS: Final = 500
"""Events that are written at once, before others get their turn."""

MAX_CACHED_BYTES: Final = 16 << 20
"""The encoded events that are remembered: an alert may have 64 kB."""

Documents = Callable[[DocumentKey], Mapping[str, Any] | None]


def event(kind: str, position: str, document: Mapping[str, Any]) -> bytes:
    """One event; JSON has no line breaks, so its data is one line."""
    data = orjson.dumps(document, default=list, option=orjson.OPT_NON_STR_KEYS)
    return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), position.encode(), data)


class EventEncoder:
    """Encodes the newest event of each document once for all clients."""

    def __init__(self, index: ChangeIndex, documents: Documents) -> None:
        self._index = index
        self._documents = documents
        self._encoded: dict[DocumentKey, tuple[int, bytes]] = {}
        self._byte_count = 0

    def encode(self, key: DocumentKey) -> bytes:
        """The event of a document as it is now; a removed one has the field ``removed``."""
        number = self._index.number(key)
        before = self._encoded.get(key)
        if before is not None and before[0] == number:
            return before[1]
        document = self._documents(key)
        if document is None:
            document = {"removed": True, "id": key.id}
        encoded = event(key.kind, self._index.position(number), document)
        self._byte_count += len(encoded) - (0 if before is None else len(before[1]))
        if self._byte_count > MAX_CACHED_BYTES:
            self._encoded.clear()
            self._byte_count = len(encoded)
        self._encoded[key] = number, encoded
        return encoded


class EventCursor:
    """The position of one client in the stream.

    ``position`` is the id of the last event that it has (empty: it has nothing).
    """

    def __init__(self, index: ChangeIndex, position: str) -> None:
        self._index = index
        sequence = index.sequence_at(position) if position else None
        self._is_reset = bool(position) and (
            sequence is None or index.changed_since(sequence) is None
        )
        # Without a position the documents are what the API serves now.
        self._sequence = index.sequence if sequence is None or self._is_reset else sequence

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to send."""
        return not self._is_reset and self._sequence == self._index.sequence

    def next_events(self, encoder: EventEncoder) -> bytes:
        """The next events, at most `MAX_EVENTS`; empty if nothing has changed."""
        keys = None if self._is_reset else self._index.changed_since(self._sequence)
        if keys is None:
            self._is_reset = False
            self._sequence = self._index.sequence
            return event("reset", self._index.position(), {})
        batch = keys[:MAX_EVENTS]
        if len(batch) < len(keys):
            self._sequence = self._index.number(batch[-1])
        else:
            self._sequence = self._index.sequence
        return b"".join(map(encoder.encode, batch))
