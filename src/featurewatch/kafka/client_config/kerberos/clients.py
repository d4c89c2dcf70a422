"""Kerberos as each client library takes it: librdkafka, and Java's in Spark."""

import shlex
from collections.abc import Mapping
from typing import Any, Final

from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.jaas import JAAS_KEY, jaas_text
from featurewatch.kafka.client_config.kerberos.properties import (
    KERBEROS_MODULE,
    KINIT_KEY,
    PERIOD_KEY,
    QOP_KEY,
    SERVICE_KEY,
    is_librdkafka_template,
)
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin

_JAVA_KEYS: Final = (
    PERIOD_KEY,
    QOP_KEY,
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
)


def librdkafka_login(login: KerberosLogin, properties: Mapping[str, str]) -> dict[str, Any]:
    """The properties of a librdkafka client. Raises `SecurityError`.

    librdkafka has GSSAPI only where it was built with Cyrus SASL; others refuse to create a client.
    Its tickets are those of the process' default cache, which ``kinit`` fills from the keytab.
    """
    if "auth" not in login.qops:
        raise SecurityError(
            f"{QOP_KEY}: librdkafka agrees on auth alone: add that, and use SASL_SSL to encrypt",
            QOP_KEY,
        )
    result: dict[str, Any] = {"sasl.kerberos.service.name": login.service}
    if login.keytab is None:
        if login.cache:
            raise SecurityError(
                f"{JAAS_KEY}: librdkafka reads the default ticket cache: leave ticketCache out, "
                "and set KRB5CCNAME",
                JAAS_KEY,
            )
        # Without a keytab there is nothing that kinit could renew by.
        return result | {PERIOD_KEY: 0}
    result |= {"sasl.kerberos.principal": login.principal, "sasl.kerberos.keytab": login.keytab}
    command = properties.get(KINIT_KEY, "").strip()
    if is_librdkafka_template(command):
        result[KINIT_KEY] = command
    else:
        kinit = shlex.quote(login.kinit)
        result[KINIT_KEY] = (
            f'{kinit} -t "%{{sasl.kerberos.keytab}}" -k %{{sasl.kerberos.principal}}'
        )
    # librdkafka renews by this clock alone: a ticket that lives less long would end meanwhile.
    result[PERIOD_KEY] = max(1000, round(login.renewal.min_period_s * 1000))
    return result


def java_login(login: KerberosLogin, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a Java client, which gets tickets itself: each machine that reads needs the
    keytab or the cache."""
    options = {"serviceName": login.service}
    if login.principal:
        options["principal"] = login.principal
    if login.keytab is not None:
        options |= {"useKeyTab": "true", "storeKey": "true", "keyTab": login.keytab}
    if login.cache is not None:
        options["useTicketCache"] = "true"
        if login.cache:
            options["ticketCache"] = login.cache
    result = {
        "sasl.mechanism": login.mechanism,
        JAAS_KEY: jaas_text(KERBEROS_MODULE, options),
        SERVICE_KEY: login.service,
        KINIT_KEY: login.kinit,
    }
    return result | {name: properties[name] for name in _JAVA_KEYS if name in properties}
