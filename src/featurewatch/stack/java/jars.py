"""Kafka's jars, fetched once from Maven Central into a cache directory, and checked by the lock.

The cache is one Maven repository, so releases share jars. A jar is used if it has the SHA-256 of
the lock (`stack.java.lock`). The digest is computed once: a file beside the repository has the
size and the modification time that each jar had then, and a jar that still has both is not read
again.
"""

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from featurewatch.common.text import enumeration
from featurewatch.kafka.releases import newest_patch, release_number
from featurewatch.stack.errors import ArtifactError
from featurewatch.stack.java.lock import LOCK_FILE, jar_lock
from featurewatch.stack.java.progress import on_stderr
from featurewatch.stack.java.runtime import java

OLDEST = (3, 3)
"""The first release that the stack knows how to configure; the last is `newest_patch`'s."""

_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class Jars(StrEnum):
    """The class paths of a release."""

    SERVER = "server"
    TOOLS = "tools"
    """The server's class path with kafka-tools and kafka-shell."""


ClassPath = tuple[str, Jars]
"""A release and one of its class paths."""


def parse_release(release: str) -> tuple[int, int, int]:
    """Parses a release: ``"3.9.1"`` gives ``(3, 9, 1)``.

    Raises:
        ArtifactError: if the text is not a release from `OLDEST` to the newest.
    """
    match = _RELEASE.fullmatch(release)
    if match is None:
        raise ArtifactError(f"{release!r} is not a Kafka release; write it like {newest_patch()}")
    major, minor, patch = (int(part) for part in match.groups())
    last = release_number(newest_patch())
    if not OLDEST <= (major, minor) <= last:
        oldest, newest = (".".join(map(str, bound)) for bound in (OLDEST, last))
        raise ArtifactError(
            f"Kafka {release} is not supported; choose a release from {oldest} to {newest}"
        )
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
        """Several class paths; missing jars are fetched under one progress bar.

        Raises:
            ArtifactError: as `class_path` does.
        """
        for release, jars in wanted:
            parse_release(release)
            if jars not in jar_lock().class_paths.get(release, {}):
                raise ArtifactError(_not_locked(release, jars))
        releases = "Kafka " + enumeration(dict.fromkeys(release for release, _ in wanted))
        listed = [jar_lock().class_paths[release][jars] for release, jars in wanted]
        unique = dict.fromkeys(path for paths in listed for path in paths)
        self.require(list(unique), releases)
        return [[self.repository / path for path in paths] for paths in listed]

    def program(self, name: str) -> list[Path]:
        """The jars of a program that is not Kafka, by its name in the lock.

        Raises:
            ArtifactError: if they cannot be fetched.
        """
        paths = jar_lock().programs[name]
        self.require(paths, name)
        return [self.repository / path for path in paths]

    def require(self, paths: Sequence[str], label: str) -> None:
        """Fetches jars that are missing, or not as they were locked; ``label`` is for messages.

        Raises:
            ArtifactError: if one is not in the lock or cannot be fetched, or Maven Central has
                another than was locked.
        """
        if unlocked := [path for path in paths if path not in jar_lock().sha256]:
            raise ArtifactError(f"{label}: {unlocked[0]} is not in {LOCK_FILE.name}")
        if not self._unusable(paths):
            return
        with self.locked():  # another process may have fetched them meanwhile
            if missing := self._unusable(paths):
                for path in missing:  # truncated or altered
                    (self.repository / path).unlink(missing_ok=True)
                _fetch(self.repository, missing, label)
                self._unusable(missing)

    def _unusable(self, paths: Sequence[str]) -> list[str]:
        """The jars that are missing, or do not have the SHA-256 of the lock."""
        checked = self._checked()
        states: dict[str, list[int | str]] = {}
        for path in paths:
            file = self.repository / path
            with suppress(OSError):
                stat = file.stat()
                sha256 = jar_lock().sha256[path]
                state: list[int | str] = [stat.st_size, stat.st_mtime_ns, sha256]
                if checked.get(path) == state or _digest(file) == sha256:
                    states[path] = state
        if any(checked.get(path) != state for path, state in states.items()):
            with suppress(OSError):  # the cache may be read only
                self._write_checked(checked | states)
        return [path for path in paths if path not in states]

    @property
    def _checked_file(self) -> Path:
        return self.directory / "checked.json"

    def _checked(self) -> dict[str, list[int | str]]:
        """Size, modification time and SHA-256 that jars had when they were checked, by path."""
        try:
            checked: dict[str, list[int | str]] = json.loads(self._checked_file.read_text())
        except (OSError, ValueError):
            return {}
        return checked if isinstance(checked, dict) else {}

    def _write_checked(self, checked: Mapping[str, Sequence[int | str]]) -> None:
        unfinished = self._checked_file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(checked, indent=1))
        unfinished.replace(self._checked_file)

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


def newest_tools() -> str:
    """The newest release whose tools are locked: Maven Central may lack those of a newer one."""
    with_tools = (release for release, of in jar_lock().class_paths.items() if Jars.TOOLS in of)
    return max(with_tools, key=parse_release)


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


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _not_locked(release: str, jars: Jars) -> str:
    """Why a class path is refused, with the releases of the same minor that have it."""
    minor = release.rpartition(".")[0]
    others = [
        other
        for other, of in jar_lock().class_paths.items()
        if jars in of and other.rpartition(".")[0] == minor
    ]
    what = f"Kafka {release}" if jars is Jars.SERVER else f"the tools of Kafka {release}"
    choice = f"choose {' or '.join(others)}" if others else "choose another release"
    return f"{what} cannot be started, since its jars are not in {LOCK_FILE.name}: {choice}"


def _fetch(repository: Path, paths: Sequence[str], label: str) -> None:
    try:
        from featurewatch.stack.java.maven import (
            DOWNLOADS_AT_A_TIME,
            MavenCentral,
            UnlockedJarError,
            reason,
        )
    except ImportError as error:
        raise ArtifactError(
            f"fetching {label} needs the package jgo; run: pip install 'featurewatch[stack]'"
        ) from error
    with on_stderr() as reporter:
        reporter.on_phase(f"{label}: fetching {len(paths)} jars to {repository.parent}")
        central = MavenCentral(repository, reporter)
        try:
            with ThreadPoolExecutor(DOWNLOADS_AT_A_TIME) as pool:
                fetched = pool.map(lambda path: central.fetch(path, jar_lock().sha256[path]), paths)
                for done, _ in enumerate(fetched, start=1):
                    reporter.on_files(done, len(paths))
        except UnlockedJarError as error:
            raise ArtifactError(
                f"{label} is not used: {error}; find out who changed it before you continue"
            ) from error
        except OSError as error:  # requests' errors are OSErrors
            raise ArtifactError(
                f"{label} could not be fetched ({reason(error)}); Maven Central must be "
                "reachable once, check the network and run it again"
            ) from error
        except RuntimeError as error:
            raise ArtifactError(f"Maven Central has no complete {label}: {error}") from error
        reporter.on_phase(f"{label}: ready")
