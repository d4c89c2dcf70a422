"""One question to one listener, without the client: ApiVersions version 4 over a bare socket.

A node answers it before any login, and to ask it takes none of the codecs and event loops that the
rest of an admin client stands on, whose import takes longer than the answer. Whatever is not as
expected, `fast_describe` knows nothing, and the client has to be asked, which says what is wrong.
"""

import socket
import struct
from typing import TYPE_CHECKING, Final

from featurewatch.admin.metadata import FeatureMetadata
from featurewatch.streams.net.address import Address
from featurewatch.streams.types import FeatureLevel, FeatureName, SupportedRanges

if TYPE_CHECKING:
    import ssl

METADATA: Final = 3
"""The API that brokers have and controllers have not."""

_MAX_FRAME_BYTES: Final = 1 << 20
_SOFTWARE: Final = b"featurewatch"
_SOFTWARE_VERSION: Final = b"0.1"
_CORRELATION_ID: Final = 1
_SUPPORTED, _EPOCH, _FINALIZED = 0, 1, 2
"""Tags of the answer's fields."""


def fast_describe(
    address: Address, tls: "ssl.SSLContext | None", timeout_s: float
) -> FeatureMetadata | None:
    """What a broker says of features; None if it says nothing that can be read in time."""
    try:
        with _connect(address, tls, timeout_s) as connection:
            connection.sendall(_request())
            (size,) = struct.unpack(">i", _exactly(connection, 4))
            if not 4 <= size <= _MAX_FRAME_BYTES:
                return None
            return _read(_Bytes(_exactly(connection, size)), address)
    except (OSError, ValueError, struct.error):
        return None


def _connect(address: Address, tls: "ssl.SSLContext | None", timeout_s: float) -> socket.socket:
    plain = socket.create_connection((address.host, address.port), timeout_s)
    if tls is None:
        return plain
    try:
        return tls.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise


def _request() -> bytes:
    """Header version 2 (key, version, correlation id, client id, no tags), and the body."""
    head = struct.pack(">hhih", 18, 4, _CORRELATION_ID, len(_SOFTWARE)) + _SOFTWARE + b"\0"
    texts = b"".join(bytes([len(text) + 1]) + text for text in (_SOFTWARE, _SOFTWARE_VERSION))
    body = head + texts + b"\0"
    return struct.pack(">i", len(body)) + body


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionError("closed")
        found += part
    return bytes(found)


class _Bytes:
    """What is left of an answer; `ValueError` and `struct.error` where it ends too soon."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError("too short")
        taken, self._at = self._data[self._at : end], end
        return taken

    def number(self, layout: str) -> int:
        (found,) = struct.unpack(layout, self.take(struct.calcsize(layout)))
        return int(found)

    def varint(self) -> int:
        found = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise ValueError("too long")

    def text(self) -> str:
        return self.take(self.varint() - 1).decode()

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())


def _read(answer: _Bytes, address: Address) -> FeatureMetadata | None:
    correlation_id, error = answer.number(">i"), answer.number(">h")
    if (correlation_id, error) != (_CORRELATION_ID, 0):
        return None  # an older node answers in another form, with an error
    apis = set()
    for _ in range(answer.varint() - 1):
        apis.add(answer.number(">h"))
        answer.take(4)  # its versions
        answer.skip_tags()
    if METADATA not in apis:
        return None  # a controller listens here
    answer.number(">i")  # throttle time
    tags = {}
    for _ in range(answer.varint()):
        tag = answer.varint()
        tags[tag] = answer.take(answer.varint())
    epoch = _Bytes(tags[_EPOCH]).number(">q") if _EPOCH in tags else -1
    return FeatureMetadata(
        supported=_ranges(tags.get(_SUPPORTED)),
        finalized=_levels(tags.get(_FINALIZED)) if epoch >= 0 else {},
        epoch=epoch if epoch >= 0 else None,
        node=address,
    )


def _ranges(content: bytes | None) -> SupportedRanges:
    features = _features(content)
    return SupportedRanges((FeatureName(name), (low, high)) for name, low, high in features)


def _levels(content: bytes | None) -> dict[FeatureName, FeatureLevel]:
    """The maximum comes first; the minimum is the same since 3.3 (KIP-778)."""
    return {FeatureName(name): FeatureLevel(first) for name, first, _ in _features(content)}


def _features(content: bytes | None) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    if content is None:
        return found
    data = _Bytes(content)
    for _ in range(data.varint() - 1):
        found.append((data.text(), data.number(">h"), data.number(">h")))
        data.skip_tags()
    return found
