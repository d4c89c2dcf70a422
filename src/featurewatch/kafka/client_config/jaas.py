"""The entry of a ``sasl.jaas.config``, as ``JaasConfig`` of Kafka reads it."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from featurewatch.kafka.client_config.errors import SecurityError

JAAS_KEY: Final = "sasl.jaas.config"

_VALUE: Final = r'(?:"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s;="\']+)'
_OPTION: Final = re.compile(rf"([\w.]+)\s*=\s*({_VALUE})", re.DOTALL)
_ENTRY: Final = re.compile(
    r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b"
    rf"((?:\s+[\w.]+\s*=\s*{_VALUE})*)\s*;\s*",
    re.DOTALL | re.IGNORECASE,
)
"""Module, flag, options, a semicolon."""


class JaasEntry(NamedTuple):
    """The login module of an entry, and its options by name; they contain secrets."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module!r})"


def jaas_entry(text: str, example: str) -> JaasEntry | None:
    """The one entry of a ``sasl.jaas.config``; None: it is empty.

    Raises `SecurityError`, which shows the ``example``, if it is not one entry.
    """
    if not text.strip():
        return None
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise SecurityError(f"{JAAS_KEY} is not a login entry: write {example}", JAAS_KEY)
    options = {name: _unquoted(value) for name, value in _OPTION.findall(entry[2])}
    return JaasEntry(entry[1], options)


def mechanism_entry(
    properties: Mapping[str, str], mechanism: str, module: str, example: str
) -> JaasEntry:
    """The entry of a mechanism that has one login module; without an entry, that module alone.

    Raises `SecurityError`, which shows the ``example``, if it is not one entry of this module.
    """
    entry = jaas_entry(properties.get(JAAS_KEY, ""), example)
    if entry is None:
        return JaasEntry(module, {})
    if entry.module != module:
        raise SecurityError(
            f"{JAAS_KEY}: the module {entry.module} is not supported with {mechanism}: use "
            f"{module}",
            JAAS_KEY,
        )
    return entry


def jaas_text(module: str, options: Mapping[str, str]) -> str:
    """The entry with a module and options."""
    parts = "".join(f" {name}={_quoted(value)}" for name, value in options.items())
    return f"{module} required{parts};"


def _quoted(value: str) -> str:
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))


def _unquoted(value: str) -> str:
    if value[:1] not in ('"', "'"):
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
