"""Limits on what the archives of a support bundle may unpack to, and what was used of them.

A bundle may come from anyone: a few kilobytes can unpack to terabytes, and archives can contain
archives without end.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from featurewatch.common.text import plain, shortened


class BundleLimitError(Exception):
    """An archive exceeds a limit; the text is the end of a line that begins with its name."""


@dataclass(frozen=True, slots=True)
class BundleLimits:
    """The limits of one bundle: an archive that was given, with all archives in it.

    ``max_unpacked_bytes``: of the files that are written. ``max_compression_ratio``: bytes out of
    an archive per byte of it, once they are more than ``unmeasured_bytes``: each segment that a
    node writes to has two indexes of ten MiB of zeros, and a copy of a small node is mostly these.
    ``max_files``: files and folders in archives, used or not. ``max_archive_depth``: archives in
    archives; 1 is the bundle itself.
    """

    max_unpacked_bytes: int = 16 << 30
    max_compression_ratio: float = 200.0
    max_files: int = 100_000
    max_archive_depth: int = 4
    unmeasured_bytes: int = 512 << 20


DEFAULT_BUNDLE_LIMITS: Final = BundleLimits()


@dataclass(slots=True)
class BundleUsage:
    """The use that one bundle has made of its limits.

    ``is_exhausted``: a limit of the whole bundle is exceeded, and its other archives are skipped.
    """

    limits: BundleLimits
    is_exhausted: bool = False
    _unpacked_bytes: int = 0
    _entry_count: int = 0
    _is_depth_reported: bool = False

    def count_entry(self, name: str) -> None:
        """Counts a file, a folder or another entry of an archive; raises `BundleLimitError`."""
        self._entry_count += 1
        if self._entry_count > self.limits.max_files:
            raise self.too_many_entries(f"at {_short(name)}")

    def too_many_entries(self, place: str) -> BundleLimitError:
        """The error of an archive with more files and folders than a bundle may have."""
        self.is_exhausted = True
        return _exceeded(
            f"has more than {self.limits.max_files} files and folders, {place}",
            "max_files",
            "bundle",
        )

    def count_unpacked(self, name: str, size_bytes: int) -> None:
        """Counts bytes before they are written; raises `BundleLimitError`."""
        self._unpacked_bytes += size_bytes
        if self._unpacked_bytes > self.limits.max_unpacked_bytes:
            self.is_exhausted = True
            text = f"unpacks to more than {self.limits.max_unpacked_bytes} bytes, at {_short(name)}"
            raise _exceeded(text, "max_unpacked_bytes", "bundle")

    def refusal(self, depth: int) -> str | None:
        """Why an archive at a depth is not unpacked: None if it is, empty if a line said so
        already."""
        if self.is_exhausted:
            return ""
        if depth <= self.limits.max_archive_depth:
            return None
        if self._is_depth_reported:
            return ""
        self._is_depth_reported = True
        text = f"is an archive in {depth - 1} others"
        return str(_exceeded(text, "max_archive_depth", "archives in as many others"))


@dataclass(slots=True)
class CompressionMeter:
    """Measures the bytes that come out of one archive, whether they are written or skipped."""

    limits: BundleLimits
    archive: Path
    _archive_bytes: int = field(init=False)
    _out_bytes: int = 0

    def __post_init__(self) -> None:
        self._archive_bytes = self.archive.stat().st_size

    def add(self, size_bytes: int) -> None:
        """Counts bytes that were read; raises `BundleLimitError`."""
        self._out_bytes += size_bytes
        limits = self.limits
        allowed = max(limits.unmeasured_bytes, limits.max_compression_ratio * self._archive_bytes)
        if self._out_bytes > allowed:
            ratio = self.limits.max_compression_ratio
            text = f"unpacks to more than {ratio:g} times its {self._archive_bytes} bytes"
            raise _exceeded(text, "max_compression_ratio", "archive")


def _short(name: str) -> str:
    return shortened(plain(name))


def _exceeded(text: str, setting: str, subject: str) -> BundleLimitError:
    variable = f"FEATUREWATCH_REPLAY__{setting.upper()}"
    return BundleLimitError(
        f"{text}: nothing more of the {subject} is unpacked; if you trust it, raise the "
        f"setting replay.{setting} ({variable})"
    )
