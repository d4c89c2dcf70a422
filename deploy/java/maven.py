"""Files of Maven Central in a local repository: there whole, or not there at all."""

import hashlib
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import requests
from jgo.maven import MavenContext, PythonResolver
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from featurewatch.deploy.java.progress import Reporter

DOWNLOADS_AT_A_TIME = 6
_ATTEMPTS = 3
_TIMEOUT_S = 30.0
_CHUNK = 1 << 16


class MavenCentral(PythonResolver):  # type: ignore[misc]  # jgo is not followed by mypy
    """jgo's resolver over connections that stay open; used by several threads at once.

    Several hundred small files make up a release: a connection for each took most of the time.
    """

    def __init__(self, repository: Path, reporter: Reporter) -> None:
        super().__init__()
        self._repository = repository
        self._reporter = reporter
        self._locks: dict[Path, Lock] = {}
        self._session = requests.Session()
        busy = Retry(_ATTEMPTS, status_forcelist=(429, 502, 503), backoff_factor=0.5)
        self._session.mount("https://", HTTPAdapter(pool_maxsize=32, max_retries=busy))

    def resolve_jars(self, coordinates: list[str]) -> list[Any]:
        """The artifacts, ``group:name:version`` each, with all that they need at run time.

        Raises:
            OSError: if what describes them cannot be fetched.
            RuntimeError: if Maven Central does not have them.
        """
        context = MavenContext(resolver=self, repo_cache=self._repository)
        wanted = [context.create_dependency(coordinate) for coordinate in coordinates]
        chosen, others = _retried(lambda: self.resolve(wanted))
        needed = (None, "compile", "runtime")
        return [each.artifact for each in (*chosen, *others) if each.scope in needed]

    def fetch(self, artifact: Any) -> Path:
        """Where the artifact is in the repository, fetched if it is not there yet.

        Raises:
            OSError: if it cannot be fetched, or arrives damaged each time.
            RuntimeError: if Maven Central does not have it.
        """
        return Path(_retried(artifact.resolve))

    def download(self, artifact: Any) -> Path:
        """What jgo calls for a file that is not in the repository."""
        target = Path(artifact.cached_path)
        place = f"{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
        with self._locks.setdefault(target, Lock()):
            if target.exists():  # another thread fetched it meanwhile
                return target
            for remote in artifact.context.remote_repos.values():
                url = f"{remote}/{place}"
                with self._session.get(url, stream=True, timeout=_TIMEOUT_S) as found:
                    if found.ok:
                        self._store(found, target, f"{url}.sha1")
                        return target
        raise RuntimeError(f"there is no {place}")

    def _store(self, response: requests.Response, target: Path, checksum_url: str) -> None:
        """Writes beside the repository, checks, and moves."""
        self._repository.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=self._repository) as directory:
            path = Path(directory) / target.name
            digest = hashlib.sha1(usedforsecurity=False)
            with path.open("wb") as file:
                for chunk in response.iter_content(_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    self._reporter.on_received(len(chunk))
            checksum = self._session.get(checksum_url, timeout=_TIMEOUT_S)
            if checksum.ok and checksum.text.split()[:1] != [digest.hexdigest()]:
                raise OSError(f"{target.name} arrived damaged")
            if target.suffix == ".jar":
                _check_jar(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _check_jar(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as jar:
            damaged = jar.testzip()
    except zipfile.BadZipFile as error:
        raise OSError(f"{path.name} arrived damaged") from error
    if damaged is not None:
        raise OSError(f"{path.name} arrived damaged")


def _retried(action: Callable[[], Any]) -> Any:
    """The action's result; a connection that breaks is tried again."""
    for attempt in range(_ATTEMPTS):
        try:
            return action()
        except OSError:  # requests' errors are OSErrors
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def reason(error: Exception) -> str:
    """The innermost cause in one line: urllib3 wraps a refused connection four times."""
    cause: BaseException = error
    while inner := (getattr(cause, "reason", None) or cause.__cause__ or cause.__context__):
        if not isinstance(inner, BaseException):
            break
        cause = inner
    return " ".join(str(cause).split())[:200] or type(cause).__name__
