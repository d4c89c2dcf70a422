"""TLS of an HTTP port, and what the certificate of a client says."""

import ssl
from collections.abc import Mapping
from typing import Any

from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.http.web_config import ClientAuth, TlsConfig


def server_context(tls: TlsConfig) -> ssl.SSLContext:
    """The context of new connections; raises `WebConfigError` if a file cannot be used.

    A certificate is verified if one comes; that it must come holds for requests, since probes of
    ``/healthz`` have none.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = tls.min_version
    context.maximum_version = tls.max_version
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        # OpenSSL would ask for the password of a key at the terminal.
        context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
    except (OSError, ValueError) as error:
        raise WebConfigError(
            f"the certificate {tls.cert_file} with the key {tls.key_file} cannot be used "
            f"({_reason(error)}): both must be PEM, belong together, and the key unencrypted"
        ) from None
    if tls.client_auth is not ClientAuth.NONE:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(tls.client_ca_file)
        except (OSError, ValueError) as error:
            raise WebConfigError(
                f"the authority {tls.client_ca_file} cannot be used ({_reason(error)}): it must be "
                "certificates in PEM"
            ) from None
    return context


def is_client_allowed(tls: TlsConfig, certificate: Mapping[str, Any] | None, now_s: float) -> bool:
    """Whether a client may come in with its verified certificate, or without one (None).

    ``certificate`` is as `ssl.SSLSocket.getpeercert` returns it. It may have expired since it was
    verified: ``now_s`` are seconds since the Unix epoch.
    """
    if tls.client_auth is not ClientAuth.REQUIRED:
        return True
    if not certificate:
        return False
    if ssl.cert_time_to_seconds(str(certificate["notAfter"])) < now_s:
        return False
    names = {str(value) for _, value in certificate.get("subjectAltName", ())}
    return not tls.allowed_sans or not tls.allowed_sans.isdisjoint(names)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "no PEM"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
