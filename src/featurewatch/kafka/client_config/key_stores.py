"""Java's key stores: JKS, and PKCS12, which ``keytool`` writes by default since Java 9.

Java itself looks at the content and not at the configured type (``keystore.type.compat``), and so
does `read_store`. A JKS file is that of ``sun.security.provider.JavaKeyStore``: entries with
certificates in DER, keys under ``sun.security.provider.KeyProtector``, and a SHA-1 at the end. A
store is the operator's own file; nevertheless nothing but `KeyStoreError` is raised on any content.
"""

import base64
import hashlib
import hmac
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
PKCS12_TAG: Final = b"\x30"

_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
_PROTECTOR: Final = bytes.fromhex("2b060104012a02110101")
"""1.3.6.1.4.1.42.2.17.1.1: how JKS protects a key."""
_LINE: Final = 64


class KeyStoreError(ValueError):
    """A store cannot be read; the text has no name of the file, and no secret."""


class KeyStoreContent(NamedTuple):
    """The content of a store, as PEM: ``trusted`` certificates, and a key with its ``chain``.

    ``chain`` begins with the key's own certificate; both are empty where the store has no key.
    """

    trusted: str
    chain: str = ""
    key: str = ""


def pem(label: str, der: bytes) -> str:
    """A PEM block."""
    text = base64.b64encode(der).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def read_store(content: bytes, password: str | None, key_password: str | None) -> KeyStoreContent:
    """The first key of a store, and its trusted certificates.

    ``password`` None: the store's checksum is not verified, which Java allows for trust stores.
    ``key_password`` None: that of the store. Raises `KeyStoreError`.
    """
    if content.startswith(JKS_MAGIC):
        return _read_jks(content, password, key_password if key_password is not None else password)
    if content.startswith(PKCS12_TAG):
        return _read_pkcs12(content, password)
    raise KeyStoreError("it is neither a JKS nor a PKCS12 store")


def _read_pkcs12(content: bytes, password: str | None) -> KeyStoreContent:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        store = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError:
        raise KeyStoreError("the password does not open it, or it is not a PKCS12 store") from None
    others = [entry.certificate for entry in store.additional_certs]
    if store.key is None or store.cert is None:
        return KeyStoreContent("".join(cert.public_bytes(Encoding.PEM).decode() for cert in others))
    chain = [store.cert.certificate]
    while issuer := next(
        (c for c in others if c.subject == chain[-1].issuer and c not in chain), None
    ):
        chain.append(issuer)
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain_pem = "".join(cert.public_bytes(Encoding.PEM).decode() for cert in chain)
    trusted = "".join(cert.public_bytes(Encoding.PEM).decode() for cert in others)
    return KeyStoreContent(trusted, chain_pem, key.decode())


def _read_jks(content: bytes, password: str | None, key_password: str | None) -> KeyStoreContent:
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if password is not None:
        computed = hashlib.sha1(_utf16(password) + _WHITENER + body, usedforsecurity=False)
        if not hmac.compare_digest(computed.digest(), digest):
            raise KeyStoreError("the password does not open it, or it is damaged")
    trusted: list[str] = []
    chain, key = "", ""
    try:
        for protected, certificates in _jks_entries(body):
            blocks = [pem("CERTIFICATE", der) for der in certificates]
            if protected is None:
                trusted += blocks
            elif not key:
                chain, key = (
                    "".join(blocks),
                    pem("PRIVATE KEY", _unprotect(protected, key_password)),
                )
    except (struct.error, IndexError, UnicodeDecodeError):
        raise KeyStoreError("it is damaged: it ends within an entry") from None
    return KeyStoreContent("".join(trusted), chain, key)


def _jks_entries(body: bytes) -> Iterator[tuple[bytes | None, list[bytes]]]:
    """Each entry: its protected key (None: it is a trusted certificate), and its certificates."""
    version, count = struct.unpack_from(">II", body, 4)
    at = 12

    def take(length_format: str) -> bytes:
        nonlocal at
        (length,) = struct.unpack_from(length_format, body, at)
        begin = at + struct.calcsize(length_format)
        if begin + length > len(body):
            raise IndexError
        at = begin + length
        return body[begin:at]

    def certificate() -> bytes:
        if version > 1:
            take(">H")  # its type, which is X.509
        return take(">I")

    for _ in range(count):
        (tag,) = struct.unpack_from(">I", body, at)
        at += 4
        take(">H")  # the alias
        at += 8  # the date
        if tag == 1:
            protected = take(">I")
            (length,) = struct.unpack_from(">I", body, at)
            at += 4
            yield protected, [certificate() for _ in range(length)]
        elif tag == 2:
            yield None, [certificate()]
        else:
            raise KeyStoreError(f"it has an entry of the unknown kind {tag}")


def _unprotect(protected: bytes, password: str | None) -> bytes:
    """The key in PKCS #8: Sun's protection is a stream of SHA-1 over password and salt."""
    if password is None:
        raise KeyStoreError("it has a key, which needs a password")
    info, _ = _der(protected, 0)
    algorithm, at = _der(info, 0)
    data, _ = _der(info, at)
    if _PROTECTOR not in algorithm:
        raise KeyStoreError("its key is protected in a way that only Java knows")
    secret = _utf16(password)
    block, encrypted = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:-_DIGEST_BYTES]
    plain = bytearray()
    while len(plain) < len(encrypted):
        block = hashlib.sha1(secret + block, usedforsecurity=False).digest()
        part = encrypted[len(plain) : len(plain) + _DIGEST_BYTES]
        plain += bytes(a ^ b for a, b in zip(part, block, strict=False))
    check = hashlib.sha1(secret + bytes(plain), usedforsecurity=False).digest()
    if not hmac.compare_digest(check, data[-_DIGEST_BYTES:]):
        raise KeyStoreError("the password does not open its key")
    return bytes(plain)


def _der(data: bytes, at: int) -> tuple[bytes, int]:
    """The content of the DER element at a place, and the place after it."""
    length, begin = data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, begin = int.from_bytes(data[begin : begin + size]), begin + size
    if begin + length > len(data):
        raise IndexError
    return data[begin : begin + length], begin + length


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
