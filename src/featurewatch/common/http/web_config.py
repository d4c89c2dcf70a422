"""The file with TLS, headers and users of the HTTP ports (``web.config_file``).

It has the shape of the web configuration of Prometheus' exporter-toolkit
(docs/web-configuration.md there), so that one file can serve featurewatch and exporters alike. What
of that shape is not supported is refused by name, as an unknown key is: a part of a login that is
silently left out would be worse than none.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from featurewatch.common import yaml_file
from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.http.openid import KEYS as OPENID_KEYS
from featurewatch.common.http.openid import OpenIdConfig, parse_openid
from featurewatch.common.text import closest, quoted

MAX_FILE_BYTES: Final = 1 << 20
MAX_USERS: Final = 1_000
MAX_BCRYPT_COST: Final = 15
"""The highest accepted cost of a hash; its check takes two seconds of a core."""

_BCRYPT: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_HEADERS: Final = (
    "Content-Security-Policy",
    "X-Frame-Options",
    "X-Content-Type-Options",
    "X-XSS-Protection",
    "Strict-Transport-Security",
)
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("tls_server_config", "http_server_config", "basic_auth_users", "openid_connect"),
    "tls_server_config": (
        "cert_file",
        "key_file",
        "client_ca_file",
        "client_auth_type",
        "client_allowed_sans",
        "min_version",
        "max_version",
    ),
    "http_server_config": ("headers", "http2"),
    "http_server_config.headers": _HEADERS,
    "openid_connect": OPENID_KEYS,
}
_UNSUPPORTED: Final[Mapping[str, str]] = {
    "rate_limit": "set web.max_requests_per_s instead",
    "tls_server_config.cert": "write the certificate to a file, and name it as cert_file",
    "tls_server_config.key": "write the key to a file, and name it as key_file",
    "tls_server_config.client_ca": "write it to a file, and name that as client_ca_file",
    "tls_server_config.cipher_suites": "the suites are those of OpenSSL",
    "tls_server_config.prefer_server_cipher_suites": "the order is that of OpenSSL",
    "tls_server_config.curve_preferences": "the curves are those of OpenSSL",
}
_UNVERIFIED: Final = ("RequestClientCert", "RequireAnyClientCert")


class ClientAuth(StrEnum):
    """The requirements for a client's certificate (Go's tls.ClientAuthType)."""

    NONE = "NoClientCert"
    IF_GIVEN = "VerifyClientCertIfGiven"
    REQUIRED = "RequireAndVerifyClientCert"


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """``tls_server_config``; an empty ``allowed_sans`` allows every verified certificate."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    allowed_sans: frozenset[str] = frozenset()
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    max_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the configuration names."""
        authority = () if self.client_ca_file is None else (self.client_ca_file,)
        return self.cert_file, self.key_file, *authority


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The file; ``users`` are bcrypt hashes by name, and an empty header is left out.

    ``openid`` is our own addition to the shape of the file.
    """

    tls: TlsConfig | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, bytes] = field(default_factory=dict)
    openid: OpenIdConfig | None = None


