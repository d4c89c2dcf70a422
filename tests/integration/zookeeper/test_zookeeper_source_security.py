"""The ZooKeeper source over TLS and with a login, right and wrong ones."""

import ssl

import pytest
from kazoo.security import make_acl

from featurewatch.stack.zookeeper.specs import EnsembleSpec
from featurewatch.streams.zookeeper.settings import ZookeeperLogin
from tests.integration.zookeeper.support import chroot, register, watching, writer
from tests.stack.logins import digest_spec

pytestmark = pytest.mark.stack

QUICK = {"session_timeout_ms": 4000, "heartbeat_ms": 500}


def tls(certificates, **others) -> ZookeeperLogin:
    """A login by the properties that the other sources take."""
    properties = {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}
    return ZookeeperLogin.from_properties(properties | others)


def sasl(password: str) -> ZookeeperLogin:
    """A login with a password."""
    return ZookeeperLogin.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "DIGEST-MD5",
            "sasl.username": "watcher",
            "sasl.password": password,
        }
    )


async def test_tls_with_a_client_certificate(make_ensemble, certificates):
    """Server and client show certificates of one authority."""
    servers = make_ensemble(EnsembleSpec(tls=certificates.tls(clients=True)))
    root = chroot()
    with writer(servers.connect_string) as zk:
        register(zk, root)
        login = tls(certificates, **{"ssl.certificate.location": str(certificates.client)})
        hosts = servers.secure_connect_string + root
        async with watching(hosts, login=login, **QUICK) as watched:
            await watched.following()
            zk.delete(f"{root}/brokers/ids/0")
            await watched.holds(zk, root, "/brokers/ids/0")
        async with watching(hosts, login=tls(certificates), **QUICK) as watched:
            assert "refuses our certificate" in await watched.stalled(servers.secure_connect_string)


async def test_tls_that_cannot_be_trusted(make_ensemble, certificates):
    """An authority that is not ours, a name that is not the server's, a port without TLS."""
    servers = make_ensemble(EnsembleSpec(tls=certificates.tls()))
    hosts = servers.secure_connect_string
    strange = ZookeeperLogin(ssl.create_default_context())
    async with watching(hosts, login=strange, **QUICK) as watched:
        assert "is not trusted" in await watched.stalled("certificate")
    named = hosts.replace("127.0.0.1", "localhost")
    async with watching(named, login=tls(certificates), **QUICK) as watched:
        assert "is for another host" in await watched.stalled("localhost")
    async with watching(servers.connect_string, login=tls(certificates), **QUICK) as watched:
        assert "is it a TLS listener" in await watched.stalled(servers.connect_string)


async def test_a_login_by_digest(make_ensemble):
    """With the password what is the login's own is read; a wrong one is said to be wrong."""
    servers = make_ensemble(digest_spec({"watcher": "secret"}))
    root = chroot()
    options = {"mechanism": "DIGEST-MD5", "username": "watcher", "password": "secret"}
    with writer(servers.connect_string, sasl_options=options) as zk:
        register(zk, root)
        zk.set_acls(f"{root}/feature", [make_acl("sasl", "watcher", all=True)])
        async with watching(
            servers.connect_string + root, login=sasl("secret"), **QUICK
        ) as watched:
            await watched.following()
            assert watched.sink.levels() == {"group": 1}
        async with watching(servers.connect_string + root, login=sasl("wrong"), **QUICK) as watched:
            line = await watched.stalled("a login, or not this one")
            assert "secret" not in line
            assert "wrong" not in line


async def test_servers_that_want_a_login(make_ensemble):
    """Without one the line says so."""
    servers = make_ensemble(digest_spec({"watcher": "secret"}))
    async with watching(servers.connect_string, **QUICK) as watched:
        assert "login" in await watched.stalled(servers.connect_string)
