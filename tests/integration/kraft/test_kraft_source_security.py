"""The source against a controller that asks who we are: TLS no, SASL yes, and what we may."""

from collections.abc import Iterator

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.security import Security, from_properties
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.events import SourceState
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from tests.guarded import guarded_node
from tests.integration.kraft.support import LogSink, running, settings_for, until

pytestmark = [pytest.mark.stack, pytest.mark.releases("4.3.0")]

USERS = {"watch": "may-read", "guest": "may-not"}


@pytest.fixture(scope="module")
def guarded(
    release: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Address]]:
    """A cluster of one node whose controller has a listener with logins; and that listener."""
    directory = tmp_path_factory.mktemp("guarded") / "cluster"
    with guarded_node(directory, stack_cache, USERS, release, super_users=["watch"]) as node:
        yield node.cluster, Address.parse(node.controller)


def login(username: str, password: str) -> Security:
    """SASL PLAIN, as properties say it."""
    return from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": username,
            "sasl.password": password,
        }
    )


async def stalled_with(cluster: Cluster, listener: Address, security: Security) -> str:
    """The report of the source when it gets no further."""
    sink = LogSink()
    quorum = QuorumSettings(cluster.cluster_id, (listener,), security)
    async with running(settings_for(cluster, quorum=quorum), sink):
        await until(lambda: sink.statuses and sink.statuses[-1].state is SourceState.STALLED)
    assert sink.commits == []
    return sink.statuses[-1].detail


async def test_a_login_that_may_read_follows(guarded: tuple[Cluster, Address]) -> None:
    """With SASL PLAIN and the right to read, the log is followed like any other."""
    cluster, listener = guarded
    sink = LogSink()
    quorum = QuorumSettings(cluster.cluster_id, (listener,), login("watch", "may-read"))
    async with running(settings_for(cluster, quorum=quorum), sink):
        await until(sink.following)
    assert sink.commits


async def test_no_authorization_is_one_clear_line(guarded: tuple[Cluster, Address]) -> None:
    """A login without CLUSTER_ACTION: stalled, with what to grant or to do instead."""
    line = await stalled_with(*guarded, login("guest", "may-not"))
    assert "grant CLUSTER_ACTION on the cluster" in line
    assert "or watch by ApiVersions instead" in line


async def test_a_wrong_password_is_one_clear_line(guarded: tuple[Cluster, Address]) -> None:
    """A refused login: stalled, with what to check and without the password."""
    line = await stalled_with(*guarded, login("watch", "guessed"))
    assert "refused the SASL login" in line
    assert "check sasl.username and sasl.password" in line
    assert "guessed" not in line


async def test_a_missing_login_is_one_clear_line(guarded: tuple[Cluster, Address]) -> None:
    """A listener that wants a login closes on who has none: told to set security.protocol."""
    line = await stalled_with(*guarded, from_properties({}))
    assert "security.protocol" in line
