"""The properties of GSSAPI: Kafka's and librdkafka's names, and what is refused."""

from typing import Any

import pytest

from featurewatch.kafka.client_config.clients import java_properties, librdkafka_properties
from featurewatch.kafka.client_config.errors import SecurityError
from featurewatch.kafka.client_config.kerberos import ticket_source
from featurewatch.kafka.client_config.kerberos.settings import KerberosLogin, RenewalRule
from featurewatch.kafka.client_config.keys import check_keys, check_zookeeper_keys
from featurewatch.kafka.client_config.login import login_of
from featurewatch.kafka.security import from_properties
from featurewatch.streams.zookeeper.settings import ZookeeperLogin

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
BASE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
KEYTAB = {
    **BASE,
    "sasl.kerberos.service.name": "kafka",
    "sasl.jaas.config": f"{MODULE} required useKeyTab=true storeKey=true doNotPrompt=true "
    'keyTab="/etc/fw.keytab" principal="fw@EXAMPLE.ORG";',
}


def entry(options: str) -> dict[str, str]:
    """The properties of an entry with these options."""
    return {**BASE, "sasl.jaas.config": f"{MODULE} required {options};"}


def login(properties: dict[str, str]) -> KerberosLogin:
    """The login, by way of the checks of a file."""
    check_keys(properties)
    result = login_of(properties)
    assert isinstance(result, KerberosLogin)
    return result


def test_the_entry_of_kafka_and_the_properties_of_librdkafka_are_one_login() -> None:
    """The service is a property or an option; defaults are Kafka's."""
    expected = KerberosLogin("kafka", "fw@EXAMPLE.ORG", "/etc/fw.keytab")
    of_librdkafka = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.keytab": "/etc/fw.keytab",
        "sasl.kerberos.principal": "fw@EXAMPLE.ORG",
        "sasl.kerberos.kinit.cmd": 'kinit -t "%{sasl.kerberos.keytab}" -k x',
    }
    by_option = entry(
        'useKeyTab=true keyTab="file:///etc/fw.keytab" principal="fw@EXAMPLE.ORG" serviceName=kafka'
    )
    for properties in (KEYTAB, of_librdkafka, by_option):
        assert login(properties) == expected
    assert expected.renewal == RenewalRule(0.8, 0.05, 60.0)
    assert expected.source == "the keytab /etc/fw.keytab"


def test_caches_renewal_and_quality_of_protection() -> None:
    """Every other property has its place in the login."""
    result = login(
        {
            **entry('useTicketCache=true ticketCache="/tmp/krb5cc_1" renewTGT=true'),
            "sasl.kerberos.service.name": "bus",
            "sasl.kerberos.kinit.cmd": "/opt/kinit",
            "sasl.kerberos.min.time.before.relogin": "5000",
            "sasl.kerberos.ticket.renew.window.factor": "0.5",
            "sasl.kerberos.ticket.renew.jitter": "0.1",
            "javax.security.sasl.qop": "auth-conf, auth-int,auth",
        }
    )
    assert result == KerberosLogin(
        "bus",
        cache="/tmp/krb5cc_1",
        qops=("auth-conf", "auth-int", "auth"),
        renewal=RenewalRule(0.5, 0.1, 5.0),
        kinit="/opt/kinit",
    )
    assert result.source == "the ticket cache /tmp/krb5cc_1"
    assert login({**entry("useTicketCache=true serviceName=kafka")}).cache == ""


