"""The writes of a standalone ZooKeeper server, in order, from its transaction log.

A watch may miss a write that another one follows at once, and does not tell who wrote. The log has
every write with its session, and the conditions that were checked in the same transaction. Its form
is that of ``org.apache.zookeeper.server.persistence.FileTxnLog`` of 3.8; the server flushes a
transaction before it responds to it.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_FILE_HEADER_BYTES: Final = 16
_ENTRY: Final = struct.Struct(">qi")
"""The checksum and the length of an entry; one byte follows its content."""
_HEADER: Final = struct.Struct(">qiqqi")
"""Session, number in the session, zxid, time, kind."""
_CREATES: Final = (1, 15, 19, 21)
_DELETE, _SET_DATA, _CHECK, _MULTI = 2, 5, 13, 14


class ZnodeWrite(NamedTuple):
    """``operation`` is create, set or delete; ``version`` that of the data after a set.

    ``checked`` are the paths whose versions the transaction checked as well.
    """

    session: int
    operation: str
    path: str
    data: bytes | None = None
    version: int | None = None
    checked: tuple[str, ...] = ()


class ZnodeLog:
    """Follows the log below a server's data directory; `read` returns what is new."""

    def __init__(self, data: Path) -> None:
        self._directory = data / "version-2"
        self._position = _FILE_HEADER_BYTES
        self._file: Path | None = None

    def read(self) -> list[ZnodeWrite]:
        """The writes since the last call."""
        if self._file is None:
            self._file = next(iter(sorted(self._directory.glob("log.*"))), None)
            if self._file is None:
                return []
        with self._file.open("rb") as log:
            log.seek(self._position)
            content = log.read()
        writes: list[ZnodeWrite] = []
        position = 0
        while (entry := _entry(content, position)) is not None:
            writes.extend(_writes(entry))
            position += _ENTRY.size + len(entry) + 1
        self._position += position
        return writes


def _entry(content: bytes, position: int) -> bytes | None:
    """The entry at a position; None if it is not written yet: the file is filled up with zeros."""
    if len(content) < position + _ENTRY.size:
        return None
    _, length = _ENTRY.unpack_from(content, position)
    start = position + _ENTRY.size
    end = start + length
    if length == 0 or content[end : end + 1] != b"B":
        return None
    return content[start:end]


def _writes(entry: bytes) -> Iterator[ZnodeWrite]:
    session, _, _, _, kind = _HEADER.unpack_from(entry)
    parts = [(kind, entry[_HEADER.size :])]
    if kind == _MULTI:
        reader = _Reader(parts[0][1])
        parts = [(reader.integer(), reader.buffer() or b"") for _ in range(reader.integer())]
    checked = tuple(_Reader(content).text() for part, content in parts if part == _CHECK)
    for part, content in parts:
        reader = _Reader(content)
        if part in _CREATES:
            yield ZnodeWrite(session, "create", reader.text(), reader.buffer(), checked=checked)
        elif part == _DELETE:
            yield ZnodeWrite(session, "delete", reader.text(), checked=checked)
        elif part == _SET_DATA:
            path, data, version = reader.text(), reader.buffer(), reader.integer()
            yield ZnodeWrite(session, "set", path, data, version, checked)


class _Reader:
    """Reads Jute, ZooKeeper's encoding."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def integer(self) -> int:
        (number,) = struct.unpack_from(">i", self._content, self._position)
        self._position += 4
        return int(number)

    def buffer(self) -> bytes | None:
        length = self.integer()
        if length < 0:
            return None
        self._position += length
        return self._content[self._position - length : self._position]

    def text(self) -> str:
        return (self.buffer() or b"").decode()
