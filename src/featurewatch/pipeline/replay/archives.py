"""Unpacks the files of a support bundle that may belong to a metadata log, and nothing else."""

import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple, cast

from featurewatch.common.text import plain, quoted, shortened
from featurewatch.pipeline.replay.archive_stream import MeteredFile, ZipDirectoryFile, open_stream
from featurewatch.pipeline.replay.bundle_limits import (
    DEFAULT_BUNDLE_LIMITS,
    BundleLimitError,
    BundleUsage,
    CompressionMeter,
)
from featurewatch.streams.kraft.directory.files import META_PROPERTIES
from featurewatch.streams.kraft.dump_log import is_dump_log

_ENDS: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_PEEK_BYTES: Final = 4096
_MAX_LINKS: Final = 40
"""As many as Linux follows in one path."""
_SPARSE: Final = "a sparse file, which can be of any length: pack it without --sparse"
_LEADS_OUT: Final = "whose name leads out of it"
_MAX_PARTS: Final = 100
_TOO_DEEP: Final = f"which is in more than {_MAX_PARTS} folders"
_DANGLING: Final = "a link to what it does not hold"
_DAMAGES: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, ValueError, OSError),
    RuntimeError,  # an encrypted zip, or an unsupported compression
)


class _Member(NamedTuple):
    """A file in an archive. ``is_independent``: damage in it does not affect the files after it.

    ``key`` is the same for all names of one file. ``refusal`` tells why it is not unpacked.
    """

    name: str
    open: Callable[[], IO[bytes] | None]
    is_independent: bool
    key: object = None
    refusal: str = ""


def is_archive(path: Path) -> bool:
    """Whether a file is an archive, judging by its name."""
    return path.name.lower().endswith(_ENDS)


def unpack(path: Path, into: Path, usage: BundleUsage | None = None) -> Iterator[str]:
    """Unpacks segments, snapshots, meta.properties, output of kafka-dump-log and inner archives.

    Files go below ``into``, which must not exist; ``usage`` is that of the bundle so far. Yields
    lines about members that cannot be unpacked or were skipped, without the archive's name.
    """
    into.mkdir(parents=True)
    usage = usage or BundleUsage(DEFAULT_BUNDLE_LIMITS)
    meter = CompressionMeter(usage.limits, path)
    members = (_in_zip if path.name.lower().endswith(".zip") else _in_tar)(path, meter, usage)
    unpacked: dict[object, Path] = {}
    reasons: list[str] = []
    try:
        for member in members:
            try:
                refusal = member.refusal or _name_refusal(member.name)
                if not refusal:
                    target = into.joinpath(*_parts(member.name))
                    refusal = _unpack_member(member, target, usage, unpacked)
                if refusal and _is_useful(Path(member.name)):
                    yield f"holds {shortened(plain(member.name))}, {refusal}; passed over"
            except _DAMAGES as error:
                # An error with a file name comes from the target, not from the archive.
                if not member.is_independent and not getattr(error, "filename", None):
                    raise
                if _is_useful(Path(member.name)):
                    name = shortened(plain(member.name))
                    yield f"holds {name}, which cannot be unpacked: {_reason(error)}"
                else:
                    reasons.append(_reason(error))
    except BundleLimitError as error:
        yield str(error)
    except _DAMAGES as error:
        yield f"cannot be unpacked whole: {_reason(error)}"
    if reasons:
        yield f"holds {len(reasons)} other files that cannot be unpacked: {reasons[0]}"


def _in_zip(path: Path, meter: CompressionMeter, usage: BundleUsage) -> Iterator[_Member]:
    with path.open("rb") as file, _open_zip(ZipDirectoryFile(file, usage)) as archive:
        for info in archive.infolist():
            usage.count_entry(info.filename)
            if not info.filename.endswith("/"):  # `is_dir` fails of a name that is empty
                open_member = partial(_open_in_zip, archive, info, meter)
                yield _Member(info.filename, open_member, is_independent=True, key=info)


def _open_zip(file: ZipDirectoryFile) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(cast("IO[bytes]", file))
    file.has_directory = True
    return archive


def _open_in_zip(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, meter: CompressionMeter
) -> IO[bytes]:
    return cast("IO[bytes]", MeteredFile(archive.open(info), meter))


