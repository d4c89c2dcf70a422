"""TLS and SASL of a listener, from properties of Kafka's tools or of librdkafka."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from featurewatch.streams.net.sasl import Exchange

# ssl and the mechanisms are imported where a listener needs them: most commands meet none that
# does.

_JAAS_OPTION = r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\')'
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class SecurityError(ValueError):
    """A property that cannot be used: the message names it and says what to write instead."""


@dataclass(frozen=True, slots=True)
class Security:
    """TLS context (none: plaintext) and SASL login (no mechanism: none); passwords never print."""

    tls: "ssl.SSLContext | None" = field(default=None, repr=False)
    mechanism: str | None = None
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def exchange(self) -> "Exchange":
        """A new SASL exchange; call it only where there is a mechanism."""
        from featurewatch.streams.net import sasl

        if self.mechanism == "PLAIN":
            return sasl.plain(self.username, self.password)
        return sasl.scram(str(self.mechanism), self.username, self.password)


PLAINTEXT = Security()


def from_properties(properties: Mapping[str, str]) -> Security:
    """Reads ``security.protocol``, ``ssl.*`` and ``sasl.*``; raises `SecurityError`.

    Both spellings work where Kafka's tools and librdkafka differ (``sasl.mechanism`` and
    ``sasl.mechanisms``, ``ssl.truststore.location`` of type PEM and ``ssl.ca.location``,
    ``sasl.jaas.config`` and ``sasl.username``). Other properties are left alone.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise SecurityError(f"security.protocol={protocol} is unknown: use one of {_PROTOCOLS}")
    tls = _tls(properties) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return Security(tls)
    from featurewatch.streams.net import sasl

    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or ""
    if mechanism not in sasl.MECHANISMS:
        raise SecurityError(
            f"sasl.mechanism={mechanism or '(none)'} is not supported: use one of "
            + ", ".join(sasl.MECHANISMS)
        )
    jaas = _jaas(properties.get("sasl.jaas.config", ""))
    username = properties.get("sasl.username") or jaas.get("username", "")
    password = properties.get("sasl.password") or jaas.get("password", "")
    if not username:
        raise SecurityError("SASL needs sasl.username and sasl.password, or sasl.jaas.config")
    return Security(tls, mechanism, username, password)


def _jaas(text: str) -> dict[str, str]:
    options = re.findall(_JAAS_OPTION, text)
    return {key: re.sub(r"\\(.)", r"\1", double or single) for key, double, single in options}


def _tls(properties: Mapping[str, str]) -> "ssl.SSLContext":
    import ssl

    for store in ("truststore", "keystore"):
        kind = properties.get(f"ssl.{store}.type", "JKS").upper()
        if f"ssl.{store}.location" in properties and kind != "PEM":
            raise SecurityError(
                f"ssl.{store}.location is a {kind} store, which only Java reads: convert it to PEM "
                f"and set ssl.{store}.type=PEM"
            )
    ca_file = properties.get("ssl.ca.location") or properties.get("ssl.truststore.location")
    ca_text = properties.get("ssl.ca.pem") or properties.get("ssl.truststore.certificates")
    try:
        context = ssl.create_default_context(cafile=ca_file, cadata=ca_text)
        _client_certificate(context, properties)
    except (OSError, ssl.SSLError) as error:
        raise SecurityError(f"the TLS certificates cannot be read: {error}") from error
    check = properties.get("ssl.endpoint.identification.algorithm", "https").lower()
    context.check_hostname = check not in ("", "none")
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _client_certificate(context: "ssl.SSLContext", properties: Mapping[str, str]) -> None:
    keystore = properties.get("ssl.keystore.location")
    certificate = properties.get("ssl.certificate.location") or keystore
    if certificate is None:
        for inline in ("ssl.certificate.pem", "ssl.key.pem", "ssl.keystore.key"):
            if inline in properties:
                raise SecurityError(f"{inline} must be a file here: use ssl.certificate.location")
        return
    key = properties.get("ssl.key.location")
    if key is not None and not Path(key).is_file():
        raise SecurityError(f"ssl.key.location={key} is no file")
    password = properties.get("ssl.key.password")
    # Without a password the library would prompt at the terminal: an empty one makes it fail.
    context.load_cert_chain(certificate, key, password=password or "")
