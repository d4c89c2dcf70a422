"""Archives that are the same bytes whoever packs them, where and when."""

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

_FILE_MODE: Final = 0o644
_PROGRAM_MODE: Final = 0o755


class Member(NamedTuple):
    """A regular file of an archive: its content, and whether it can be executed."""

    content: bytes
    is_program: bool = False


def pack(members: Mapping[str, Member], epoch_s: int) -> bytes:
    """Returns a ``.tar.gz`` of members by path; ``epoch_s`` (Unix seconds) is their time.

    Paths are in order, owners are root, and rights are those of a file or a program.
    """
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(members):
            member = members[path]
            info = tarfile.TarInfo(path)
            info.size = len(member.content)
            info.mtime = epoch_s
            info.mode = _PROGRAM_MODE if member.is_program else _FILE_MODE
            archive.addfile(info, io.BytesIO(member.content))
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(plain.getvalue())
    return packed.getvalue()


def unpack(archive: bytes) -> dict[str, Member]:
    """Returns the regular files of a ``.tar.gz`` or ``.tar``; links are left out."""
    members = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        for info in opened:
            file = opened.extractfile(info) if info.isfile() else None
            if file is not None:
                members[info.name] = Member(file.read(), bool(info.mode & 0o100))
    return members


def write_tree(members: Mapping[str, Member], directory: Path) -> None:
    """Writes members below a directory, with the rights that `pack` gives them."""
    for path, member in members.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(member.content)
        file.chmod(_PROGRAM_MODE if member.is_program else _FILE_MODE)


def below(
    members: Mapping[str, Member], prefixes: Iterable[str], *, root: str = ""
) -> dict[str, Member]:
    """Returns the members at or below some paths, with ``root`` before their paths."""
    wanted = tuple(prefixes)
    return {
        f"{root}{path}": member
        for path, member in members.items()
        if any(path == each or path.startswith(f"{each}/") for each in wanted)
    }