def _in_tar(path: Path, meter: CompressionMeter, usage: BundleUsage) -> Iterator[_Member]:
    with open_stream(path, meter) as stream, _open_tar(stream, usage) as archive:
        entries: dict[str, tarfile.TarInfo] = {}
        has_all = False
        for entry in archive:
            entries[os.path.normpath(entry.name)] = entry
            content = _link_target(entry, entries)
            if content is None and _is_link(entry) and not has_all:  # it may come later
                entries = {os.path.normpath(other.name): other for other in archive.getmembers()}
                has_all = True
                content = _link_target(entry, entries)
            if content is not None:
                refusal = _SPARSE if content.issparse() else ""
                open_content = partial(archive.extractfile, content)
                yield _Member(entry.name, open_content, False, content.offset, refusal)
            elif _is_link(entry):
                yield _Member(entry.name, lambda: None, is_independent=False)
        # The checksum is at the end of the packed data, behind the end of the tar.
        while stream.read(1 << 20):
            pass


class _CountedTar(tarfile.TarFile):
    """A tar whose headers are counted as they are read, those of folders too."""

    def __init__(self, stream: MeteredFile, usage: BundleUsage) -> None:
        self._usage = usage
        self._counted_offset = -1
        super().__init__(fileobj=cast("IO[bytes]", stream))  # reads the first header

    def next(self) -> tarfile.TarInfo | None:
        entry = super().next()
        if entry is not None and entry.offset > self._counted_offset:  # the first comes twice
            self._counted_offset = entry.offset
            self._usage.count_entry(entry.name)
        return entry


def _open_tar(stream: MeteredFile, usage: BundleUsage) -> tarfile.TarFile:
    try:
        return _CountedTar(stream, usage)
    except (tarfile.TarError, OSError) as error:
        raise tarfile.ReadError("file could not be opened") from error


def _is_link(entry: tarfile.TarInfo) -> bool:
    return entry.issym() or entry.islnk()


def _link_target(
    entry: tarfile.TarInfo, entries: Mapping[str, tarfile.TarInfo]
) -> tarfile.TarInfo | None:
    """The file that an entry is or, over links, leads to; None if ``entries`` lack it."""
    target: tarfile.TarInfo | None = entry
    for _ in range(_MAX_LINKS):
        if target is None or not _is_link(target):
            break
        directory = os.path.dirname(target.name) if target.issym() else ""
        target = entries.get(os.path.normpath(os.path.join(directory, target.linkname)))
    return target if target is not None and target.isfile() else None


def _unpack_member(
    member: _Member, target: Path, usage: BundleUsage, unpacked: dict[object, Path]
) -> str:
    """Unpacks a member that may be useful, once under all its names; returns why it cannot be."""
    if (earlier := unpacked.get(member.key)) is not None:
        if earlier != target:
            _make_room(target, unpacked)
            os.link(earlier, target)
        return ""
    file = member.open()
    if file is None:
        return _DANGLING
    with file:
        data = file.read(_PEEK_BYTES)
        if _is_useful(target) or is_dump_log(data):
            _make_room(target, unpacked)
            with target.open("wb") as out:
                unpacked[member.key] = target
                try:
                    while data:
                        usage.count_unpacked(member.name, len(data))
                        out.write(data)
                        data = file.read(1 << 20)
                except BundleLimitError:
                    target.unlink()
                    raise
    return ""


def _make_room(target: Path, unpacked: dict[object, Path]) -> None:
    """Removes an earlier file of the same name, and nothing that other names share with it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.unlink()
        for key in [key for key, path in unpacked.items() if path == target]:
            del unpacked[key]


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a member's path below the folder that it is unpacked into."""
    return PurePosixPath(name.replace("\\", "/").lstrip("/")).parts


def _name_refusal(name: str) -> str:
    """Why a member is not unpacked because of its name; empty: it is."""
    parts = _parts(name)
    if not parts or ".." in parts:
        return _LEADS_OUT
    return _TOO_DEEP if len(parts) > _MAX_PARTS else ""


def _is_useful(path: Path) -> bool:
    """Whether a file may belong to a metadata log, judging by its name."""
    name = path.name
    is_segment = name.endswith(".log") and name[:-4].isdecimal()
    return is_segment or name == META_PROPERTIES or name.endswith(".checkpoint") or is_archive(path)


def _reason(error: Exception) -> str:
    if isinstance(error, RuntimeError) and "encrypted" in str(error):
        return "it is encrypted"
    if str(error).startswith("file could not be opened"):
        return "it is not an archive, or its beginning is damaged"
    strerror = error.strerror if isinstance(error, OSError) else None
    return quoted(" ".join((strerror or str(error)).split())) or "it is cut off"
