"""Releases that the package does not know: its own files are left out, and others are learned."""

import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from featurewatch.kafka import releases
from featurewatch.kafka.releases import package_files, release_number, reread
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.stack.java.jars import Cache

Hide = Callable[[str], Path]


def hiding(monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[Hide]:
    """Leaves a release and those after it out of the package; returns the learned directory."""

    def hide(first: str) -> Path:
        own, learned = directory / "package", directory / "learned"
        own.mkdir()
        for file in package_files():
            if file.number < release_number(first):
                shutil.copy(Path(file.directory, f"{file.release}.json"), own)
        monkeypatch.setattr(releases, "DIRECTORY", str(own))
        monkeypatch.setenv(VARIABLE, str(learned))
        reread()
        return learned

    yield hide
    monkeypatch.undo()
    reread()


def made_up() -> dict[str, Any]:
    """A whole file of Kafka 9.1, which has one level and one type of record more than 4.4."""
    newest = package_files()[-1]
    content = copy.deepcopy(newest.content)
    del content["rules"], content["consequences"]
    high = content["supported"]["metadata.version"][1]
    content |= {"release": "9.1", "kafka": "9.1.0"}
    content["supported"]["metadata.version"][1] = high + 1
    content["unstable"]["metadata.version"][1] = high + 1
    level = {"level": high + 1, "name": "9.1-IV0", "release": "9.1", "changes_metadata": True}
    content["levels"] = [it for it in content["levels"] if it["level"] <= high] + [level]
    fields = [{"name": "id", "type": "int32"}, {"name": "note", "type": "string", "tag": 0}]
    content["records"].append(
        {"key": 90, "type": "MOON_RECORD", "versions": "0-1", "fields": fields}
    )
    content["learned"] = {"from": "/opt/kafka/libs", "at": "2026-11-25T12:00:00Z", "left_out": []}
    return content


def libs_of(cache: Cache, release: str, directory: Path) -> Path:
    """A directory with links to the jars of a release, as ``libs`` of an installed Kafka."""
    directory.mkdir()
    for jar in cache.class_path(release):
        (directory / jar.name).symlink_to(jar)
    return directory
