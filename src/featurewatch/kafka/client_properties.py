"""Reads Java properties files as Kafka's tools do, and the login and network settings in them.

Whatever is wrong with a property becomes a line that names the file, its line and the key.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from featurewatch.kafka.client_config.network import (
    NETWORK_DEFAULTS,
    NetworkSettings,
    network_settings,
)

if TYPE_CHECKING:
    from featurewatch.kafka.security import Security

_RESULT = TypeVar("_RESULT")
_READ: Final[dict[Path, tuple[Any, "ClientConfig"]]] = {}


class PropertiesError(ValueError):
    """A properties file that cannot be used, in one line."""


class Properties(dict[str, str]):
    """The properties of a file; ``lines`` has the number of the line that each begins in."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.lines: dict[str, int] = {}

    def error(self, reason: str, key: str) -> PropertiesError:
        """The error that a property is wrong."""
        line = f" line {self.lines[key]}" if key in self.lines else ""
        return PropertiesError(f"{self.file}{line}: {reason}")

    def checked(self, read: Callable[["Properties"], _RESULT]) -> _RESULT:
        """What ``read`` makes of the properties; raises its `SecurityError` with the place."""
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
        PropertiesError: The file cannot be read, or a line is not a property.
    """
    from featurewatch.common.java_properties import lines_in, pair_in

    try:
        content = file.read_bytes()
    except OSError as error:
        raise PropertiesError(f"{file} cannot be read: {error.strerror}") from None
    if b"\0" in content:
        raise PropertiesError(f"{file} is not a properties file: it is not text")
    properties = Properties(file)
    for number, line in lines_in(content):
        name, value = pair_in(line)
        if not name or not re.search(r"[=:\s]", line.strip()):
            raise PropertiesError(f"{file} line {number} is not a property: write name=value")
        properties[name] = value
        properties.lines[name] = number
    return properties


class ClientConfig(NamedTuple):
    """A client's properties, and what follows from them: its login and its network settings."""

    security: "Security"
    network: NetworkSettings = NETWORK_DEFAULTS
    properties: Mapping[str, str] = MappingProxyType({})


def client_config(properties: Mapping[str, str]) -> ClientConfig:
    """What follows from properties.

    Raises:
        SecurityError: A key is misspelt, or a value cannot be used.
    """
    from featurewatch.kafka.client_config.keys import check_keys
    from featurewatch.kafka.security import from_properties

    check_keys(properties)
    return ClientConfig(from_properties(properties), network_settings(properties), properties)


def read_client_config(file: Path | None) -> ClientConfig:
    """The file that Kafka's tools take as ``--command-config``; without one: no login.

    The result is the same object as before while neither the file nor a file that it names has
    changed: connections of equal logins are used again (`kafka_tools.session`).

    Raises:
        PropertiesError: It cannot be read, a key is misspelt, or a value cannot be used.
    """
    from featurewatch.kafka.security import PLAINTEXT

    if file is None:
        return ClientConfig(PLAINTEXT)
    properties = read_properties(file)
    state = (dict(properties), tuple(map(_file_state, properties.values())))
    if (before := _READ.get(file)) is not None and before[0] == state:
        return before[1]
    config = properties.checked(client_config)
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
