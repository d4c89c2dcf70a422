"""Finds out which Kafka a directory of jars is, without running any of it.

The release is the version that ``kafka-clients`` states about itself
(``kafka/kafka-version.properties``). The jars whose schemas and classes are read must be of that
version, so that the tables of two releases are never mixed.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from featurewatch.stack.errors import ArtifactError
from featurewatch.stack.learning.archive import Archive

CLIENTS: Final = "kafka-clients"
METADATA: Final = "kafka-metadata"
COMMON: Final = "kafka-server-common"
READ: Final = (CLIENTS, METADATA, COMMON)
"""The jars with the schemas, the levels and the ranges that nodes advertise."""

LOGGING: Final = "slf4j-api"
"""The jars that Kafka's classes need to be loaded, beside those that are read."""

_VERSION_FILE: Final = "kafka/kafka-version.properties"
_VERSION: Final = re.compile(r"^version=(.*)$", re.MULTILINE)
_RELEASE: Final = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}")
_JAR: Final = re.compile(rf"({'|'.join(READ)}|{LOGGING})-(\d.*)\.jar")
_OTHER_CONTENT: Final = ("-javadoc", "-scaladoc", "-sources", "-test", "-test-sources")
_MAX_FILES: Final = 10_000


@dataclass(frozen=True, slots=True)
class InstalledKafka:
    """The jars of one release: those that are read, by artifact, and the class path of all."""

    release: str
    jars: Mapping[str, Path]
    class_path: tuple[Path, ...]

    @property
    def minor(self) -> str:
        """The release without its patch: ``4.4``."""
        return self.release.rpartition(".")[0]

    @property
    def read_class_path(self) -> list[Path]:
        """The class path that is enough to read levels."""
        return [self.jars[name] for name in (*READ, LOGGING) if name in self.jars]

    def digests(self) -> dict[str, str]:
        """The SHA-256 of each jar that is read, by file name."""
        return {self.jars[name].name: _digest(self.jars[name]) for name in READ}


def installed_kafka(directory: Path) -> InstalledKafka:
    """The Kafka whose jars are in a directory, such as ``/opt/kafka/libs``.

    Raises:
        ArtifactError: if the directory has no Kafka, two releases of it, the jars of another
            product, or a file that is not a jar.
    """
    files = _jar_files(directory)
    jars: dict[str, Path] = {}
    for artifact, version, file in _known(files):
        if artifact in jars and artifact in READ:
            first, second = sorted((jars[artifact].name, file.name))
            raise ArtifactError(
                f"{directory} has two releases, {first} and {second}: pass a directory with one"
            )
        jars[artifact] = file
        if artifact in READ and _RELEASE.fullmatch(version) is None:
            raise ArtifactError(_another_product(file, version))
    if missing := [name for name in READ if name not in jars]:
        raise ArtifactError(
            f"{directory} has no {missing[0]}-RELEASE.jar: pass the libs directory of an installed "
            "Kafka 3.3 or newer"
        )
    return _checked(InstalledKafka(_stated_release(jars[CLIENTS]), jars, tuple(files)))


def _jar_files(directory: Path) -> list[Path]:
    try:
        files = sorted(file for file in directory.iterdir() if file.suffix == ".jar")
    except OSError as error:
        raise ArtifactError(
            f"{directory} cannot be read ({error.strerror}): pass the libs directory of an "
            "installed Kafka"
        ) from None
    if len(files) > _MAX_FILES:
        raise ArtifactError(f"{directory} has {len(files)} jars: pass the libs directory of Kafka")
    return files


def _known(files: list[Path]) -> Iterator[tuple[str, str, Path]]:
    """Artifact, version and file of each jar that is read or needed for that."""
    for file in files:
        match = _JAR.fullmatch(file.name)
        if match and not match[2].endswith(_OTHER_CONTENT):
            yield match[1], match[2], file


def _stated_release(clients: Path) -> str:
    with Archive(clients) as archive:
        stated = _VERSION.search(archive.text(_VERSION_FILE) or "")
    if stated is None:
        raise ArtifactError(
            f"{clients} is not Kafka's: it has no version in {_VERSION_FILE}; pass the libs "
            "directory of an installed Apache Kafka"
        )
    release = stated[1].strip()
    if _RELEASE.fullmatch(release) is None:
        raise ArtifactError(_another_product(clients, release))
    return release


def _checked(kafka: InstalledKafka) -> InstalledKafka:
    for artifact in READ:
        file = kafka.jars[artifact]
        if file.name != f"{artifact}-{kafka.release}.jar":
            raise ArtifactError(
                f"{file.parent} has two releases, {file.name} and {CLIENTS} {kafka.release}: pass "
                "a directory with one"
            )
    return kafka


def _another_product(file: Path, version: str) -> str:
    return (
        f"{file} states the version {version[:60]!r}, which is not a release of Apache Kafka: "
        "tables are only learned from Apache Kafka's own jars"
    )


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
