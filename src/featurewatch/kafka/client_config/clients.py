"""Client properties as each client library takes them: librdkafka, and Java's in Spark."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin
from featurewatch.kafka.client_config.login import Login, login_of, protocol_of
from featurewatch.kafka.client_config.tls import TlsFiles, tls_files

if TYPE_CHECKING:
    from featurewatch.kafka.client_config.iam.settings import IamLogin
    from featurewatch.kafka.client_config.oauth.settings import OauthLogin

_PASSED_ON: Final = (
    "broker.address.family",
    "broker.address.ttl",
    "client.id",
    "debug",
    "log_level",
    "socket.keepalive.enable",
)
"""Properties that are passed to librdkafka unchanged. The guarantees of the bus depend on all other
tuning (timeouts, batches, groups and acknowledgements), which a file may therefore not change."""

_JAVA_STORES: Final = {
    "ssl.truststore.location": (
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    ),
    "ssl.truststore.certificates": ("ssl.truststore.certificates", "ssl.truststore.type"),
    "ssl.keystore.location": (
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.key.password",
    ),
    "ssl.keystore.certificate.chain": (
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.type",
        "ssl.key.password",
    ),
}
"""By the property that names certificates in Java's spelling: those that belong to it."""


_CERTIFICATE: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)


def librdkafka_properties(properties: Mapping[str, str], servers: str = "") -> dict[str, Any]:
    """The configuration of a librdkafka client; it contains secrets. Raises `SecurityError`.

    With OAUTHBEARER it has an ``oauth_cb``, which gives the tokens that all connections share. It
    logs in to MSK by OAUTHBEARER also where the properties say AWS_MSK_IAM, which librdkafka has
    not: the same listeners of brokers take both. ``servers`` may name the region of the cluster.
    With GSSAPI librdkafka gets tickets itself.
    """
    result: dict[str, Any] = {name: properties[name] for name in _PASSED_ON if name in properties}
    protocol = protocol_of(properties)
    if protocol != "PLAINTEXT":
        result["security.protocol"] = protocol
    if (login := bus_login(properties, servers)) is not None:
        result["sasl.mechanism"] = login.mechanism
        if isinstance(login, Login):
            result["sasl.username"], result["sasl.password"] = login.username, login.password
        elif isinstance(login, KerberosLogin):
            from featurewatch.kafka.client_config.kerberos import clients as kerberos

            result |= kerberos.librdkafka_login(login, properties)
        else:
            from featurewatch.kafka.client_config.oauth.clients import token_callback

            result["oauth_cb"] = token_callback(login)
    if protocol.endswith("SSL"):
        result |= _librdkafka_tls(tls_files(properties))
    return result


def bus_login(
    properties: Mapping[str, str], servers: str
) -> "Login | OauthLogin | KerberosLogin | None":
    """The login of clients that lack AWS_MSK_IAM: they take MSK's signed token instead.

    Raises `SecurityError`. ``servers`` may name the region of the cluster.
    """
    login = login_of(properties)
    if login is None or isinstance(login, Login | KerberosLogin):
        return login
    from featurewatch.kafka.client_config.iam.region import region_in
    from featurewatch.kafka.client_config.iam.settings import IamLogin, MskToken
    from featurewatch.kafka.client_config.oauth.settings import OauthLogin

    if isinstance(login, IamLogin):
        return OauthLogin(MskToken(login.settings, region_in(servers)))
    if isinstance(login.source, MskToken):
        return replace(login, source=replace(login.source, region=region_in(servers)))
    return login


def _librdkafka_tls(files: TlsFiles) -> dict[str, str | bool]:
    given = {
        "ssl.ca.location": files.authorities,
        "ssl.certificate.location": files.certificate,
        "ssl.key.location": (files.key or files.certificate) if files.certificate else None,
        "ssl.key.password": files.key_password,
        "ssl.cipher.suites": files.ciphers or None,
    }
    return {
        "ssl.endpoint.identification.algorithm": "https" if files.check_host_name else "none",
        "enable.ssl.certificate.verification": files.verify,
        **{name: value for name, value in given.items() if value is not None},
    }


