"""The ZooKeeper source on real servers: what it says while they and the znodes come and go."""

import asyncio
import shutil

import pytest
from kazoo.security import make_acl, make_digest_acl

from featurewatch.stack.zookeeper.specs import EnsembleSpec
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.types import ClusterId, NodeId
from featurewatch.streams.znodes import PartitionStateZnode, UnreadableZnode
from featurewatch.streams.zookeeper.paths import WatchScope
from featurewatch.streams.zookeeper.watcher.requests import WatcherTiming
from tests.integration.zookeeper.support import (
    CLUSTER,
    broker,
    chroot,
    features,
    register,
    retrying,
    watching,
    writer,
)
from tests.zookeeper_sessions import expire

pytestmark = pytest.mark.stack

QUICK = {"session_timeout_ms": 4000, "heartbeat_ms": 500}


@pytest.mark.form("document")
async def test_everything_is_read_and_then_each_change(ensemble):
    """First a snapshot, then what changes: brokers, and the levels with ZooKeeper's own version
    (F-05, F-11)."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        async with watching(ensemble.connect_string + root) as watched:
            await watched.following()
            assert watched.sink.states == [SourceState.CATCHING_UP, SourceState.FOLLOWING]
            assert set(watched.sink.znodes) == {
                "/cluster/id",
                "/feature",
                *(f"/brokers/ids/{n}" for n in range(3)),
            }
            assert watched.sink.znodes["/feature"].version == 0
            zk.set(f"{root}/feature", features(2))
            zk.create(f"{root}/brokers/ids/7", broker(4), ephemeral=True)
            zk.delete(f"{root}/brokers/ids/1")
            zk.create(f"{root}/controller", b'{"version":1,"brokerid":7,"timestamp":"1"}')
            await watched.until(lambda: len(watched.sink.changes) == 4)
            await watched.holds(
                zk, root, "/feature", "/controller", "/brokers/ids/7", "/brokers/ids/1"
            )
            feature = watched.sink.znodes["/feature"]
            assert (feature.version, watched.sink.levels()) == (1, {"group": 2})
            assert watched.sink.znodes["/brokers/ids/7"].owner == zk.client_id[0]
            assert all(c.missed == 0 and not c.recreated for c in watched.sink.changes)


@pytest.mark.form("document")
async def test_a_burst_of_writes_is_reported_with_its_gaps(ensemble):
    """Skipped changes are counted: events and missed versions add up to every write (F-12)."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        async with watching(ensemble.connect_string + root) as watched:
            await watched.following()
            writes = [zk.set_async(f"{root}/feature", features(n + 1)) for n in range(300)]
            for write in writes:
                write.get()
            await watched.holds(zk, root, "/feature")
            changes = watched.sink.changes
            assert {change.path for change in changes} == {"/feature"}
            assert sum(1 + change.missed for change in changes) == 300
            versions = watched.sink.versions()
            assert versions == sorted(set(versions))
            assert versions[-1] == 300


async def test_an_expired_session_gives_a_snapshot(ensemble):
    """The servers drop the session; everything is read again, and no false change is reported."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        async with watching(ensemble.connect_string + root, **QUICK) as watched:
            await watched.following()
            before = watched.client.client_id
            await asyncio.to_thread(expire, ensemble.connect_string, before)
            zk.set(f"{root}/feature", features(2))
            zk.set(f"{root}/feature", features(3))
            await watched.until(lambda: len(watched.sink.snapshots) == 2)
            first, second = watched.sink.snapshots
            assert first.resync != second.resync
            assert f"session 0x{before[0] & (2**64 - 1):x} was lost" in second.reason
            await watched.holds(zk, root, "/feature")
            zk.set(f"{root}/feature", features(4))
            await watched.holds(zk, root, "/feature")
            assert 3 in watched.sink.versions()
            assert {change.path for change in watched.sink.changes} == {"/feature"}


@pytest.mark.form("document")
async def test_servers_that_are_killed_lose_nothing(make_ensemble):
    """The one it is on, the leader, the majority, all of them: after each the source continues
    where it was, and says what changed and nothing else (F-12)."""
    servers = make_ensemble(EnsembleSpec(3))
    root, level = chroot(), 1
    with writer(servers.connect_string) as zk:
        register(zk, root)
        async with watching(servers.connect_string + root, **QUICK) as watched:
            await watched.following()

            async def goes_on() -> None:
                nonlocal level
                level += 1
                await asyncio.to_thread(retrying, zk.set, f"{root}/feature", features(level))
                await watched.holds(zk, root, "/feature", "/brokers/ids/0", "/cluster/id")
                await watched.following()

            await goes_on()
            port = watched.client._connection._socket.getpeername()[1]
            own = next(s for s in servers.servers if s.ports.client == port)
            own.kill()
            await goes_on()
            await asyncio.to_thread(own.start)
            leader = servers.leader()
            leader.kill()
            await goes_on()
            await asyncio.to_thread(leader.start)
            for number in (1, 2):
                servers.server(number).kill()
            assert "cannot be used" in await watched.stalled(servers.servers[0].address)
            for number in (1, 2):
                servers.server(number).start(wait=False)
            await goes_on()
            servers.kill()
            await watched.stalled("nobody listens there")
            await asyncio.to_thread(servers.start)
            await goes_on()
            versions = watched.sink.versions()
            assert {change.path for change in watched.sink.changes} == {"/feature"}
            assert versions == sorted(set(versions))


async def test_a_znode_that_comes_and_goes_at_once(ensemble):
    """Brokers that end before they are read leave no false trace."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        async with watching(ensemble.connect_string + root) as watched:
            await watched.following()
            for number in range(100, 200):
                zk.create_async(f"{root}/brokers/ids/{number}", broker(1))
                zk.delete_async(f"{root}/brokers/ids/{number}")
            for _ in range(20):
                zk.delete_async(f"{root}/feature")
                zk.create_async(f"{root}/feature", features(5))
            zk.sync(root)
            await watched.holds(
                zk, root, "/feature", *(f"/brokers/ids/{n}" for n in (0, 1, 2, *range(100, 200)))
            )
            assert len(watched.sink.znodes) == 5
            assert watched.sink.znodes["/feature"].version == 0