@pytest.mark.parametrize(
    ("changes", "key", "line"),
    [
        ({"sasl.kerberos.service.name": ""}, "sasl.jaas.config", "GSSAPI needs sasl.kerberos.serv"),
        ({"sasl.kerberos.service.name": "kafka/h"}, "sasl.kerberos.service.name", "not the first"),
        (entry("storeKey=true serviceName=k"), "sasl.jaas.config", "needs a keytab or a ticket c"),
        (entry("useKeyTab=true principal=a"), "sasl.jaas.config", "needs its path and the princ"),
        (entry("useKeyTab=true keyTab=a"), "sasl.jaas.config", "needs its path and the princip"),
        (entry("useTicketCache=true keyTab=a"), "sasl.jaas.config", "keyTab has no effect without"),
        (entry("useTicketCache=true serviceName=o"), "sasl.kerberos.service.name", "differ"),
        (entry("useTicketCache=true tryFirstPass=true"), "sasl.jaas.config", "tryFirstPass=true"),
        (entry("useTicketCache=true isInitiator=false"), "sasl.jaas.config", "isInitiator=false"),
        (entry("useTicketCache=true useKeytab=/a"), "sasl.jaas.config", "option useKeytab is not"),
        (
            {"sasl.jaas.config": "com.ibm.security.auth.module.Krb5LoginModule required;"},
            "sasl.jaas.config",
            f"the module com.ibm.security.auth.module.Krb5LoginModule .* use {MODULE}",
        ),
        ({"javax.security.sasl.qop": "auth,x"}, "javax.security.sasl.qop", "qop=x is unknown"),
        ({"sasl.kerberos.ticket.renew.jitter": "2"}, "sasl.kerberos.ticket.renew.jitter", "0 to 1"),
        (
            {"sasl.kerberos.min.time.before.relogin": "-1"},
            "sasl.kerberos.min.time.before.relogin",
            "not a number of milliseconds",
        ),
    ],
)
def test_what_cannot_be_used_is_named(changes: dict[str, str], key: str, line: str) -> None:
    """With the property to correct; nothing is ignored."""
    with pytest.raises(SecurityError, match=line) as raised:
        login({**KEYTAB, **changes})
    assert raised.value.key == key


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {},
            {
                "sasl.kerberos.principal": "fw@EXAMPLE.ORG",
                "sasl.kerberos.keytab": "/etc/fw.keytab",
                "sasl.kerberos.kinit.cmd": '/usr/bin/kinit -t "%{sasl.kerberos.keytab}" -k '
                "%{sasl.kerberos.principal}",
                "sasl.kerberos.min.time.before.relogin": 60000,
            },
        ),
        (entry("useTicketCache=true"), {"sasl.kerberos.min.time.before.relogin": 0}),
    ],
)
def test_librdkafka_gets_its_own_properties(
    changes: dict[str, str], expected: dict[str, Any]
) -> None:
    """It runs kinit for the keytab, and nothing for a cache that something else renews."""
    result = librdkafka_properties({**KEYTAB, **changes})
    assert result == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        **expected,
    }


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (entry("useTicketCache=true ticketCache=/a"), "librdkafka reads the default ticket cache"),
        ({"javax.security.sasl.qop": "auth-int"}, "librdkafka agrees on auth alone"),
    ],
)
def test_what_librdkafka_has_not_is_named(changes: dict[str, str], line: str) -> None:
    """A cache with a name, and another protection."""
    with pytest.raises(SecurityError, match=line):
        librdkafka_properties({**KEYTAB, **changes})


def test_java_logs_in_by_the_same_entry() -> None:
    """With the properties that Java's clients have too."""
    result = java_properties({**KEYTAB, "sasl.kerberos.ticket.renew.jitter": "0.1"})
    assert result == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.kinit.cmd": "/usr/bin/kinit",
        "sasl.kerberos.ticket.renew.jitter": "0.1",
        "sasl.jaas.config": f'{MODULE} required serviceName="kafka" principal="fw@EXAMPLE.ORG" '
        'useKeyTab="true" storeKey="true" keyTab="/etc/fw.keytab";',
    }


def test_zookeeper_has_another_service() -> None:
    """It is zookeeper where no property names another."""
    pytest.importorskip("gssapi", reason="the extra kerberos is not installed")
    for changes, service in (({}, "zookeeper"), ({"sasl.kerberos.service.name": "zk"}, "zk")):
        properties = {**entry("useTicketCache=true"), **changes}
        check_zookeeper_keys(properties)
        tickets = ZookeeperLogin.from_properties(properties).tickets
        assert tickets is not None
        assert tickets.login.service == service


def test_a_missing_package_is_named_before_any_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra to install."""
    monkeypatch.setattr(ticket_source, "find_spec", lambda _: None)
    with pytest.raises(
        SecurityError, match=r"needs the package gssapi: install featurewatch\[kerb"
    ):
        from_properties(KEYTAB)
