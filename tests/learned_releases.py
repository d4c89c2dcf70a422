"""Releases that the package does not know: its own files are left out, and others are learned."""

import copy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from featurewatch.kafka import releases
from featurewatch.kafka.releases import package_files, release_number, reread
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.stack.java.jars import Cache
from tests.cli.commands import environment
from tests.paths import ROOT

Hide = Callable[[str], Path]

HIDDEN = str(ROOT / "tests/cli/releases/hidden.py")
"""A program whose first argument is the release before which the package ends."""


@contextmanager
def without(first: str, directory: Path) -> Iterator[Path]:
    """Leaves a release and those after it out of the package; gives the learned directory."""
    own, learned = directory / "package", directory / "learned"
    if not own.exists():
        own.mkdir()
        for file in package_files():
            if file.number < release_number(first):
                shutil.copy(Path(file.directory, f"{file.release}.json"), own)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(releases, "DIRECTORY", str(own))
            patch.setenv(VARIABLE, str(learned))
            reread()
            yield learned
    finally:
        reread()


def hiding(directory: Path) -> Iterator[Hide]:
    """As `without`, until the end of a test."""
    with ExitStack() as stack:
        yield lambda first: stack.enter_context(without(first, directory))


def hidden(
    directory: Path, first: str, *arguments: str, **own: str
) -> "subprocess.CompletedProcess[str]":
    """The command of a featurewatch whose package ends before ``first``."""
    own = {"XDG_DATA_HOME": str(directory / "data"), **own}
    return subprocess.run(
        [sys.executable, HIDDEN, first, *arguments],
        cwd=ROOT,
        env=environment(directory, **own),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


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
