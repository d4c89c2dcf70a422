"""Java properties files, as far as Kafka's tools are configured by them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from featurewatch.cli.errors import UsageError

if TYPE_CHECKING:
    from featurewatch.streams.net.security import Security

_HIGHEST_INT: Final = 2**31 - 1


def read_properties(file: Path) -> dict[str, str]:
    r"""The properties of a file, read as ``java.util.Properties`` does.

    It is Latin-1; a line that ends in a backslash goes on in the next; ``\n``, ``\t``, ``\uXXXX``
    and the like are escapes as in Java.

    Raises:
        UsageError: The file cannot be read, or a line is no property.
    """
    from featurewatch.streams.java_properties import lines_in, pair_in

    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    if b"\0" in content:
        raise UsageError(f"{file} is no properties file: it is not text")
    properties: dict[str, str] = {}
    for number, line in lines_in(content):
        name, value = pair_in(line)
        if not name or not re.search(r"[=:\s]", line.strip()):
            raise UsageError(f"{file} line {number} is no property: write name=value")
        properties[name] = value
    return properties


class ClientConfig(NamedTuple):
    """A client's properties: its login, its timeouts, and warnings about unused ones."""

    security: "Security"
    timeout_s: float | None = None
    connect_timeout_s: float | None = None
    warnings: tuple[str, ...] = ()


def read_client_config(file: Path | None) -> ClientConfig:
    """The file that Kafka's tools take as ``--command-config``; without one: no login.

    Raises:
        UsageError: It cannot be read, a key is misspelt, or a value cannot be used.
    """
    from featurewatch.streams.net.security import PLAINTEXT, SecurityError, from_properties

    if file is None:
        return ClientConfig(PLAINTEXT)
    properties = read_properties(file)
    warnings = tuple(_check_keys(file, properties))
    try:
        security = from_properties(properties)
    except SecurityError as error:
        raise UsageError(f"{file}: {error}") from None
    return ClientConfig(
        security,
        _seconds(file, properties, "default.api.timeout.ms"),
        _seconds(file, properties, "socket.connection.setup.timeout.ms"),
        warnings,
    )


def _seconds(file: Path, properties: Mapping[str, str], key: str) -> float | None:
    value = properties.get(key)
    if value is None:
        return None
    fits = value.isdecimal() and len(value) <= len(str(_HIGHEST_INT))
    if not (fits and 0 < int(value) <= _HIGHEST_INT):
        raise UsageError(
            f"{file}: {key}={value:.20} is no number of milliseconds from 1 to {_HIGHEST_INT}"
        )
    return int(value) / 1000


def _check_keys(file: Path, properties: Mapping[str, str]) -> Iterator[str]:
    """A warning for each key without effect; raises where a login may depend on it."""
    keys = _keys()
    for key in properties:
        if key in keys["used"] or key in keys["harmless"]:
            continue
        if key in keys["unused"] or key.startswith(_UNUSED_GROUPS):
            yield f"{file}: {key} has no effect here"
            continue
        _refuse_misspelt(file, key, keys["used"], "Kafka has none of that name")
        yield f"{file}: {key} is no setting of an admin client and has no effect"


def check_zookeeper_keys(file: Path, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings about the keys of a ``--zookeeper-config`` that have no effect.

    Raises:
        UsageError: A key is misspelt, or one of which a login or TLS may be expected has none.
    """
    keys = _keys()
    warnings = []
    for key in properties:
        if key in keys["zookeeper"]:
            continue
        if key not in keys["harmless"] + keys["unused"] and not key.startswith(_UNUSED_GROUPS):
            hint = "ZooKeeper takes security.protocol, ssl.*, sasl.username and sasl.password"
            _refuse_misspelt(file, key, keys["zookeeper"], hint)
        warnings.append(f"{file}: {key} has no effect for ZooKeeper")
    return tuple(warnings)


def _refuse_misspelt(file: Path, key: str, keys: list[str], otherwise: str) -> None:
    """Raises `UsageError` if a key may be meant for a login or for TLS."""
    import difflib  # here: only a file of properties needs it

    # ZooKeeper's own names of the same settings: zookeeper.ssl.truststore.location.
    bare = key.removeprefix("zookeeper.")
    close = difflib.get_close_matches(bare, keys, n=1, cutoff=0.8)
    if close or bare != key or key.startswith(("sasl.", "ssl.", "security.")):
        hint = f"did you mean {close[0]}?" if close else otherwise
        raise UsageError(f"{file}: there is no setting {key}: {hint}")


_UNUSED_GROUPS: Final = ("sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.")


def _keys() -> dict[str, list[str]]:
    """An admin client's keys: ``used``, without effect (``unused``), and those that merely tune."""
    import json
    import pkgutil

    content = pkgutil.get_data(__package__, "client_config.json")
    assert content is not None  # noqa: S101 - the package has its data
    keys: dict[str, list[str]] = json.loads(content)
    return keys
