"""Fetches Kafka's jars once, from Maven Central into a cache directory.

The cache is one Maven repository, so releases share jars. Beside it, a marker file for each class
path lists its jars with their sizes. The marker is written last: if it exists and the sizes match,
the class path is complete and nothing touches the network.
"""

import fcntl
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from featurewatch.deploy.errors import ArtifactError
from featurewatch.deploy.java.progress import Reporter, on_stderr
from featurewatch.deploy.java.runtime import java

OLDEST, NEWEST = (3, 3), (4, 3)
"""The range of releases that the stack knows how to configure."""

_DOWNLOADS_AT_A_TIME = 6
_ATTEMPTS = 3
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_SLF4J_BINDING = "org.slf4j:slf4j-simple:1.7.36"
"""Releases 3.3 to 4.3 log through slf4j 1.7; this binding needs no configuration file."""


class Jars(StrEnum):
    """The class paths of a release."""

    SERVER = "server"
    TOOLS = "tools"
    """The server's class path with kafka-tools and kafka-shell."""


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
        parse_release(release)
        if complete := self._complete(release, jars):
            return complete
        with self.locked():
            if complete := self._complete(release, jars):  # another process fetched it meanwhile
                return complete
            with on_stderr() as reporter:
                fetched = _fetch(self.repository, release, jars, reporter)
            self._mark(release, jars, fetched)
            return fetched

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


def _fetch(repository: Path, release: str, jars: Jars, reporter: Reporter) -> list[Path]:
    try:
        import requests
        from jgo.maven import MavenContext
    except ImportError as error:
        raise ArtifactError(
            "fetching Kafka needs the package jgo; run: pip install 'featurewatch[stack]'"
        ) from error
    reporter.on_phase(f"Kafka {release}: finding its jars on Maven Central")
    try:
        context = MavenContext(resolver=_resolver(repository, reporter), repo_cache=repository)
        dependencies = [context.create_dependency(c) for c in _coordinates(release, jars)]
        direct, transitive = _retry(lambda: context.resolver.resolve(dependencies))
        artifacts = [
            dependency.artifact
            for dependency in (*direct, *transitive)
            if dependency.scope in (None, "compile", "runtime")
        ]
        reporter.on_phase(f"Kafka {release}: fetching {len(artifacts)} jars to {repository.parent}")
        with ThreadPoolExecutor(_DOWNLOADS_AT_A_TIME) as pool:
            paths: list[Path] = []
            for path in pool.map(lambda artifact: _retry(artifact.resolve), artifacts):
                paths.append(path)
                reporter.on_files(len(paths), len(artifacts))
    except (requests.RequestException, OSError) as error:
        raise ArtifactError(
            f"Kafka {release} could not be fetched ({_reason(error)}); Maven Central must be "
            "reachable once, check the network and run it again"
        ) from error
    except RuntimeError as error:
        raise ArtifactError(
            f"Maven Central has no complete Kafka {release}: {_reason(error)}"
        ) from error
    reporter.on_phase(f"Kafka {release}: ready")
    return paths


def _resolver(repository: Path, reporter: Reporter) -> Any:
    """A jgo resolver that never leaves a partial file in the repository."""
    from jgo.maven import MavenContext, PythonResolver

    @contextmanager
    def received(_name: str, _size_bytes: int) -> Iterator[Callable[[int], None]]:
        yield reporter.on_received

    class AtomicDownloads(PythonResolver):  # type: ignore[misc]  # jgo is not followed by mypy
        """Downloads into a staging directory, verifies the file, then moves it into place."""

        def download(self, artifact: Any) -> Path:
            target = Path(artifact.cached_path)
            repository.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".part-", dir=repository) as staging:
                context = MavenContext(resolver=self, repo_cache=Path(staging))
                staged = (
                    context.project(artifact.groupId, artifact.artifactId)
                    .at_version(artifact.version)
                    .artifact(artifact.classifier, artifact.packaging)
                )
                path = Path(PythonResolver.download(self, staged))
                if path.suffix == ".jar":
                    _check_jar(path)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
            return target

    return AtomicDownloads(progress_callback=received)


def _check_jar(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as jar:
            corrupt_name = jar.testzip()
    except zipfile.BadZipFile as error:
        raise OSError(f"{path.name} arrived damaged") from error
    if corrupt_name is not None:
        raise OSError(f"{path.name} arrived damaged")


def _retry(action: Callable[[], Any]) -> Any:
    """The action's result; repeats the action if the connection breaks.

    Raises:
        OSError: if the last attempt fails too.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return action()
        except OSError:  # requests' errors are OSErrors
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _reason(error: Exception) -> str:
    """The innermost cause in one line: urllib3 wraps a refused connection four times."""
    cause: BaseException = error
    while inner := (getattr(cause, "reason", None) or cause.__cause__ or cause.__context__):
        if not isinstance(inner, BaseException):
            break
        cause = inner
    return " ".join(str(cause).split())[:200] or type(cause).__name__
