"""A group of servers that start and stop together."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from featurewatch.stack.java.jars import Cache, default_cache
from featurewatch.stack.process.ports import Ports
from featurewatch.stack.process.server import Server


class Group(ABC):
    """Servers under one directory, a folder each; not thread-safe.

    As a context manager it runs inside the block and is closed after it. With ``temporary`` the
    directory is removed by `close`, or when this process dies.
    """

    def __init__(self, directory: Path, cache: Cache | None, *, temporary: bool) -> None:
        self.directory = directory.absolute()
        self._cache = cache or Cache(default_cache())
        self._temporary = temporary
        self._ports = Ports()

    @property
    @abstractmethod
    def members(self) -> Sequence[Server]:
        """All servers."""

    @abstractmethod
    def start(self) -> None:
        """Starts every stopped server and returns when all are ready.

        Raises:
            StackError: if one does not become ready; those that were started are killed then.
        """

    def kill(self) -> None:
        """Kills every server."""
        for server in self.members:
            server.kill()

    def close(self) -> None:
        """Kills every server, releases the ports and removes a temporary directory."""
        self.kill()
        self._ports.release()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()
