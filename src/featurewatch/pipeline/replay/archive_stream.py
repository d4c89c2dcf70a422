"""The bytes of an archive, unpacked and measured while they are read."""

import bz2
import gzip
import lzma
import tarfile
from pathlib import Path
from typing import IO, Final, Self, cast

from featurewatch.pipeline.replay.bundle_limits import CompressionMeter

_MAX_READ_BYTES: Final = 16 << 20
"""tarfile reads an extended header at once, whatever length it claims to have."""
_SKIP_BYTES: Final = 1 << 20


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
