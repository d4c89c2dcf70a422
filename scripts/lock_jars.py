"""Writes ``stack/java/jars.lock.json``: ``python -m scripts.lock_jars``.

The lock has the SHA-256 of every jar that is started, and the class paths of every patch of the
releases from `OLDEST` to the newest that has a file, of `PROGRAMS` and of Spark's connectors. All
jars are fetched, about 2 GB, into a temporary directory, or into the one that is given. Each must
have the SHA-1 that Maven Central publishes beside it. `add` locks one patch more, whose jars are
all that it fetches.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final

import requests
from jgo.maven import MavenContext, PythonResolver
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from featurewatch.kafka.releases import newest_patch, release_number
from featurewatch.stack.java.jars import OLDEST, Jars
from featurewatch.stack.java.lock import LOCK_FILE, SPARK, jar_lock, path_of
from scripts.java_source import COMPILER
from scripts.spark_release import connectors

_DOWNLOADS: Final = 6
_TIMEOUT_S: Final = 60.0
_GROUP: Final = "org.apache.kafka"
_SLF4J_BINDING: Final = "org.slf4j:slf4j-simple:1.7.36"
"""All releases log through slf4j 1.7; this binding needs no configuration file."""
PROGRAMS: Final = {
    "aws-msk-iam-auth": ("software.amazon.msk:aws-msk-iam-auth:2.3.6:all",),
    # The newest release whose connectors for files are on Maven Central.
    "kafka-connect": (
        *(f"{_GROUP}:connect-runtime:4.3.1", f"{_GROUP}:connect-file:4.3.1"),
        _SLF4J_BINDING,
    ),
    "kafka-streams": (f"{_GROUP}:kafka-streams:4.4.0", _SLF4J_BINDING),
    "mock-oauth2-server": ("no.nav.security:mock-oauth2-server:6.0.2",),
}
"""What tests compare with, or run beside Kafka; a jar with a classifier has its dependencies."""
_SPARK_LACKS: Final = (
    "io/delta/",
    "org/apache/spark/spark-sql-kafka",
    "org/apache/spark/spark-token-provider-kafka",
    "org/apache/kafka/",
    "org/apache/commons/commons-pool2/",
)
"""Of the jars that its connectors need, those that Spark's Python package does not bring, and that
Delta needs without a catalog."""
_NEEDED: Final = (None, "compile", "runtime")


class _Resolver(PythonResolver):  # type: ignore[misc]  # jgo is not followed by mypy
    """jgo's resolver over connections that stay open, for several threads."""

    def __init__(self) -> None:
        super().__init__()
        self._locks: dict[Path, Lock] = {}
        self._session = requests.Session()
        busy = Retry(5, status_forcelist=(429, 502, 503), backoff_factor=0.5)
        self._session.mount("https://", HTTPAdapter(pool_maxsize=32, max_retries=busy))

    def get(self, url: str) -> requests.Response:
        """The response to a GET."""
        return self._session.get(url, timeout=_TIMEOUT_S)

    def download(self, artifact: Any) -> Path:
        """Called by jgo for a file that is not in the repository."""
        target = Path(artifact.cached_path)
        path = f"{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
        with self._locks.setdefault(target, Lock()):
            if target.exists():
                return target
            for remote in artifact.context.remote_repos.values():
                response = self.get(f"{remote}/{path}")
                if response.ok:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(response.content)
                    return target
        raise RuntimeError(f"there is no {path}")


def digest_of(repository: Path, path: str, resolver: _Resolver, remote: str) -> str:
    """The SHA-256 of a jar; raises `RuntimeError` if its SHA-1 is not the published one."""
    content = (repository / path).read_bytes()
    published = resolver.get(f"{remote}/{path}.sha1").text.split()[:1]
    if published != [hashlib.sha1(content, usedforsecurity=False).hexdigest()]:
        raise RuntimeError(f"{path} does not have the SHA-1 that is published beside it")
    return hashlib.sha256(content).hexdigest()


def releases(context: MavenContext, resolver: _Resolver) -> list[str]:
    """The patches from `OLDEST` to those of the newest release that Maven Central has."""
    newest = release_number(newest_patch())
    remote = next(iter(context.remote_repos.values()))
    path = f"{_GROUP.replace('.', '/')}/kafka_2.13/maven-metadata.xml"
    versions = re.findall(
        r"<version>(\d+\.\d+\.\d+)</version>", resolver.get(f"{remote}/{path}").text
    )
    by_number = sorted(versions, key=lambda version: [int(part) for part in version.split(".")])
    return [v for v in by_number if OLDEST <= release_number(v) <= newest]


def coordinates(release: str, jars: Jars) -> list[str]:
    """What a class path begins from; the rest are dependencies."""
    of_server = [f"{_GROUP}:kafka_2.13:{release}", _SLF4J_BINDING]
    if jars is Jars.SERVER:
        return of_server
    return [*of_server, f"{_GROUP}:kafka-tools:{release}", f"{_GROUP}:kafka-shell:{release}"]


def _class_path(context: MavenContext, resolver: _Resolver, wanted: list[str]) -> list[str]:
    """Fetches the jars of a class path; returns their paths in the repository, in its order."""
    dependencies = [context.create_dependency(coordinate) for coordinate in wanted]
    chosen, others = resolver.resolve(dependencies)
    artifacts = [each.artifact for each in (*chosen, *others) if each.scope in _NEEDED]
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        list(pool.map(lambda artifact: artifact.resolve(), artifacts))
    root = Path(context.repo_cache)
    return [Path(artifact.cached_path).relative_to(root).as_posix() for artifact in artifacts]


