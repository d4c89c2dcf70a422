"""Unpacks the files of a support bundle that may belong to a metadata log, and nothing else."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple

from featurewatch.streams.kraft.directory.files import META_PROPERTIES
from featurewatch.streams.kraft.dump_log import is_dump_log

_ENDS: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_PEEK_BYTES: Final = 4096
_DAMAGES: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, ValueError, OSError),
    RuntimeError,  # an encrypted zip, or an unsupported compression
)


class _Member(NamedTuple):
    """A file in an archive. ``alone``: damage in it does not affect the files after it."""

    name: str
    open: Callable[[], IO[bytes] | None]
    is_independent: bool


def is_archive(path: Path) -> bool:
    """Whether a file is an archive, judging by its name."""
    return path.name.lower().endswith(_ENDS)


def unpack(path: Path, into: Path) -> Iterator[str]:
    """Unpacks segments, snapshots, meta.properties, output of kafka-dump-log and inner archives.

    Files go below ``into``, which must not exist. Yields lines about members that cannot be
    unpacked or were skipped, without the archive's name.
    """
    into.mkdir(parents=True)
    members = _in_zip(path) if path.name.lower().endswith(".zip") else _in_tar(path)
    reasons: list[str] = []
    try:
        for member in members:
            target = _target(member.name, into)
            try:
                if target is None:
                    if _is_useful(Path(member.name)):
                        yield f"holds {member.name}, whose name leads out of it; passed over"
                elif not _unpack_member(member, target):
                    yield f"holds {member.name}, a link to what it does not hold; passed over"
            except _DAMAGES as error:
                # An error with a file name comes from the target, not from the archive.
                if not member.is_independent and not getattr(error, "filename", None):
                    raise
                if _is_useful(Path(member.name)):
                    yield f"holds {member.name}, which cannot be unpacked: {_reason(error)}"
                else:
                    reasons.append(_reason(error))
    except _DAMAGES as error:
        yield f"cannot be unpacked whole: {_reason(error)}"
    if reasons:
        yield f"holds {len(reasons)} other files that cannot be unpacked: {reasons[0]}"


def _in_zip(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield _Member(info.filename, partial(archive.open, info), is_independent=True)


def _in_tar(path: Path) -> Iterator[_Member]:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() or member.islnk() or member.issym():
                open_member = partial(_content, archive, member)
                yield _Member(member.name, open_member, is_independent=False)
        # The checksum stands at the end of the packed data, behind the end of the tar.
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """The content of a file, or of a link's target; None if the archive lacks the target."""
    try:
        return archive.extractfile(member)
    except (KeyError, RecursionError):
        return None


def _unpack_member(member: _Member, target: Path) -> bool:
    """Unpacks a member that may be useful; returns False if it would be useful but has no
    content."""
    file = member.open()
    if file is None:
        return not _is_useful(target)
    with file:
        head = file.read(_PEEK_BYTES)
        if _is_useful(target) or is_dump_log(head):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                out.write(head)
                shutil.copyfileobj(file, out, 1 << 20)
    return True


def _target(name: str, into: Path) -> Path | None:
    """The path of a member below ``into``; None if its name leads out of it."""
    parts = PurePosixPath(name.replace("\\", "/").lstrip("/")).parts
    return None if not parts or ".." in parts else into.joinpath(*parts)


def _is_useful(path: Path) -> bool:
    """Whether a file may belong to a metadata log, judging by its name."""
    name = path.name
    is_segment = name.endswith(".log") and name[:-4].isdecimal()
    return is_segment or name == META_PROPERTIES or name.endswith(".checkpoint") or is_archive(path)


def _reason(error: Exception) -> str:
    if isinstance(error, RuntimeError) and "encrypted" in str(error):
        return "it is encrypted"
    if str(error).startswith("file could not be opened"):
        return "it is no archive, or its beginning is damaged"
    strerror = error.strerror if isinstance(error, OSError) else None
    return " ".join((strerror or str(error)).split()) or "it is cut off"