async def test_a_znode_that_may_not_be_read(ensemble):
    """The line and a dead letter name the path and the right, and it is not taken for absent; the
    rest is followed; when it may be read again a snapshot says it."""
    root = chroot()
    secret = [make_digest_acl("admin", "secret", all=True)]
    with writer(ensemble.connect_string, auth_data=[("digest", "admin:secret")]) as zk:
        register(zk, root)
        zk.set_acls(f"{root}/feature", secret)
        pace = WatcherTiming(forbidden_retry_ms=500)
        async with watching(ensemble.connect_string + root, timing=pace) as watched:
            line = await watched.stalled("/feature")
            assert line == "reading /feature is forbidden: give READ on it to the login in use"
            assert isinstance(watched.sink.znodes["/feature"].content, UnreadableZnode)
            (dead_letter,) = watched.sink.dead_letters
            assert dead_letter.reason == line
            zk.set(f"{root}/brokers/ids/0", broker(9))
            await watched.holds(zk, root, "/brokers/ids/0")
            zk.set(f"{root}/feature", features(3))
            zk.set_acls(f"{root}/feature", [make_acl("world", "anyone", all=True)])
            await watched.following()
            await watched.holds(zk, root, "/feature")
            assert watched.sink.snapshots[-1].reason.startswith("/feature may be read now")
            assert watched.sink.levels() == {"group": 3}


async def test_brokers_that_may_not_be_listed(ensemble):
    """Without the list of brokers the source is stalled and says which right it needs."""
    root = chroot()
    with writer(ensemble.connect_string, auth_data=[("digest", "admin:secret")]) as zk:
        register(zk, root)
        zk.set_acls(f"{root}/brokers/ids", [make_digest_acl("admin", "secret", all=True)])
        async with watching(
            ensemble.connect_string + root, timing=WatcherTiming(forbidden_retry_ms=200), **QUICK
        ) as watched:
            line = await watched.stalled("/brokers/ids")
            assert line == "reading /brokers/ids is forbidden: give READ on it to the login in use"
            assert "/feature" in watched.sink.znodes
            zk.set_acls(f"{root}/brokers/ids", [make_acl("world", "anyone", all=True)])
            await watched.following()
            await watched.holds(zk, root, *(f"/brokers/ids/{n}" for n in range(3)))


async def test_a_chroot_that_does_not_exist_and_then_does(ensemble):
    """It is said what is wrong at each step; when the cluster registers it is followed."""
    root = chroot()
    async with watching(ensemble.connect_string + root, **QUICK) as watched:
        assert "the chroot does not exist" in await watched.stalled(root)
        with writer(ensemble.connect_string) as zk:
            register(zk, root)
        await watched.following()
        assert watched.source.cluster == CLUSTER


async def test_a_chroot_without_a_cluster(ensemble):
    """Nothing is registered there: the line says so."""
    async with watching(ensemble.connect_string, **QUICK) as watched:
        assert "no Kafka registered here yet" in await watched.stalled("/cluster/id is not there")
        assert watched.sink.events == []


