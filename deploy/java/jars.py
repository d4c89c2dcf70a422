"""Fetches Kafka's jars once, from Maven Central into a cache directory.

The cache is one Maven repository, so releases share jars. Beside it, a marker file for each class
path lists its jars with their sizes. The marker is written last: if it exists and the sizes match,
the class path is complete and nothing touches the network.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from featurewatch.deploy.errors import ArtifactError
from featurewatch.deploy.java.progress import Reporter, on_stderr
from featurewatch.deploy.java.runtime import java

OLDEST, NEWEST = (3, 3), (4, 3)
"""The range of releases that the stack knows how to configure."""

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_SLF4J_BINDING = "org.slf4j:slf4j-simple:1.7.36"
"""Releases 3.3 to 4.3 log through slf4j 1.7; this binding needs no configuration file."""


class Jars(StrEnum):
    """The class paths of a release."""

    SERVER = "server"
    TOOLS = "tools"
    """The server's class path with kafka-tools and kafka-shell."""


ClassPath = tuple[str, Jars]
"""A release and which of its class paths."""


def parse_release(release: str) -> tuple[int, int, int]:
    """Parses a release: ``"3.9.1"`` gives ``(3, 9, 1)``.

    Raises:
        ArtifactError: if the text is not a release from 3.3 to 4.3.
    """
    match = _RELEASE.fullmatch(release)
    if match is None:
        raise ArtifactError(f"{release!r} is not a Kafka release; write it like 4.3.0")
    major, minor, patch = (int(part) for part in match.groups())
    if not OLDEST <= (major, minor) <= NEWEST:
        raise ArtifactError(f"Kafka {release} is not supported; choose a release from 3.3 to 4.3")
    return major, minor, patch


def default_cache(environment: Mapping[str, str] | None = None) -> Path:
    """The directory named by FEATUREWATCH_CACHE, or ``featurewatch`` in the XDG cache directory."""
    env = os.environ if environment is None else environment
    if directory := env.get("FEATUREWATCH_CACHE"):
        return Path(directory).expanduser().absolute()
    base = env.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "featurewatch"


@dataclass(frozen=True, slots=True)
class Cache:
    """A directory of jars that several processes may use at once."""

    directory: Path

    @property
    def repository(self) -> Path:
        """The Maven repository with the jars."""
        return self.directory / "maven"

    def class_path(self, release: str, jars: Jars = Jars.SERVER) -> list[Path]:
        """The jars of a release; missing ones are fetched, with progress on stderr.

        Raises:
            ArtifactError: if the release is not supported, or its jars cannot be fetched.
        """
        return self.class_paths([(release, jars)])[0]

    def class_paths(self, wanted: Sequence[ClassPath]) -> list[list[Path]]:
        """Several of them; what is not there yet is fetched under one progress bar.

        Raises:
            ArtifactError: as `class_path` does.
        """
        for release, _ in wanted:
            parse_release(release)
        found = {class_path: self._complete(*class_path) for class_path in wanted}
        if not all(found.values()):
            with self.locked():  # another process may have fetched them meanwhile
                found = {class_path: self._complete(*class_path) for class_path in wanted}
                if missing := [class_path for class_path, jars in found.items() if not jars]:
                    with on_stderr() as reporter:
                        fetched = _fetch(self.repository, missing, reporter)
                    for (release, jars), paths in fetched.items():
                        self._mark(release, jars, paths)
                    found |= fetched
        return [found[class_path] or [] for class_path in wanted]

    def _marker(self, release: str, jars: Jars) -> Path:
        return self.directory / "class-paths" / f"kafka-{release}-{jars}.json"

    def _complete(self, release: str, jars: Jars) -> list[Path] | None:
        try:
            listed = json.loads(self._marker(release, jars).read_text())
        except (OSError, ValueError):
            return None
        paths: list[Path] = []
        for name, size_bytes in listed.items():
            path = self.repository / name
            if not path.is_file() or path.stat().st_size != size_bytes:
                path.unlink(missing_ok=True)  # truncated or altered: fetch it again
                return None
            paths.append(path)
        return paths

    def _mark(self, release: str, jars: Jars, paths: list[Path]) -> None:
        listed = {str(p.relative_to(self.repository)): p.stat().st_size for p in paths}
        marker = self._marker(release, jars)
        marker.parent.mkdir(parents=True, exist_ok=True)
        unfinished = marker.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(listed, indent=1))
        unfinished.replace(marker)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the cache against writers in other processes.

        Raises:
            ArtifactError: if the cache directory cannot be written.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = (self.directory / "lock").open("w")
        except OSError as error:
            raise ArtifactError(
                f"the cache {self.directory} cannot be written ({error.strerror}); "
                "set FEATUREWATCH_CACHE to a directory that can"
            ) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def tool_command(
    release: str, main_class: str, *args: str, cache: Cache | None = None, heap_mb: int = 256
) -> list[str]:
    """The command line of a release's tool, e.g. ``org.apache.kafka.tools.FeatureCommand``.

    The log dumper is ``kafka.tools.DumpLogSegments`` in 3.x and
    ``org.apache.kafka.tools.DumpLogSegments`` in 4.3.

    Raises:
        ArtifactError: if the jars cannot be fetched.
        JavaError: if no Java runtime is found.
    """
    jars = (cache or Cache(default_cache())).class_path(release, Jars.TOOLS)
    return java_command(jars, main_class, *args, heap_mb=heap_mb)


