"""The GSSAPI login in client properties, as Kafka and librdkafka name them.

The sources are ``SaslConfigs`` and ``KerberosLogin`` of Kafka 4.3, ``Krb5LoginModule`` of the JDK
and librdkafka's CONFIGURATION.md.
"""

from collections.abc import Mapping
from typing import Final

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.jaas import JAAS_KEY, mechanism_entry
from featurewatch.kafka.client_config.kerberos.settings import (
    DEFAULT_KINIT,
    DEFAULT_RENEWAL,
    QOPS,
    KerberosLogin,
    RenewalRule,
)
from featurewatch.kafka.client_config.network import decimal_property, integer_property

KERBEROS_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
SERVICE_KEY: Final = "sasl.kerberos.service.name"
PRINCIPAL_KEY: Final = "sasl.kerberos.principal"
KEYTAB_KEY: Final = "sasl.kerberos.keytab"
KINIT_KEY: Final = "sasl.kerberos.kinit.cmd"
PERIOD_KEY: Final = "sasl.kerberos.min.time.before.relogin"
QOP_KEY: Final = "javax.security.sasl.qop"
"""No name of Kafka's, but its clients and brokers pass all their properties to Java's SASL."""

_FACTOR_KEY: Final = "sasl.kerberos.ticket.renew.window.factor"
_JITTER_KEY: Final = "sasl.kerberos.ticket.renew.jitter"
_EXAMPLE: Final = (
    f'{KERBEROS_MODULE} required useKeyTab=true keyTab="/path" principal="name@REALM";'
)
_USED: Final = ("keyTab", "principal", "serviceName", "ticketCache", "useKeyTab", "useTicketCache")
_WITHOUT_EFFECT: Final = ("debug", "doNotPrompt", "refreshKrb5Config", "renewTGT", "storeKey")
"""Options that change neither who logs in nor how: nobody is asked for a password, krb5.conf is
read again each time, tickets in a cache are renewed in any case, and keys are for servers."""

_FIXED: Final = {
    "clearPass": "false",
    "isInitiator": "true",
    "storePass": "false",
    "tryFirstPass": "false",
    "useFirstPass": "false",
}
"""Options of which one value is supported: the others take passwords of other login modules, or
wait for clients."""


def kerberos_login(
    properties: Mapping[str, str], default_service: str | None = None
) -> KerberosLogin:
    """The login of a ``sasl.mechanism=GSSAPI``.

    ``default_service`` is used where no property names the service.

    Raises:
        SecurityError: Something is missing, or not supported.
    """
    options = mechanism_entry(properties, "GSSAPI", KERBEROS_MODULE, _EXAMPLE).options
    _check_options(options)
    use_keytab = _is_true(options, "useKeyTab") or KEYTAB_KEY in properties
    use_cache = _is_true(options, "useTicketCache")
    _check_paired(options, use_keytab=use_keytab, use_cache=use_cache)
    keytab = (properties.get(KEYTAB_KEY) or options.get("keyTab", "")).strip()
    principal = (properties.get(PRINCIPAL_KEY) or options.get("principal", "")).strip()
    if not (use_keytab or use_cache):
        raise SecurityError(
            "GSSAPI needs a keytab or a ticket cache: set sasl.jaas.config to "
            f"{_EXAMPLE[:-1]}, or with useTicketCache=true",
            JAAS_KEY if JAAS_KEY in properties else "sasl.mechanism",
        )
    if use_keytab and not (keytab and principal):
        raise SecurityError(
            f"a keytab needs its path and the principal whose key is in it: write {_EXAMPLE}",
            JAAS_KEY if JAAS_KEY in properties else KEYTAB_KEY,
        )
    return KerberosLogin(
        _service(properties, options, default_service),
        principal,
        keytab.removeprefix("file://").removeprefix("FILE:") if use_keytab else None,
        options.get("ticketCache", "").strip() if use_cache else None,
        _qops(properties),
        _renewal(properties),
        _kinit(properties),
    )


def _check_options(options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if name in _USED or name in _WITHOUT_EFFECT:
            continue
        if name not in _FIXED:
            raise SecurityError(
                f"{JAAS_KEY}: the option {name} is not supported with GSSAPI: it has "
                f"{', '.join(_USED)}",
                JAAS_KEY,
            )
        if value.lower() != _FIXED[name]:
            raise SecurityError(
                f"{JAAS_KEY}: {name}={value:.20} is not supported: leave it out", JAAS_KEY
            )


def _check_paired(options: Mapping[str, str], *, use_keytab: bool, use_cache: bool) -> None:
    """Refuses an option that has no effect without another, as Krb5LoginModule does not."""
    for name, other, is_used in (
        ("keyTab", "useKeyTab", use_keytab),
        ("ticketCache", "useTicketCache", use_cache),
    ):
        if options.get(name) and not is_used:
            raise SecurityError(
                f"{JAAS_KEY}: {name} has no effect without {other}=true: add that", JAAS_KEY
            )


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").strip().lower() == "true"


def _service(properties: Mapping[str, str], options: Mapping[str, str], default: str | None) -> str:
    given = properties.get(SERVICE_KEY, "").strip()
    in_entry = options.get("serviceName", "").strip()
    if given and in_entry and given != in_entry:
        raise SecurityError(
            f"{SERVICE_KEY}={given:.40} and serviceName={in_entry:.40} in {JAAS_KEY} differ: "
            "leave one out",
            SERVICE_KEY,
        )
    service = given or in_entry or default
    if not service:
        raise SecurityError(
            f"GSSAPI needs {SERVICE_KEY}: the first part of the brokers' principal, mostly kafka",
            JAAS_KEY if JAAS_KEY in properties else "sasl.mechanism",
        )
    if not service.isprintable() or set("/@ ") & set(service):
        raise SecurityError(
            f"{SERVICE_KEY}={quoted(service):.60} is not the first part of a principal: of "
            "kafka/host@REALM it is kafka",
            SERVICE_KEY,
        )
    return service


def _qops(properties: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(part.strip() for part in properties.get(QOP_KEY, "auth").split(","))
    for name in names:
        if name not in QOPS:
            raise SecurityError(
                f"{QOP_KEY}={quoted(name):.40} is unknown: use {', '.join(QOPS)}", QOP_KEY
            )
    return names


def _renewal(properties: Mapping[str, str]) -> RenewalRule:
    """The ranges are those of ``SaslConfigs``, where the values have any."""
    period_ms = integer_property(properties, PERIOD_KEY, 0, "a number of milliseconds")
    default = DEFAULT_RENEWAL
    return RenewalRule(
        decimal_property(properties, _FACTOR_KEY, default.window_factor, (0, 1)),
        decimal_property(properties, _JITTER_KEY, default.jitter, (0, 1)),
        default.min_period_s if period_ms is None else period_ms / 1000,
    )


def _kinit(properties: Mapping[str, str]) -> str:
    """The program; librdkafka's property of this name is a template for a shell instead."""
    command = properties.get(KINIT_KEY, "").strip()
    return DEFAULT_KINIT if not command or is_librdkafka_template(command) else command


def is_librdkafka_template(command: str) -> bool:
    """Whether a command to renew tickets is librdkafka's, with properties in it."""
    return "%{" in command
