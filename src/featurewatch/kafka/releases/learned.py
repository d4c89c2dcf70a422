"""Reads the tables that a user has learned; each file is used or ignored as a whole."""

import json
import logging
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from featurewatch.kafka.releases import ReleaseFile, ReleaseFileError, release_number
from featurewatch.kafka.releases.shape import ShapeError
from featurewatch.kafka.releases.validate import check_content

MAX_BYTES: Final = 1 << 20
"""Largest size of a file; that of Kafka 4.4, with everything, has 50 kB."""

MAX_FILES: Final = 50

_NAME: Final = re.compile(r"[1-9]\d?\.\d{1,2}\.json")
_log: Final = logging.getLogger(__name__)


def read_learned(directory: Path, known: Sequence[ReleaseFile]) -> list[ReleaseFile]:
    """The files of a directory that can be used, beside those that are known, oldest first.

    Each other file whose name ends in ``.json`` is a line in the log.
    """
    used: list[ReleaseFile] = []
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".json"))
    except OSError as error:
        _log.warning(
            "%s cannot be read (%s): no learned tables are used", directory, error.strerror
        )
        return used
    for name in sorted(filter(_NAME.fullmatch, names), key=_number)[:MAX_FILES]:
        try:
            used.append(learned_file(directory / name, (*known, *used)))
        except ReleaseFileError as error:
            _log.warning("%s", error)
    for name in names:
        if not _NAME.fullmatch(name):
            _log.warning(
                "%s is ignored: its name is not a release, as in 4.5.json", directory / name
            )
    return used


def learned_file(path: Path, known: Sequence[ReleaseFile]) -> ReleaseFile:
    """The file of a release that is not known yet.

    Raises:
        ReleaseFileError: it cannot be used; in one line, with the reason.
    """
    release = path.name.removesuffix(".json")
    if any(file.release == release for file in known):
        raise ReleaseFileError(
            f"{path} is ignored: this version of featurewatch has its own tables of Kafka "
            f"{release}; delete the file"
        )
    try:
        content = parsed(path)
        check_content(content, [file for file in known if file.has_levels])
        if content["release"] != release:
            raise ShapeError(f"it has the release {content['release']}")
    except RecursionError:
        raise ReleaseFileError(
            f"{path} is ignored: it is nested too deep; delete the file"
        ) from None
    except ShapeError as error:
        raise ReleaseFileError(
            f"{path} is ignored: {error}; learn Kafka {release} again, or delete the file"
        ) from None
    return ReleaseFile(release, content, str(path.parent))


def parsed(path: Path) -> Any:
    """The JSON document of a file, which is not checked yet; raises `ShapeError`."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ShapeError("it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise ShapeError(f"it is larger than {MAX_BYTES >> 20} MiB")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        return json.loads(content)
    except OSError as error:
        raise ShapeError(f"it cannot be read ({error.strerror})") from None
    except RecursionError:
        raise ShapeError("it is nested too deep") from None
    except ValueError as error:
        if isinstance(error, ShapeError):
            raise
        raise ShapeError(f"it is not JSON ({error})") from None


def _number(name: str) -> tuple[int, ...]:
    return release_number(name.removesuffix(".json"))
