"""Writes ``stack/java/jars.lock.json``: ``python -m scripts.lock_jars``.

The lock has the SHA-256 of every jar that is started, and the class paths of every release of Kafka
from `OLDEST` to `NEWEST`. All jars are fetched, about 2 GB, into a temporary directory, or into the
one that is given. Each must have the SHA-1 that Maven Central publishes beside it.
"""

import hashlib
import json
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, Final

import requests
from jgo.maven import MavenContext, PythonResolver
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from featurewatch.pipeline.spark.session import JARS
from featurewatch.stack.java.jars import NEWEST, OLDEST, Jars
from featurewatch.stack.java.lock import LOCK_FILE, path_of
from scripts.java_source import COMPILER

_DOWNLOADS: Final = 6
_TIMEOUT_S: Final = 60.0
_GROUP: Final = "org.apache.kafka"
_SLF4J_BINDING: Final = "org.slf4j:slf4j-simple:1.7.36"
"""Releases 3.3 to 4.4 log through slf4j 1.7; this binding needs no configuration file."""
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
    """The releases of Kafka from `OLDEST` to `NEWEST` that Maven Central has."""
    remote = next(iter(context.remote_repos.values()))
    path = f"{_GROUP.replace('.', '/')}/kafka_2.13/maven-metadata.xml"
    versions = re.findall(
        r"<version>(\d+\.\d+\.\d+)</version>", resolver.get(f"{remote}/{path}").text
    )
    by_number = sorted(versions, key=lambda version: [int(part) for part in version.split(".")])
    return [v for v in by_number if OLDEST <= tuple(map(int, v.split(".")[:2])) <= NEWEST]


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
    others = [_one_jar(context, coordinate) for coordinate in (*JARS, COMPILER)]
    class_paths: dict[str, dict[str, list[str]]] = {}
    for release in releases(context, resolver):
        for jars in Jars:
            wanted = coordinates(release, jars)
            try:
                paths = _class_path(context, resolver, wanted)
            except RuntimeError as error:
                sys.stderr.write(f"Kafka {release}, {jars}: {error}; left out\n")
                continue
            class_paths.setdefault(release, {})[jars.value] = paths
            sys.stderr.write(f"Kafka {release}, {jars}: {len(paths)} jars\n")
    used = {path for of in class_paths.values() for paths in of.values() for path in paths}
    ordered = sorted(used | set(others))
    numbers = {path: number for number, path in enumerate(ordered)}
    remote = next(iter(context.remote_repos.values()))
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        digests = pool.map(lambda path: digest_of(repository, path, resolver, remote), ordered)
        sha256 = dict(zip(ordered, digests, strict=True))
    return {
        "jars": sha256,
        "class_paths": {
            release: {jars: [numbers[path] for path in paths] for jars, paths in of.items()}
            for release, of in class_paths.items()
        },
    }


def render(content: dict[str, Any]) -> str:
    """The text of the lock: a line a jar, and a line a class path."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[\d,\s]*\]", lambda match: "".join(match[0].split()), text) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="featurewatch-lock-") as scratch:
        LOCK_FILE.write_text(render(lock(Path(sys.argv[1] if sys.argv[1:] else scratch))))