def java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a Java client; it contains secrets. Raises `SecurityError`.

    Stores in Java's spelling are named as they are, so each machine that reads must have them;
    certificates in librdkafka's are part of the properties.
    """
    protocol = protocol_of(properties)
    result = {} if protocol == "PLAINTEXT" else {"security.protocol": protocol}
    login = login_of(properties)
    if isinstance(login, Login):
        result |= {"sasl.mechanism": login.mechanism, "sasl.jaas.config": login.jaas()}
    elif isinstance(login, KerberosLogin):
        from featurewatch.kafka.client_config.kerberos import clients as kerberos

        result |= kerberos.java_login(login, properties)
    elif login is not None:
        result |= _java_tokens(login, properties)
    if protocol.endswith("SSL"):
        result |= _java_tls(properties, tls_files(properties))
    return result


def _java_tokens(login: "OauthLogin | IamLogin", properties: Mapping[str, str]) -> dict[str, str]:
    """OAUTHBEARER; or AWS_MSK_IAM, by aws-msk-iam-auth, which has to be on the class path."""
    from featurewatch.kafka.client_config.iam.settings import IAM_HANDLER, IAM_MODULE, IamLogin

    if not isinstance(login, IamLogin):
        from featurewatch.kafka.client_config.oauth.clients import java_login

        return java_login(login, properties)
    return {
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": properties.get("sasl.jaas.config") or f"{IAM_MODULE} required;",
        "sasl.client.callback.handler.class": IAM_HANDLER,
    }


def _java_tls(properties: Mapping[str, str], files: TlsFiles) -> dict[str, str]:
    if not files.verify:
        key = "enable.ssl.certificate.verification"
        raise SecurityError(
            f"{key}=false cannot be used by the pipeline, as Java has no such setting: set "
            "ssl.ca.location to the authority of the bus",
            key,
        )
    check = "https" if files.check_host_name else ""
    result = {"ssl.endpoint.identification.algorithm": check}
    for name in ("ssl.enabled.protocols", "ssl.cipher.suites"):
        if value := properties.get(name):
            result[name] = value
    for store, origin, path in (
        ("truststore", files.authorities_key, files.authorities),
        ("keystore", files.certificate_key, files.certificate),
    ):
        if path is None:
            continue
        if origin in _JAVA_STORES and _reads_as_java(origin, path, properties):
            names = _JAVA_STORES[origin]
            result |= {name: properties[name] for name in names if name in properties}
            result.setdefault(f"ssl.{store}.type", "PEM" if "certificate" in origin else "JKS")
        elif store == "truststore":
            result |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": _certificates(path),
            }
        else:
            result |= _java_key(files)
    return result


def _reads_as_java(origin: str, path: str, properties: Mapping[str, str]) -> bool:
    """Whether Java itself reads what a property in its spelling names.

    It does not if the key of a PEM store is in a separate file, or if a PEM file has another type.
    """
    store = origin.split(".")[1]
    if store == "keystore" and "ssl.key.location" in properties:
        return False
    is_pem_file = properties[origin] == path
    return not is_pem_file or properties.get(f"ssl.{store}.type", "").strip().upper() == "PEM"


def _java_key(files: TlsFiles) -> dict[str, str]:
    """The client's certificate and key, which Java reads in PKCS #8 alone."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    password = files.key_password.encode() if files.key_password else None
    content = _text(files.key or str(files.certificate)).encode("latin-1")
    try:
        key = load_pem_private_key(content, password)
    except (TypeError, ValueError):
        raise SecurityError(
            f"the key of {files.certificate_key} cannot be read: check ssl.key.password",
            files.certificate_key,
        ) from None
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _certificates(str(files.certificate)),
        "ssl.keystore.key": text,
    }


def _certificates(path: str) -> str:
    """The certificates of a PEM file, without a key that it may contain."""
    return "\n".join(_CERTIFICATE.findall(_text(path)))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="latin-1")
    except OSError as error:
        raise SecurityError(f"{path} cannot be read: {error.strerror}") from None
