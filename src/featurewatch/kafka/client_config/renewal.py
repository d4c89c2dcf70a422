"""Certificates that are replaced on disk while a process runs, as they are before they expire.

Python's ``ssl`` and librdkafka both read the files of client properties only once.
"""

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.tls import configure_context, tls_context, tls_files

LOG: Final = logging.getLogger("featurewatch.tls")

_LOOK_S: Final = 2.0
"""Seconds between two looks at the files."""


class TlsFilesWatch:
    """Notices that the files that properties name have changed; ``monotonic`` gives seconds.

    Files that cannot be used (a certificate that was replaced before its key) are logged once, and
    looked at again.
    """

    def __init__(
        self, properties: Mapping[str, str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._properties = properties
        self._monotonic = monotonic
        self._paths = [
            Path(value)
            for name, value in sorted(properties.items())
            if name.startswith("ssl.") and name.endswith(".location")
        ]
        self._looked_s = monotonic()
        self._stamp = self._refused = self._current_stamp()

    def replacement(self) -> ssl.SSLContext | None:
        """The context of the files if they have changed since they were last used."""
        now_s = self._monotonic()
        if not self._paths or now_s - self._looked_s < _LOOK_S:
            return None
        self._looked_s = now_s
        stamp = self._current_stamp()
        if stamp == self._stamp:
            return None
        try:
            context = tls_context(tls_files(self._properties))
        except SecurityError as error:
            if stamp != self._refused:
                self._refused = stamp
                LOG.warning("the replaced TLS files are not used, and the old ones stay: %s", error)
            return None
        self._stamp = stamp
        return context

    def _current_stamp(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_stamp_of, self._paths))


class RenewedContext(ssl.SSLContext):
    """The TLS of client properties, for each connection with the files as they are then."""

    def __new__(cls, properties: Mapping[str, str]) -> Self:
        """Reads the files. Raises `SecurityError`."""
        self = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        configure_context(self, tls_files(properties))
        self._replacement = None
        self._watch = TlsFilesWatch(properties)
        return self

    _replacement: ssl.SSLContext | None
    _watch: TlsFilesWatch

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """As the base class does; asyncio's connections begin here."""
        replacement = self._renewed()
        wrap = super().wrap_bio if replacement is None else replacement.wrap_bio
        return wrap(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """As the base class does; blocking connections begin here."""
        replacement = self._renewed()
        wrap = super().wrap_socket if replacement is None else replacement.wrap_socket
        return wrap(*arguments, **options)

    def _renewed(self) -> ssl.SSLContext | None:
        """The context of the files that replaced the first ones; None: these are still there."""
        self._replacement = self._watch.replacement() or self._replacement
        return self._replacement


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
