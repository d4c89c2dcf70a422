"""The SASL login in client properties, ``sasl.jaas.config`` included."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from featurewatch.kafka.client_config.errors import SecurityError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""The login module of each mechanism that is supported."""

_VALUE: Final = r'(?:"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s;="\']+)'
_OPTION: Final = re.compile(rf"([\w.]+)\s*=\s*({_VALUE})", re.DOTALL)
_ENTRY: Final = re.compile(
    r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b"
    rf"((?:\s+[\w.]+\s*=\s*{_VALUE})*)\s*;\s*",
    re.DOTALL | re.IGNORECASE,
)
"""One entry, as ``JaasConfig`` of Kafka reads it: module, flag, options, a semicolon."""


class Login(NamedTuple):
    """A SASL mechanism with a name and a password; neither prints."""

    mechanism: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.mechanism!r})"

    def jaas(self) -> str:
        """The login as a ``sasl.jaas.config``."""
        module = _MODULES[self.mechanism]
        username, password = _quoted(self.username), _quoted(self.password)
        return f"{module} required username={username} password={password};"


def protocol_of(properties: Mapping[str, str]) -> str:
    """The ``security.protocol`` in capitals; raises `SecurityError`."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise SecurityError(
            f"security.protocol={protocol} is unknown: use one of {', '.join(PROTOCOLS)}",
            "security.protocol",
        )
    return protocol


def login_of(properties: Mapping[str, str]) -> Login | None:
    """The login; None where the protocol has none. Raises `SecurityError`."""
    if not protocol_of(properties).startswith("SASL"):
        return None
    key = "sasl.mechanism" if "sasl.mechanism" in properties else "sasl.mechanisms"
    mechanism = properties.get(key, "").strip()
    if mechanism not in _MODULES:
        raise SecurityError(
            f"sasl.mechanism={mechanism or '(none)'} is not supported: use one of "
            + ", ".join(_MODULES),
            key if key in properties else "security.protocol",
        )
    jaas = _jaas_options(properties.get("sasl.jaas.config", ""))
    username = properties.get("sasl.username") or jaas.get("username", "")
    password = properties.get("sasl.password") or jaas.get("password", "")
    if not username:
        raise SecurityError(
            "SASL needs sasl.username and sasl.password, or sasl.jaas.config with username and "
            "password",
            "sasl.jaas.config" if "sasl.jaas.config" in properties else "security.protocol",
        )
    return Login(mechanism, username, password)


def _jaas_options(text: str) -> dict[str, str]:
    """The options of the one entry of a ``sasl.jaas.config``."""
    key = "sasl.jaas.config"
    if not text.strip():
        return {}
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise SecurityError(
            f"{key} is not a login entry: write "
            f'{_MODULES["PLAIN"]} required username="…" password="…";',
            key,
        )
    if entry[1] not in _MODULES.values():
        modules = " or ".join(sorted({name.rpartition(".")[2] for name in _MODULES.values()}))
        raise SecurityError(
            f"{key}: the module {entry[1].rpartition('.')[2]} is not supported: use {modules}", key
        )
    options = {name: _unquoted(value) for name, value in _OPTION.findall(entry[2])}
    if options.get("tokenauth", "").lower() == "true":
        raise SecurityError(
            f"{key}: delegation tokens (tokenauth) are not supported: use a name and a password",
            key,
        )
    return options


def _quoted(value: str) -> str:
    return '"{}"'.format(value.replace("\\", "\\\\").replace('"', '\\"'))


def _unquoted(value: str) -> str:
    if value[:1] not in ('"', "'"):
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL)
