"""Java properties files that configure Kafka's tools.

The keys and what follows from them are `kafka.client_config`'s: here a file becomes properties,
and whatever is wrong with one of them becomes a line that names file, line and key.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from featurewatch.cli.errors import UsageError

if TYPE_CHECKING:
    from featurewatch.kafka.security import Security

_HIGHEST_INT: Final = 2**31 - 1
_RESULT = TypeVar("_RESULT")
_READ: Final[dict[Path, tuple[Any, "ClientConfig"]]] = {}


class Properties(dict[str, str]):
    """The properties of a file; ``lines`` has the number of the line that each begins in."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.lines: dict[str, int] = {}

    def error(self, reason: str, key: str) -> UsageError:
        """The error that a property is wrong."""
        line = f" line {self.lines[key]}" if key in self.lines else ""
        return UsageError(f"{self.file}{line}: {reason}")

    def checked(self, read: Callable[["Properties"], _RESULT]) -> _RESULT:
        """Returns ``read`` of the properties; its `SecurityError` becomes a `UsageError`."""
        from featurewatch.kafka.client_config.errors import SecurityError

        try:
            return read(self)
        except SecurityError as error:
            raise self.error(str(error), error.key) from None


def read_properties(file: Path) -> Properties:
    r"""The properties of a file, read as ``java.util.Properties`` does.

    It is Latin-1; a line that ends in a backslash continues on the next; ``\n``, ``\t``,
    ``\uXXXX`` and the like are escapes as in Java.

    Raises:
        UsageError: The file cannot be read, or a line is not a property.
    """
    from featurewatch.common.java_properties import lines_in, pair_in

    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    if b"\0" in content:
        raise UsageError(f"{file} is not a properties file: it is not text")
    properties = Properties(file)
    for number, line in lines_in(content):
        name, value = pair_in(line)
        if not name or not re.search(r"[=:\s]", line.strip()):
            raise UsageError(f"{file} line {number} is not a property: write name=value")
        properties[name] = value
        properties.lines[name] = number
    return properties


class ClientConfig(NamedTuple):
    """A client's properties, and what follows from them: its login and its timeouts."""

    security: "Security"
    timeout_s: float | None = None
    connect_timeout_s: float | None = None
    properties: Mapping[str, str] = MappingProxyType({})


def read_client_config(file: Path | None) -> ClientConfig:
    """The file that Kafka's tools take as ``--command-config``; without one: no login.

    The result is the same object as before while neither the file nor a file that it names has
    changed: connections of equal logins are used again (`kafka_tools.session`).

    Raises:
        UsageError: It cannot be read, a key is misspelt, or a value cannot be used.
    """
    from featurewatch.kafka.client_config.keys import check_keys
    from featurewatch.kafka.security import PLAINTEXT, from_properties

    if file is None:
        return ClientConfig(PLAINTEXT)
    properties = read_properties(file)
    state = (dict(properties), tuple(map(_file_state, properties.values())))
    if (before := _READ.get(file)) is not None and before[0] == state:
        return before[1]
    properties.checked(check_keys)
    config = ClientConfig(
        properties.checked(from_properties),
        _seconds(properties, "default.api.timeout.ms"),
        _seconds(properties, "socket.connection.setup.timeout.ms"),
        properties,
    )
    _READ.clear()  # of one file: a process has one login, seldom two
    _READ[file] = state, config
    return config


def _file_state(value: str) -> tuple[int, int, int] | None:
    """A value that changes with a file, if a property's value is the path of one."""
    try:
        state = os.stat(value)
    except (OSError, ValueError):
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _seconds(properties: Properties, key: str) -> float | None:
    value = properties.get(key)
    if value is None:
        return None
    fits = value.isdecimal() and len(value) <= len(str(_HIGHEST_INT))
    if not (fits and 0 < int(value) <= _HIGHEST_INT):
        raise properties.error(
            f"{key}={value:.20} is not a number of milliseconds from 1 to {_HIGHEST_INT}", key
        )
    return int(value) / 1000
