"""The TLS of client properties: files in PEM, whatever form the properties have them in.

Python's ``ssl`` and librdkafka both read PEM files. Contents of a Java key store or of the
properties themselves are passed to them as a file in memory (`held_file`).
"""

import re
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from featurewatch.kafka.client_config import key_stores
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.key_stores import KeyStoreContent, KeyStoreError
from featurewatch.kafka.client_config.pem_files import held_file, pem_blocks

MAX_STORE_BYTES: Final = 16 * 1024 * 1024
"""A larger file is not a store of keys or certificates."""

TLS_KEYS: Final = frozenset(
    {
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""The properties of TLS in either spelling."""

_STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")
_VERSIONS: Final = {
    "TLSV1": ssl.TLSVersion.TLSv1,
    "TLSV1.1": ssl.TLSVersion.TLSv1_1,
    "TLSV1.2": ssl.TLSVersion.TLSv1_2,
    "TLSV1.3": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True, repr=False)
class TlsFiles:
    """The trusted certificates and the client's own one; paths of PEM files.

    ``authorities`` None: those of the system. ``certificate`` None: the client presents no
    certificate. ``key`` None: the key is in the certificate's file. ``authorities_key`` and
    ``certificate_key`` name the properties that the files come from, for messages.
    """

    authorities: str | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = None
    authorities_key: str = ""
    certificate_key: str = ""
    check_host_name: bool = True
    verify: bool = True
    versions: tuple[ssl.TLSVersion, ssl.TLSVersion] | None = None
    ciphers: str = ""


def tls_files(properties: Mapping[str, str]) -> TlsFiles:
    """The TLS settings in client properties; raises `SecurityError`.

    Java's and librdkafka's spellings both work; where there are two of one thing, librdkafka's goes
    first. The sources are ``SslConfigs`` of Kafka and librdkafka's CONFIGURATION.md.
    """
    authorities_key, authorities = _authorities(properties)
    certificate_key, certificate, key, password = _client_certificate(properties)
    check = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if check not in ("", "none", "https"):
        raise SecurityError(
            f"ssl.endpoint.identification.algorithm={check} is unknown: use https, or none",
            "ssl.endpoint.identification.algorithm",
        )
    verify = properties.get("enable.ssl.certificate.verification", "true").strip().lower()
    return TlsFiles(
        authorities,
        certificate,
        key,
        password,
        authorities_key,
        certificate_key,
        check_host_name=check == "https" and verify != "false",
        verify=verify != "false",
        versions=_versions(properties.get("ssl.enabled.protocols", "")),
        ciphers=openssl_ciphers(properties.get("ssl.cipher.suites", "")),
    )


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """The context of Python's ``ssl``; raises `SecurityError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    configure_context(context, files)
    return context


def configure_context(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Configures a new context of a client; raises `SecurityError`."""
    # As `ssl.create_default_context` does.
    if sys.version_info >= (3, 13):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    try:
        if files.authorities is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(files.authorities)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.errno else None
        raise SecurityError(
            f"the TLS certificates cannot be read: {files.authorities_key} is not a PEM file of "
            f"certificates ({reason or 'no certificate in it'})",
            files.authorities_key,
        ) from None
    if files.certificate is not None:
        _load_certificate(context, files, files.certificate)
    context.check_hostname = files.check_host_name
    if not files.verify:
        context.verify_mode = ssl.CERT_NONE
    if files.versions is not None:
        context.minimum_version, context.maximum_version = files.versions
    if files.ciphers:
        try:
            context.set_ciphers(files.ciphers)
        except ssl.SSLError:
            raise SecurityError(
                "ssl.cipher.suites has no suite that OpenSSL knows", "ssl.cipher.suites"
            ) from None


def _load_certificate(context: ssl.SSLContext, files: TlsFiles, certificate: str) -> None:
    try:
        # Without a password the library would prompt at the terminal: an empty one makes it fail.
        context.load_cert_chain(certificate, files.key, password=files.key_password or "")
    except (OSError, ssl.SSLError, ValueError) as error:
        reason, key = _why_not(files, certificate, error)
        raise SecurityError(f"the client certificate cannot be used: {reason}", key) from None


def _why_not(files: TlsFiles, certificate: str, error: Exception) -> tuple[str, str]:
    """The defect of a certificate or its key, which OpenSSL often only calls ``PEM lib``, and the
    property to correct."""
    at = files.certificate_key
    texts = [_text_of(Path(path)) for path in (certificate, files.key or certificate)]
    if (text := next((text for text in texts if text.startswith("!")), None)) is not None:
        return f"{at}: {text[1:]}", at
    certificates, keys = texts
    if "-----BEGIN CERTIFICATE" not in certificates:
        return f"{at} has no certificate in PEM", at
    if "PRIVATE KEY-----" not in keys:
        return f"{at} has no private key in PEM with it: set ssl.key.location", at
    if "ENCRYPTED" in keys:
        if files.key_password:
            return f"ssl.key.password does not open the key of {at}", "ssl.key.password"
        return f"the key of {at} is encrypted: set ssl.key.password", at
    if "KEY_VALUES_MISMATCH" in str(getattr(error, "reason", "")):
        return f"the key of {at} belongs to another certificate", at
    return f"{at}: {getattr(error, 'reason', None) or error}", at


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("latin-1")
    except OSError as error:
        return f"!{path} cannot be read ({error.strerror})"


def _authorities(properties: Mapping[str, str]) -> tuple[str, str | None]:
    """The property that names the trusted certificates, and their file."""
    if path := properties.get("ssl.ca.location"):
        return "ssl.ca.location", path
    for key in ("ssl.ca.pem", "ssl.truststore.certificates"):
        if text := properties.get(key):
            return key, held_file(pem_blocks(text, "CERTIFICATE", key))
    key = "ssl.truststore.location"
    if not (path := properties.get(key)):
        return "", None
    store = _store(properties, "truststore", path, None)
    if store is None:
        return key, path
    if not store.trusted:
        raise SecurityError(
            f"{key}={path} has no trusted certificate, or ssl.truststore.password is missing", key
        )
    return key, held_file(store.trusted)


def _client_certificate(
    properties: Mapping[str, str],
) -> tuple[str, str | None, str | None, str | None]:
    """The property that names the client's certificate, its file, that of its key, and the key's
    password."""
    password = properties.get("ssl.key.password")
    if path := properties.get("ssl.certificate.location"):
        return "ssl.certificate.location", path, _key_file(properties), password
    for key, key_of_key in (
        ("ssl.certificate.pem", "ssl.key.pem"),
        ("ssl.keystore.certificate.chain", "ssl.keystore.key"),
    ):
        if not (text := properties.get(key)):
            continue
        chain = held_file(pem_blocks(text, "CERTIFICATE", key))
        if key_text := properties.get(key_of_key):
            return key, chain, held_file(pem_blocks(key_text, "PRIVATE KEY", key_of_key)), password
        if (file := _key_file(properties)) is None:
            raise SecurityError(f"{key} needs its key: set {key_of_key}", key)
        return key, chain, file, password
    key = "ssl.keystore.location"
    if not (path := properties.get(key)):
        return "", None, None, None
    store = _store(properties, "keystore", path, password)
    if store is None:
        return key, path, _key_file(properties), password
    if not store.key:
        raise SecurityError(f"{key}={path} has no private key", key)
    return key, held_file(store.chain), held_file(store.key), None


def _key_file(properties: Mapping[str, str]) -> str | None:
    path = properties.get("ssl.key.location")
    if path is not None and not Path(path).is_file():
        raise SecurityError(f"ssl.key.location={path} is not a file", "ssl.key.location")
    return path


def _store(
    properties: Mapping[str, str], name: str, path: str, key_password: str | None
) -> KeyStoreContent | None:
    """The content of a Java store; None: the file is PEM."""
    key = f"ssl.{name}.location"
    kind = properties.get(f"ssl.{name}.type", "JKS").strip().upper()
    if kind not in _STORE_TYPES:
        raise SecurityError(
            f"ssl.{name}.type={kind} is not supported: use one of {', '.join(_STORE_TYPES)}",
            f"ssl.{name}.type",
        )
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_STORE_BYTES + 1)
    except OSError as error:
        raise SecurityError(f"{key}={path} cannot be read: {error.strerror}", key) from None
    if len(content) > MAX_STORE_BYTES:
        raise SecurityError(f"{key}={path} is no {kind} store: it is too large", key)
    if b"-----BEGIN " in content:
        return None
    password = properties.get(f"ssl.{name}.password")
    try:
        return key_stores.read_store(content, password, key_password)
    except KeyStoreError as error:
        if kind == "PEM":
            raise SecurityError(f"{key}={path} has no PEM in it", key) from None
        fault = f"ssl.{name}.password" if password is not None else key
        raise SecurityError(
            f"{key}={path}: {error}: check ssl.{name}.password and ssl.{name}.type", fault
        ) from None


def _versions(text: str) -> tuple[ssl.TLSVersion, ssl.TLSVersion] | None:
    """The lowest and the highest of ``ssl.enabled.protocols``; None: the default."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return None
    if unknown := [name for name in names if name.upper() not in _VERSIONS]:
        raise SecurityError(
            f"ssl.enabled.protocols has {unknown[0]}, which is not supported: use TLSv1.2 and "
            "TLSv1.3",
            "ssl.enabled.protocols",
        )
    versions = sorted(_VERSIONS[name.upper()] for name in names)
    return versions[0], versions[-1]


def openssl_ciphers(text: str) -> str:
    """``ssl.cipher.suites`` in OpenSSL's names; those of TLS 1.3 need none and are always on.

    ``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`` is ``ECDHE-RSA-AES128-GCM-SHA256``.
    """
    names = [part for name in re.split(r"[,:\s]+", text) if (part := name.strip())]
    return ":".join(_openssl_cipher(name) for name in names if "_WITH_" in name or "-" in name)


def _openssl_cipher(name: str) -> str:
    if "_WITH_" not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(\d+)_(CBC_)?", r"AES\1_", cipher)
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    prefix = "" if exchange == "RSA" else f"{exchange}_"
    return f"{prefix}{cipher}".replace("_", "-")
