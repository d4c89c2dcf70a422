"""Support bundles as archives: what of them may be a metadata log is unpacked, and nothing else."""

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from streams.kraft.dump_text import is_dump

_ENDS: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_PEEK_BYTES: Final = 64


class BadArchiveError(Exception):
    """An archive that is cut off or none; what was unpacked before is there. One line."""


def is_archive(path: Path) -> bool:
    """Whether a file is an archive, by its name."""
    return path.name.lower().endswith(_ENDS)


def unpack(path: Path, into: Path) -> None:
    """Unpacks segments, snapshots, meta.properties, texts of kafka-dump-log and inner archives.

    Raises:
        BadArchiveError: The archive cannot be read to its end.
    """
    into.mkdir(parents=True)
    try:
        if path.name.lower().endswith(".zip"):
            _unpack_all(_in_zip(path), into)
        else:
            _unpack_all(_in_tar(path), into)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ValueError) as error:
        raise BadArchiveError(" ".join(str(error).split()) or "it is cut off") from error
    except OSError as error:
        raise BadArchiveError(error.strerror or str(error)) from error


_Member = tuple[str, Callable[[], IO[bytes]]]


def _in_zip(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, lambda info=info: archive.open(info)  # type: ignore[misc]


def _in_tar(path: Path) -> Iterator[_Member]:
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, lambda file=file: file  # type: ignore[misc]


def _unpack_all(members: Iterator[_Member], into: Path) -> None:
    for name, opened in members:
        target = _target(name, into)
        if target is None:
            continue
        with opened() as file:
            head = file.read(_PEEK_BYTES)
            if not _may_be_of_use(target, head):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as out:
                out.write(head)
                shutil.copyfileobj(file, out, 1 << 20)


def _target(name: str, into: Path) -> Path | None:
    """Where a member goes: below ``into``, whatever it is called."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or ".." in parts or parts[0] == "/":
        return None
    return into.joinpath(*parts)


def _may_be_of_use(target: Path, head: bytes) -> bool:
    name = target.name
    if name == "meta.properties" or name.endswith(".checkpoint") or is_archive(target):
        return True
    return (name.endswith(".log") and name[:-4].isdecimal()) or is_dump(head)