def _one_jar(context: MavenContext, coordinate: str) -> str:
    group, artifact, version = coordinate.split(":")
    context.project(group, artifact).at_version(version).artifact().resolve()
    return path_of(coordinate)


def lock(repository: Path) -> dict[str, Any]:
    """The content of the lock; its jars are fetched into ``repository``."""
    resolver = _Resolver()
    context = MavenContext(resolver=resolver, repo_cache=repository)
    compiler = _one_jar(context, COMPILER)
    class_paths = {
        release: _class_paths(context, resolver, release) for release in releases(context, resolver)
    }
    programs = _programs(context, resolver)
    used = {path for of in class_paths.values() for paths in of.values() for path in paths}
    used |= {path for paths in programs.values() for path in paths}
    return _content(_digests(context, resolver, used | {compiler}), class_paths, programs)


def add(release: str, repository: Path) -> dict[str, Any]:
    """The content of the lock with one patch more; its jars are fetched into ``repository``."""
    resolver = _Resolver()
    context = MavenContext(resolver=resolver, repo_cache=repository)
    found = _class_paths(context, resolver, release)
    used = {path for paths in found.values() for path in paths}
    locked = jar_lock()
    sha256 = {**locked.sha256, **_digests(context, resolver, used - locked.sha256.keys())}
    class_paths = {**locked.class_paths, release: found}
    by_number = sorted(class_paths, key=lambda it: [int(part) for part in it.split(".")])
    return _content(sha256, {it: class_paths[it] for it in by_number}, locked.programs)


def add_programs(repository: Path) -> dict[str, Any]:
    """The content of the lock with new `PROGRAMS`; their jars are fetched into ``repository``."""
    resolver = _Resolver()
    context = MavenContext(resolver=resolver, repo_cache=repository)
    return _with_programs(_programs(context, resolver), context, resolver)


def move_spark(repository: Path) -> dict[str, Any]:
    """The content of the lock with the connectors of the current `spark_release`; their jars are
    fetched into ``repository``."""
    resolver = _Resolver()
    context = MavenContext(resolver=resolver, repo_cache=repository)
    programs = {**jar_lock().programs, SPARK: _spark(context, resolver)}
    return _with_programs(programs, context, resolver)


def _with_programs(
    programs: Mapping[str, Sequence[str]], context: MavenContext, resolver: _Resolver
) -> dict[str, Any]:
    """The lock with other programs, and without jars that nothing needs any more."""
    locked = jar_lock()
    class_paths = [paths for of in locked.class_paths.values() for paths in of.values()]
    used = {path for paths in (*class_paths, *programs.values()) for path in paths}
    used.add(path_of(COMPILER))
    kept = {path: sha256 for path, sha256 in locked.sha256.items() if path in used}
    sha256 = kept | _digests(context, resolver, used - kept.keys())
    return _content(sha256, locked.class_paths, programs)


def _programs(context: MavenContext, resolver: _Resolver) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {}
    for name, wanted in PROGRAMS.items():
        group, artifact, version, *classifier = wanted[0].split(":")
        if classifier:
            component = context.project(group, artifact).at_version(version)
            file = Path(component.artifact(classifier=classifier[0]).resolve())
            found[name] = [file.relative_to(context.repo_cache).as_posix()]
        else:
            found[name] = _class_path(context, resolver, [*wanted])
        sys.stderr.write(f"{name}: {len(found[name])} jars\n")
    found[SPARK] = _spark(context, resolver)
    return found


def _spark(context: MavenContext, resolver: _Resolver) -> list[str]:
    """The jars of Spark's connectors that Spark does not have itself."""
    paths = _class_path(context, resolver, connectors())
    return sorted(path for path in paths if path.startswith(_SPARK_LACKS))


def _class_paths(
    context: MavenContext, resolver: _Resolver, release: str
) -> dict[str, Sequence[str]]:
    """The class paths of a patch; one that lacks a jar is left out."""
    found: dict[str, Sequence[str]] = {}
    for jars in Jars:
        try:
            found[jars.value] = _class_path(context, resolver, coordinates(release, jars))
        except RuntimeError as error:
            sys.stderr.write(f"Kafka {release}, {jars}: {error}; left out\n")
            continue
        sys.stderr.write(f"Kafka {release}, {jars}: {len(found[jars.value])} jars\n")
    return found


def _digests(context: MavenContext, resolver: _Resolver, paths: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of jars that were fetched."""
    remote = next(iter(context.remote_repos.values()))
    root, ordered = Path(context.repo_cache), sorted(paths)
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        digests = pool.map(lambda path: digest_of(root, path, resolver, remote), ordered)
        return dict(zip(ordered, digests, strict=True))


def _content(
    sha256: Mapping[str, str],
    class_paths: Mapping[str, Mapping[str, Sequence[str]]],
    programs: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    ordered = sorted(sha256)
    numbers = {path: number for number, path in enumerate(ordered)}
    return {
        "jars": {path: sha256[path] for path in ordered},
        "class_paths": {
            release: {jars: [numbers[path] for path in paths] for jars, paths in of.items()}
            for release, of in class_paths.items()
            if of
        },
        "programs": {
            name: [numbers[path] for path in paths] for name, paths in sorted(programs.items())
        },
    }


def render(content: dict[str, Any]) -> str:
    """The text of the lock: a line a jar, and a line a class path."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[\d,\s]*\]", lambda match: "".join(match[0].split()), text) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="featurewatch-lock-") as scratch:
        LOCK_FILE.write_text(render(lock(Path(sys.argv[1] if sys.argv[1:] else scratch))))
