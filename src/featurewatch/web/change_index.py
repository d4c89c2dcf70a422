"""Numbers the changes of documents, so that a client can be given what it has not seen. Pure.

Each change has the next sequence number, and a document has that of its latest change. A client
that has seen everything up to a number needs the documents with a higher one: it gets their newest
content, however often they changed, so nothing has to be stored for clients that are slow or away.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

_MAX_REMOVED: Final = 10_000
_MAX_ID_CHARS: Final = 64


class DocumentKey(NamedTuple):
    """A document: ``kind`` is ``fleet``, ``state``, ``alert``, ``change``, ``revisions`` or
    ``operations``, as its event is."""

    kind: str
    id: str


class ChangeIndex:
    """The sequence number of each document, in the order of their latest changes.

    ``boot`` is a text without dots that no other process has: numbers of another one mean nothing
    here. ``content_sequence`` is the number of the latest change of more than a time.
    """

    def __init__(self, boot: str, max_removed: int = _MAX_REMOVED) -> None:
        self.boot = boot
        self.sequence = 0
        self.content_sequence = 0
        self._max_removed = max_removed
        self._changed: OrderedDict[DocumentKey, int] = OrderedDict()
        self._contents: dict[DocumentKey, int] = {}
        self._removed: OrderedDict[DocumentKey, int] = OrderedDict()
        self._forgotten = 0

    def mark_changed(self, key: DocumentKey, *, is_content: bool = True) -> None:
        """Notes that a document was added or changed."""
        self.sequence += 1
        self._changed[key] = self.sequence
        self._changed.move_to_end(key)
        self._removed.pop(key, None)
        if is_content or key not in self._contents:
            self._contents[key] = self.content_sequence = self.sequence

    def remove(self, key: DocumentKey) -> None:
        """Notes that a document was removed; the oldest of very many such notes are dropped."""
        if self._changed.pop(key, None) is None:
            return
        self._contents.pop(key, None)
        self.sequence += 1
        self.content_sequence = self.sequence
        self._removed[key] = self.sequence
        while len(self._removed) > self._max_removed:
            _, self._forgotten = self._removed.popitem(last=False)

    def forget(self, key: DocumentKey) -> None:
        """Drops a document that clients may continue to show."""
        self._changed.pop(key, None)
        self._contents.pop(key, None)

    def number(self, key: DocumentKey) -> int:
        """The number of a document's latest change or removal, or 0."""
        return self._changed.get(key, 0) or self._removed.get(key, 0)

    def content_number(self, key: DocumentKey) -> int:
        """The number of the latest change of a document's content; 0: there is no such document."""
        return self._contents.get(key, 0)

    def changed_since(self, sequence: int) -> list[DocumentKey] | None:
        """The documents that changed or were removed after a number, in the order of their numbers.

        None if the removals since then are no longer known.
        """
        if sequence < self._forgotten:
            return None
        keys = [*_after(self._changed, sequence), *_after(self._removed, sequence)]
        return sorted(keys, key=self.number)

    def position(self, number: int | None = None) -> str:
        """The id of an event, ``<boot>.<number>``; without a number that of the latest change."""
        return f"{self.boot}.{self.sequence if number is None else number}"

    def sequence_at(self, position: str) -> int | None:
        """The number in an event's id; None if the id is of another process."""
        boot, _, text = position.partition(".")
        is_number = text.isascii() and text.isdecimal() and len(position) <= _MAX_ID_CHARS
        if boot != self.boot or not is_number:
            return None
        number = int(text)
        return number if number <= self.sequence else None


def _after(numbers: OrderedDict[DocumentKey, int], sequence: int) -> Iterator[DocumentKey]:
    for key, number in reversed(numbers.items()):
        if number <= sequence:
            return
        yield key
