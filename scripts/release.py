"""Writes the file of a release of Kafka, ``kafka/releases/4.4.json``, from its jars.

Usage: ``python -m scripts.release [--check] [4.4.0 …]``. Without a release the files that there are
are written again, from the same patches. Jars that are not in ``jars.lock.json`` are locked first
(`scripts.lock_jars`). ``rules``, ``partitions`` and ``consequences`` are kept as a person wrote
them; what is missing of them is named on stderr.

A Java program (``scripts/java/FeatureTable.java``) prints the levels from the release's own
classes; any Java 17 runtime will do. Records and requests are schemas in the jars. With ``--check``
nothing is written; the exit code is 3 if a file differs from the jars.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from featurewatch.kafka.messages.table import request_names
from featurewatch.kafka.releases import (
    DIRECTORY,
    ReleaseFile,
    package_files,
    release_number,
)
from featurewatch.kafka.releases.compose import compose, text
from featurewatch.kafka.releases.merge import METADATA_VERSION, production_levels
from featurewatch.kafka.releases.schemas import MESSAGES, METADATA, SchemaError, schemas
from featurewatch.stack.java.jars import Cache, default_cache, java_command
from featurewatch.stack.java.lock import LOCK_FILE, jar_lock, path_of
from scripts.java_source import compile_java, jar

MODULES: Final = ("kafka-clients", "kafka-metadata", "kafka-server-common")
"""The jars that a release's file is read from."""

_SLF4J: Final = "org.slf4j:slf4j-api:1.7.36"
_PROGRAM: Final = Path(__file__).resolve().parent / "java" / "FeatureTable.java"


def read_release(
    kafka: str, classes: Path, before: Sequence[ReleaseFile], cache: Cache
) -> dict[str, Any]:
    """The content of a release's file that its jars say; ``classes`` has `_PROGRAM`, compiled."""
    jars = {module: jar(f"org.apache.kafka:{module}:{kafka}", cache) for module in MODULES}
    run = subprocess.run(
        java_command([*jars.values(), jar(_SLF4J, cache), classes], "FeatureTable", heap_mb=64),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if run.returncode:
        raise SystemExit(f"Kafka {kafka}: {run.stderr}")
    locked = jar_lock().sha256
    return compose(
        kafka,
        json.loads(run.stdout),
        schemas(jars["kafka-metadata"], METADATA),
        schemas(jars["kafka-clients"], MESSAGES),
        {path.name: locked[path_of(f"org.apache.kafka:{it}:{kafka}")] for it, path in jars.items()},
        before,
        sorted(request_names().values()),
    )


def with_written(
    content: Mapping[str, Any], known: Mapping[str, Any], before: Sequence[ReleaseFile]
) -> dict[str, Any]:
    """A file with what a person wrote into it: as ``known`` has it, or to be completed.

    The rules of a new release are those of the release before, not compared with its classes.
    """
    rules = known.get("rules")
    if rules is None and before:
        rules = {**before[-1].content["rules"], "compared": False}
    consequences = known.get("consequences", [])
    of_jars = {key: value for key, value in content.items() if key not in _LAST}
    partitions = {key: known[key] for key in ("partitions",) if key in known}
    last = {key: content[key] for key in _LAST}
    return {**of_jars, "rules": rules, **partitions, **last, "consequences": consequences}


_LAST: Final = ("requests", "records", "controls", "sources")
"""After the levels and what a person decides about them."""


def without_consequence(files: Sequence[ReleaseFile]) -> list[str]:
    """The production levels, as ``share.version 2``, for which no file has a consequence."""
    described = {
        (entry["feature"], entry["level"])
        for file in files
        for entry in file.content["consequences"]
    }
    levels = [(METADATA_VERSION, level) for level in production_levels(files)]
    for file in files:
        for feature, (_, high) in file.content["supported"].items():
            if feature != METADATA_VERSION:
                levels += [(feature, level) for level in range(1, high + 1)]
    missing = dict.fromkeys(it for it in levels if it not in described)
    return [f"{feature} {level}" for feature, level in missing]


def texts(releases: Sequence[str], cache: Cache) -> dict[Path, str]:
    """The texts of the files of some patches, by path, from their jars.

    Raises:
        SystemExit: A release's jars say something that cannot be written; the error says what.
    """
    files = {file.release: file for file in package_files()}
    written: dict[Path, str] = {}
    with tempfile.TemporaryDirectory() as name:
        compile_java([_PROGRAM], Path(name), cache)
        for kafka in sorted(releases, key=release_number):
            number = release_number(kafka)
            ordered = sorted(files.values(), key=lambda file: file.number)
            before = [file for file in ordered if file.number < number]
            release = ".".join(map(str, number))
            known = files[release].content if release in files else {}
            try:
                content = read_release(kafka, Path(name), before, cache)
            except SchemaError as error:
                raise SystemExit(f"Kafka {kafka}: {error}") from error
            content = with_written(content, known, before)
            files[release] = ReleaseFile(release, content, DIRECTORY)
            written[Path(DIRECTORY, f"{release}.json")] = text(content)
    for level in without_consequence(sorted(files.values(), key=lambda file: file.number)):
        sys.stderr.write(f"write a consequence of {level} into the file of its release\n")
    return written


def _lock(kafka: str) -> None:
    """Adds the jars of a patch to the lock."""
    # Resolving needs packages that nothing else here does.
    from scripts import lock_jars

    with tempfile.TemporaryDirectory(prefix="featurewatch-lock-") as scratch:
        LOCK_FILE.write_text(lock_jars.render(lock_jars.add(kafka, Path(scratch))))
    jar_lock.cache_clear()


def main(arguments: list[str]) -> int:
    """Writes the files, or compares them with ``--check``; returns 0, or 3 if one differs."""
    check = "--check" in arguments
    releases = [it for it in arguments if it != "--check"]
    if any(not it.replace(".", "").isdigit() or it.count(".") != 2 for it in releases):
        sys.stderr.write("usage: python -m scripts.release [--check] [4.4.0 …]\n")
        return 2
    releases = releases or [file.content["kafka"] for file in package_files()]
    for kafka in releases:
        if kafka not in jar_lock().class_paths and not check:
            _lock(kafka)
    found = texts(releases, Cache(default_cache()))
    if check:
        return 0 if all(path.read_text() == it for path, it in found.items()) else 3
    for path, it in found.items():
        path.write_text(it)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