def read_web_config(file: Path) -> WebConfig:
    """The content of a file; raises `WebConfigError`, whose text names the key."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise WebConfigError(f"{file} is larger than {MAX_FILE_BYTES:,} bytes")
        content = yaml_file.read(file)
    except OSError as error:
        raise WebConfigError(f"{file} cannot be read: {error.strerror}") from None
    except yaml_file.YamlError as error:
        raise WebConfigError(str(error)) from None
    return parse_web_config(content, file)


def parse_web_config(content: Any, file: Path) -> WebConfig:
    """A parsed file; the files that it names are relative to its folder. Raises as above."""
    try:
        sections = _section(content, "")
        return WebConfig(
            _tls(sections["tls_server_config"], file.parent)
            if "tls_server_config" in sections
            else None,
            _headers(_section(sections.get("http_server_config"), "http_server_config")),
            _users(sections.get("basic_auth_users")),
            parse_openid(_section(sections["openid_connect"], "openid_connect"), file.parent)
            if "openid_connect" in sections
            else None,
        )
    except ValueError as error:
        raise WebConfigError(f"{file}: {error}") from None


def _section(content: Any, name: str) -> Mapping[str, Any]:
    """A mapping that has known keys only; raises `ValueError`."""
    if content in (None, ""):
        return {}
    prefix = f"{name}." if name else ""
    if not isinstance(content, dict):
        raise ValueError(f"{name or 'the file'} must be a mapping of {_listed(_KEYS[name])}")
    for key in content:
        path = f"{prefix}{quoted(str(key))}"
        if path in _UNSUPPORTED:
            raise ValueError(f"{path} is not supported: {_UNSUPPORTED[path]}")
        if key not in _KEYS[name]:
            meant = closest(str(key), _KEYS[name])
            hint = f"did you mean {meant}?" if meant else f"there are {_listed(_KEYS[name])}"
            raise ValueError(f"the key {path} is unknown: {hint}")
    return content


def _tls(content: Any, folder: Path) -> TlsConfig:
    given = _section(content, "tls_server_config")
    files = {
        key: folder / _text(given[key], f"tls_server_config.{key}")
        for key in ("cert_file", "key_file", "client_ca_file")
        if given.get(key)
    }
    for key in ("cert_file", "key_file"):
        if key not in files:
            raise ValueError(f"tls_server_config.{key} is missing")
    client_auth = _client_auth(given.get("client_auth_type", ClientAuth.NONE))
    names = given.get("client_allowed_sans") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("tls_server_config.client_allowed_sans must be a list of names")
    authority = files.get("client_ca_file")
    if (authority is None) != (client_auth is ClientAuth.NONE):
        raise ValueError(
            "tls_server_config.client_ca_file and a client_auth_type other than NoClientCert need "
            "each other"
        )
    if names and client_auth is not ClientAuth.REQUIRED:
        raise ValueError(
            "tls_server_config.client_allowed_sans needs the client_auth_type "
            f"{ClientAuth.REQUIRED}: others can connect without a certificate"
        )
    lowest, highest = (_version(given, key) for key in ("min_version", "max_version"))
    if lowest > highest:
        raise ValueError("tls_server_config.min_version is above max_version")
    return TlsConfig(
        files["cert_file"],
        files["key_file"],
        authority,
        client_auth,
        frozenset(names),
        lowest,
        highest,
    )


def _client_auth(text: Any) -> ClientAuth:
    if text in _UNVERIFIED:
        raise ValueError(
            f"tls_server_config.client_auth_type {text} is not supported, as it verifies nothing: "
            f"write {ClientAuth.REQUIRED}"
        )
    if text not in tuple(ClientAuth):
        raise ValueError(
            f"tls_server_config.client_auth_type must be one of {_listed(tuple(ClientAuth))}"
        )
    return ClientAuth(text)


def _version(given: Mapping[str, Any], key: str) -> ssl.TLSVersion:
    text = given.get(key, "TLS12" if key == "min_version" else "TLS13")
    if not isinstance(text, str) or text not in _VERSIONS:
        raise ValueError(f"tls_server_config.{key} must be one of {_listed(_VERSIONS)}")
    return _VERSIONS[text]


def _headers(content: Mapping[str, Any]) -> Mapping[str, str]:
    if content.get("http2", "false") != "false":
        raise ValueError(
            "http_server_config.http2 is not supported: leave it out, or write false; a proxy "
            "before featurewatch can speak HTTP/2"
        )
    headers = _section(content.get("headers"), "http_server_config.headers")
    for name, value in headers.items():
        text = _text(value, f"http_server_config.headers.{name}")
        if not (text.isascii() and text.isprintable()):
            raise ValueError(f"http_server_config.headers.{name} must be one line of ASCII")
    return headers


def _users(content: Any) -> Mapping[str, bytes]:
    if content in (None, ""):
        return {}
    if not isinstance(content, dict) or len(content) > MAX_USERS:
        raise ValueError(f"basic_auth_users must map at most {MAX_USERS:,} names to bcrypt hashes")
    for name, value in content.items():
        if not isinstance(name, str) or not name or ":" in name or not name.isprintable():
            raise ValueError(f"basic_auth_users has a name that no client can send: {quoted(name)}")
        # The value is never part of an error: it may be a password.
        found = _BCRYPT.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise ValueError(
                f"basic_auth_users.{name} is not a bcrypt hash: print one with "
                f"htpasswd -nBC 10 {name}"
            )
        if not 4 <= int(found[1]) <= MAX_BCRYPT_COST:
            raise ValueError(
                f"basic_auth_users.{name} has the bcrypt cost {int(found[1])}: 4 to "
                f"{MAX_BCRYPT_COST} are possible"
            )
    return {name: value.encode() for name, value in content.items()}


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text")
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
