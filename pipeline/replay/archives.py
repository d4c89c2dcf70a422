"""Support bundles as archives: what of them may be a metadata log is unpacked, and nothing else."""

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple

from featurewatch.streams.kraft.directory.files import META_PROPERTIES
from featurewatch.streams.kraft.dump_log import is_dump_log

_ENDS: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_PEEK_BYTES: Final = 4096
_DAMAGES: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, ValueError, OSError),
    RuntimeError,  # a zip that is encrypted, or packed in a way that is not known here
)


class _Member(NamedTuple):
    """A file in an archive. ``alone``: what is damaged in it says nothing of the files after it."""

    name: str
    open: Callable[[], IO[bytes] | None]
    alone: bool


def is_archive(path: Path) -> bool:
    """Whether a file is an archive, by its name."""
    return path.name.lower().endswith(_ENDS)


def unpack(path: Path, into: Path) -> Iterator[str]:
    """Unpacks segments, snapshots, meta.properties, texts of kafka-dump-log and inner archives.

    Gives what is to be said of the archive, as it goes: what cannot be unpacked or was passed over.
    """
    into.mkdir(parents=True)
    members = _in_zip(path) if path.name.lower().endswith(".zip") else _in_tar(path)
    closed: list[str] = []
    try:
        for member in members:
            target = _target(member.name, into)
            try:
                if target is None:
                    if _is_of_use(Path(member.name)):
                        yield f"holds {member.name}, whose name leads out of it; passed over"
                elif not _take(member, target):
                    yield f"holds {member.name}, a link to what it does not hold; passed over"
            except _DAMAGES as error:
                # One that names a file is of the place where the member should go.
                if not member.alone and not getattr(error, "filename", None):
                    raise
                if _is_of_use(Path(member.name)):
                    yield f"holds {member.name}, which cannot be unpacked: {_reason(error)}"
                else:
                    closed.append(_reason(error))
    except _DAMAGES as error:
        yield f"cannot be unpacked whole: {_reason(error)}"
    if closed:
        yield f"holds {len(closed)} other files that cannot be unpacked: {closed[0]}"


def _in_zip(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield _Member(info.filename, lambda info=info: archive.open(info), alone=True)  # type: ignore[misc]


def _in_tar(path: Path) -> Iterator[_Member]:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() or member.islnk() or member.issym():
                opened = lambda member=member: _content(archive, member)  # noqa: E731
                yield _Member(member.name, opened, alone=False)
        # The checksum of what is packed stands at its end, behind what a tar is read to.
        while archive.fileobj is not None and archive.fileobj.read(1 << 20):
            pass


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """What stands in a file, or in the one that a link is to; None if the archive lacks that."""
    try:
        return archive.extractfile(member)
    except (KeyError, RecursionError):
        return None


def _take(member: _Member, target: Path) -> bool:
    """Unpacks a member if it may be of use; False if it would be, and has no content."""
    file = member.open()
    if file is None:
        return not _is_of_use(target)
    with file:
        head = file.read(_PEEK_BYTES)
        if _is_of_use(target) or is_dump_log(head):
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                out.write(head)
                shutil.copyfileobj(file, out, 1 << 20)
    return True


def _target(name: str, into: Path) -> Path | None:
    """Where a member goes: below ``into``; None where its name leads out of there."""
    parts = PurePosixPath(name.replace("\\", "/").lstrip("/")).parts
    return None if not parts or ".." in parts else into.joinpath(*parts)


def _is_of_use(path: Path) -> bool:
    """Whether a file may be one of a metadata log, by its name."""
    name = path.name
    segment = name.endswith(".log") and name[:-4].isdecimal()
    return segment or name == META_PROPERTIES or name.endswith(".checkpoint") or is_archive(path)


def _reason(error: Exception) -> str:
    if isinstance(error, RuntimeError) and "encrypted" in str(error):
        return "it is encrypted"
    if str(error).startswith("file could not be opened"):
        return "it is no archive, or its beginning is damaged"
    said = error.strerror if isinstance(error, OSError) else None
    return " ".join((said or str(error)).split()) or "it is cut off"
