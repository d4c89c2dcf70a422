"""The bytes of an archive, unpacked and measured while they are read."""

import bz2
import gzip
import lzma
import struct
import tarfile
from pathlib import Path
from typing import IO, Final, Self, cast

from featurewatch.pipeline.replay.bundle_limits import (
    BundleUsage,
    CompressionMeter,
)

_MAX_READ_BYTES: Final = 16 << 20
"""tarfile reads an extended header at once, whatever length it claims to have."""
_SKIP_BYTES: Final = 1 << 20
_MIN_LISTED: Final = 100_000
"""A zip with this many entries is listed, and its first files used, if fewer are allowed."""
_MAX_ENTRY_BYTES: Final = 512
"""Of an entry in the directory of a zip, on average: its name is a path."""
_ENTRY_MARK: Final = b"PK\x01\x02"
_ENTRY_BYTES: Final = 46
_ENTRY_LENGTHS: Final = struct.Struct("<3H")


class MeteredFile:
    """A file whose bytes are measured as they are read; a seek forward reads what it skips.

    Without a meter nothing is measured, and a seek is a seek.
    """

    def __init__(self, file: IO[bytes], meter: CompressionMeter | None) -> None:
        self._file = file
        self._meter = meter

    def read(self, size: int) -> bytes:
        """Reads at most ``size`` bytes.

        Raises:
            BundleLimitError: The archive exceeds its compression ratio.
            tarfile.ReadError: More is to be read at once than any header has.
        """
        if not 0 <= size <= _MAX_READ_BYTES:
            raise tarfile.ReadError(f"a header claims to have {size} bytes")
        data = self._file.read(size)
        if self._meter is not None:
            self._meter.add(len(data))
        return data

    def seek(self, position: int) -> int:
        """Goes to a position from the start; raises as `read` does."""
        if self._meter is None or position <= self._file.tell():
            return self._file.seek(position)
        while (skipped := position - self._file.tell()) > 0:
            if not self.read(min(skipped, _SKIP_BYTES)):
                break
        return self._file.tell()

    def tell(self) -> int:
        """The position from the start."""
        return self._file.tell()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ZipDirectoryFile:
    """A zip's file, which refuses a large directory before `zipfile` makes objects of its entries.

    `zipfile` reads the directory at once, by its length alone: the number of its entries, which
    is beside it, may be wrong. Set ``has_directory`` once it is read.

    Raises:
        BundleLimitError: The directory has more entries than a bundle may have files.
    """

    def __init__(self, file: IO[bytes], usage: BundleUsage) -> None:
        self._file = file
        self._usage = usage
        self.has_directory = False

    def read(self, size: int = -1) -> bytes:
        """Reads at most ``size`` bytes."""
        if self.has_directory:
            return self._file.read(size)
        max_entries = max(self._usage.limits.max_files, _MIN_LISTED)
        if size > max_entries * _MAX_ENTRY_BYTES:
            raise self._usage.too_many_entries(f"in a directory of {size} bytes")
        data = self._file.read(size)
        if _entries(data) > max_entries:
            raise self._usage.too_many_entries("in its directory")
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        """As of a file."""
        return self._file.seek(position, whence)

    def tell(self) -> int:
        """The position from the start."""
        return self._file.tell()

    def seekable(self) -> bool:
        """It can."""
        return True


def _entries(directory: bytes) -> int:
    """The entries of a zip's directory (APPNOTE 4.3.12); 0 for other bytes."""
    count = position = 0
    last = len(directory) - _ENTRY_BYTES
    while position <= last and directory.startswith(_ENTRY_MARK, position):
        name, extra, comment = _ENTRY_LENGTHS.unpack_from(directory, position + 28)
        position += _ENTRY_BYTES + name + extra + comment
        count += 1
    return count


def open_stream(path: Path, meter: CompressionMeter) -> MeteredFile:
    """Opens a tar that may be compressed, judging by its first bytes."""
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(b"\x1f\x8b"):
        return MeteredFile(cast("IO[bytes]", gzip.open(path)), meter)
    if head.startswith(b"BZh"):
        return MeteredFile(cast("IO[bytes]", bz2.open(path)), meter)
    if head.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        return MeteredFile(cast("IO[bytes]", lzma.open(path)), meter)
    return MeteredFile(path.open("rb"), None)
