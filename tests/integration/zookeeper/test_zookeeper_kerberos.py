"""The ZooKeeper source with Kerberos tickets, against a real server and a real KDC."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.security import make_acl

from featurewatch.kafka.client_config.kerberos.ticket_source import ticket_source
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from featurewatch.streams.events import SourceState
from featurewatch.streams.zookeeper.settings import ZookeeperLogin
from tests.integration.zookeeper.support import chroot, register, watching, writer
from tests.kerberos import (
    CLIENT,
    REALM,
    ZOOKEEPER,
    Kdc,
    client_properties,
    java_entry,
    require_java,
    running_kdc,
)

pytestmark = pytest.mark.stack

QUICK = {"session_timeout_ms": 4000, "heartbeat_ms": 500}
LIFETIME_S = 3


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC whose tickets for the client end soon."""
    with running_kdc(tmp_path_factory.mktemp("kdc")) as running_one:
        running_one.administer(f'modprinc -maxlife "{LIFETIME_S} seconds" {CLIENT}')
        yield running_one


@pytest.fixture(autouse=True)
def _client(kdc: Kdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process is a client of the realm, without a ticket of before."""
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'cache'}")
    ticket_source.cache_clear()


def login(kdc: Kdc, service: str = "zookeeper") -> ZookeeperLogin:
    """The login of a properties file."""
    properties = client_properties(kdc, **{"sasl.kerberos.service.name": service})
    return ZookeeperLogin.from_properties(properties)


async def test_znodes_are_followed_over_an_outage_of_the_kdc(make_ensemble, kdc: Kdc) -> None:
    """What only the principal may read is read; without a ticket a line says why."""
    require_java()
    servers = make_ensemble(
        EnsembleSpec(
            properties={
                "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                "sessionRequireClientSASLAuth": "true",
            },
            java_options=(f"-Djava.security.krb5.conf={kdc.config}",),
            jaas=f"Server {{\n  {java_entry(kdc.keytab(ZOOKEEPER), ZOOKEEPER)};\n}};\n",
        )
    )
    from featurewatch.streams.zookeeper import kerberos

    root, right = chroot(), login(kdc)
    options = {
        "mechanism": kerberos.NAME,
        "service": "zookeeper",
        "tickets": right.tickets,
        "timeout_s": 10,
        "on_failure": print,
    }
    with writer(servers.connect_string, sasl_options=options) as zk:
        register(zk, root)
        zk.set_acls(f"{root}/feature", [make_acl("sasl", f"{CLIENT}@{REALM}", all=True)])
        async with watching(servers.connect_string + root, login=right, **QUICK) as watched:
            await watched.following()
            assert watched.sink.levels() == {"group": 1}
            await asyncio.sleep(2 * LIFETIME_S)
            assert watched.source.report().state is SourceState.FOLLOWING
        kdc.stop()
        try:
            async with watching(
                servers.connect_string + root, login=login(kdc), **QUICK
            ) as watched:
                line = await watched.stalled("no Kerberos ticket")
                assert "is a KDC up" in line
                kdc.start()
                await watched.following()
        finally:
            kdc.stop()
            kdc.start()
        async with watching(
            servers.connect_string + root, login=login(kdc, "kafka"), **QUICK
        ) as watched:
            line = await watched.stalled("refused")
            assert "kafka/…" in line