def java_command(
    jars: list[Path], main_class: str, *args: str, heap_mb: int, options: Sequence[str] = ()
) -> list[str]:
    """A Java command line that favours a fast start over peak speed.

    Raises:
        JavaError: if no Java runtime is found.
    """
    small = [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [
        str(java()),
        *small,
        *options,
        "-cp",
        os.pathsep.join(map(str, jars)),
        main_class,
        *args,
    ]


def _coordinates(release: str, jars: Jars) -> list[str]:
    group = "org.apache.kafka"
    coordinates = [f"{group}:kafka_2.13:{release}", _SLF4J_BINDING]
    if jars is Jars.TOOLS:
        coordinates += [f"{group}:kafka-tools:{release}", f"{group}:kafka-shell:{release}"]
    return coordinates


def _fetch(
    repository: Path, wanted: Sequence[ClassPath], reporter: Reporter
) -> dict[ClassPath, list[Path]]:
    try:
        from featurewatch.deploy.java.maven import DOWNLOADS_AT_A_TIME, MavenCentral, reason
    except ImportError as error:
        raise ArtifactError(
            "fetching Kafka needs the package jgo; run: pip install 'featurewatch[stack]'"
        ) from error
    kafka = "Kafka " + " and ".join(dict.fromkeys(release for release, _ in wanted))
    reporter.on_phase(f"{kafka}: finding its jars on Maven Central")
    central = MavenCentral(repository, reporter)
    try:
        with ThreadPoolExecutor(DOWNLOADS_AT_A_TIME) as pool:
            coordinates = [_coordinates(*class_path) for class_path in wanted]
            resolved = list(pool.map(central.resolve_jars, coordinates))
            artifacts = {each.cached_path: each for jars in resolved for each in jars}
            reporter.on_phase(f"{kafka}: fetching {len(artifacts)} jars to {repository.parent}")
            for done, _ in enumerate(pool.map(central.fetch, artifacts.values()), start=1):
                reporter.on_files(done, len(artifacts))
    except OSError as error:  # requests' errors are OSErrors
        raise ArtifactError(
            f"{kafka} could not be fetched ({reason(error)}); Maven Central must be "
            "reachable once, check the network and run it again"
        ) from error
    except RuntimeError as error:
        raise ArtifactError(f"Maven Central has no complete {kafka}: {reason(error)}") from error
    reporter.on_phase(f"{kafka}: ready")
    return {
        class_path: [Path(each.cached_path) for each in jars]
        for class_path, jars in zip(wanted, resolved, strict=True)
    }