async def test_another_cluster_than_the_configured_one(ensemble):
    """Nothing of it is published; the line names both, and the status carries it."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root, cluster="somebody-elses")
    async with watching(
        ensemble.connect_string + root, cluster=ClusterId(CLUSTER), **QUICK
    ) as watched:
        line = await watched.stalled("somebody-elses", CLUSTER)
        assert "check the addresses and the chroot" in line
        await watched.until(lambda: SourceState.STALLED in watched.sink.states)
        assert all(isinstance(event, SourceStatus) for event in watched.sink.events)


async def test_nobody_listens(ensemble):
    """A closed port and an unknown name are told apart, each in one line."""
    async with watching("127.0.0.1:1", **QUICK) as watched:
        assert "nobody listens there" in await watched.stalled("127.0.0.1:1")


async def test_a_bus_that_takes_nothing(ensemble):
    """While there is no room nothing is read; then the newest state comes, with what was missed."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        async with watching(ensemble.connect_string + root, heartbeat_ms=10**6) as watched:
            await watched.following()
            watched.sink.accepting.clear()
            for level in range(50):
                zk.set(f"{root}/feature", features(level + 1))
                zk.set(f"{root}/brokers/ids/1", broker(level + 1))
            read = watched.source.report().records_read
            assert read < 10
            watched.sink.accepting.set()
            await watched.holds(zk, root, "/feature", "/brokers/ids/1")
            assert sum(1 + c.missed for c in watched.sink.changes) == 100
            assert len(watched.sink.changes) <= 6


@pytest.mark.nightly
async def test_ten_thousand_brokers(ensemble):
    """They are read in one go, in chunks, and one change among them costs one event."""
    root = chroot()
    with writer(ensemble.connect_string) as zk:
        register(zk, root, brokers=10_000)
        async with watching(ensemble.connect_string + root) as watched:
            await watched.following()
            assert len(watched.sink.znodes) == 10_002
            sizes = [len(chunk.znodes) for chunk in watched.sink.snapshots]
            assert sizes == [500] * 20 + [2]
            zk.set(f"{root}/brokers/ids/9999", broker(2))
            await watched.holds(zk, root, "/brokers/ids/9999")
            assert len(watched.sink.changes) == 1


async def test_partitions_on_request(ensemble):
    """States of partitions are followed as topics come, change and go."""
    root = chroot()
    state = b'{"version":1,"leader":%d,"leader_epoch":1,"controller_epoch":1,"isr":[1]}'
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        zk.ensure_path(f"{root}/brokers/topics")
        wanted = WatchScope(partitions=True, tasks=True)
        async with watching(ensemble.connect_string + root, wanted=wanted) as watched:
            await watched.following()
            path = "/brokers/topics/orders/partitions/0/state"
            zk.create(root + path, state % 1, makepath=True)
            await watched.holds(zk, root, path)
            zk.set(root + path, state % 2)
            await watched.holds(zk, root, path)
            assert watched.sink.znodes[path].content == (
                PartitionStateZnode("orders", 0, NodeId(2), 1, 1, (NodeId(1),), False)
            )
            zk.create(f"{root}/admin/delete_topics/orders", makepath=True)
            zk.delete(f"{root}/brokers/topics/orders", recursive=True)
            await watched.holds(zk, root, path, "/admin/delete_topics/orders")
            assert "/admin/delete_topics/orders" in watched.sink.znodes


async def test_znodes_that_cannot_be_read(ensemble):
    """A mebibyte of nothing, broken JSON, an invalid id: a dead letter with the bytes each, and the
    rest is followed."""
    root = chroot()
    large = b"[" * 1_000_000
    with writer(ensemble.connect_string) as zk:
        register(zk, root)
        async with watching(ensemble.connect_string + root) as watched:
            await watched.following()
            zk.set(f"{root}/feature", large)
            zk.create(f"{root}/brokers/ids/7", b"{")
            zk.create(f"{root}/brokers/ids/x", broker(1))
            await watched.until(lambda: len(watched.sink.dead_letters) == 3)
            payloads = {letter.payload for letter in watched.sink.dead_letters}
            assert payloads == {large, b"{", broker(1)}
            zk.set(f"{root}/feature", features(2))
            await watched.holds(zk, root, "/feature", "/brokers/ids/7", "/brokers/ids/x")
            assert watched.sink.levels() == {"group": 2}
            assert watched.source.report().state is SourceState.FOLLOWING


async def test_servers_that_were_recreated(make_ensemble):
    """Their data is lost and they count from the beginning: all is read again, once it is certain
    that nobody knows more."""
    servers = make_ensemble()
    root, pace = chroot(), WatcherTiming(rebuilt_after_ms=500)
    settings = {"session_timeout_ms": 2000, "heartbeat_ms": 500, "timing": pace}
    with writer(servers.connect_string) as zk:
        register(zk, root, brokers=50)
    async with watching(servers.connect_string + root, **settings) as watched:
        await watched.following()
        assert "/brokers/ids/49" in watched.sink.znodes
        servers.kill()
        await asyncio.to_thread(shutil.rmtree, servers.server(1).directory / "data")
        await asyncio.to_thread(servers.start)
        with writer(servers.connect_string) as zk:
            register(zk, root, brokers=1)
            await watched.until(lambda: len(watched.sink.snapshots) == 2, timeout_s=60)
            assert "restored or recreated" in watched.sink.snapshots[-1].reason
            await watched.following()
            await watched.holds(zk, root, "/feature", "/brokers/ids/0", "/brokers/ids/49")
