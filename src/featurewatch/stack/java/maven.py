"""Jars of Maven Central in a local repository: identical to the locked ones, or absent."""

import hashlib
import tempfile
from pathlib import Path

import requests
from jgo.maven import MavenContext
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from featurewatch.stack.java.progress import Reporter

DOWNLOADS_AT_A_TIME = 6
_ATTEMPTS = 3
_TIMEOUT_S = 30.0
_CHUNK = 1 << 16


class UnlockedJarError(OSError):
    """A jar that was fetched does not have the SHA-256 of the lock."""


class MavenCentral:
    """Fetches jars over connections that stay open; used by several threads at once.

    ``remotes`` are the addresses of repositories, those that jgo is configured with by default.
    """

    def __init__(
        self, repository: Path, reporter: Reporter, remotes: list[str] | None = None
    ) -> None:
        self._repository = repository
        self._reporter = reporter
        self._remotes = remotes or list(MavenContext().remote_repos.values())
        self._session = requests.Session()
        busy = Retry(_ATTEMPTS, status_forcelist=(429, 502, 503), backoff_factor=0.5)
        self._session.mount("https://", HTTPAdapter(pool_maxsize=32, max_retries=busy))

    def fetch(self, path: str, sha256: str | None) -> None:
        """Fetches the jar at ``path`` in the repository. A connection that breaks is tried again.

        ``sha256`` is what it must have; None accepts any.

        Raises:
            UnlockedJarError: if what arrives each time has another SHA-256.
            OSError: if it cannot be fetched.
            RuntimeError: if Maven Central does not have it.
        """
        for attempt in range(_ATTEMPTS):
            try:
                self._fetch(path, sha256)
            except OSError:  # requests' errors are OSErrors
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _fetch(self, path: str, sha256: str | None) -> None:
        for remote in self._remotes:
            with self._session.get(f"{remote}/{path}", stream=True, timeout=_TIMEOUT_S) as response:
                if response.ok:
                    self._store(response, self._repository / path, sha256)
                    return
        raise RuntimeError(f"there is no {path}")

    def _store(self, response: requests.Response, target: Path, sha256: str | None) -> None:
        """Writes beside the repository, checks, and moves."""
        self._repository.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=self._repository) as directory:
            path = Path(directory) / target.name
            digest = hashlib.sha256()
            with path.open("wb") as file:
                for chunk in response.iter_content(_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    self._reporter.on_received(len(chunk))
            if sha256 is not None and digest.hexdigest() != sha256:
                raise UnlockedJarError(
                    f"{target.name} has the SHA-256 {digest.hexdigest()} and not {sha256}, to "
                    "which this version of featurewatch is locked"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def reason(error: Exception) -> str:
    """The innermost cause in one line: urllib3 wraps a refused connection four times."""
    cause: BaseException = error
    while inner := (getattr(cause, "reason", None) or cause.__cause__ or cause.__context__):
        if not isinstance(inner, BaseException):
            break
        cause = inner
    return " ".join(str(cause).split())[:300] or type(cause).__name__
