"""The session's edges: what kazoo calls, and how long a server may keep silent."""

import asyncio
import contextlib
import re
import socket
import time
from functools import partial
from types import SimpleNamespace

import pytest
import trustme
from kazoo.exceptions import NoAuthError, NoNodeError, OperationTimeoutError
from kazoo.protocol.states import EventType, WatchedEvent

from featurewatch.streams.zookeeper.event_queue import EventQueue, ReadCompleted, WatchTriggered
from featurewatch.streams.zookeeper.in_order_handler import CallbackResult
from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget
from featurewatch.streams.zookeeper.session import ZookeeperSession, _Handler, _Watch
from featurewatch.streams.zookeeper.settings import ZookeeperLogin, ZookeeperSettings
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadChildren,
    ReadData,
    ReadExists,
    ReadFailed,
    ReadForbidden,
    ReadOperation,
    ReadRequest,
    Synced,
    ZnodeAbsent,
    ZnodeVersion,
)
from tests.kafka.tls_nodes import CASES, listener, properties_of
from tests.waiting import until_async

FEATURE = WatchTarget("/feature", TargetKind.DATA)
STAT = SimpleNamespace(czxid=5, mzxid=6, version=7, ephemeralOwner=8)


@pytest.mark.parametrize("name", [name for name in CASES if name != "TLS there"])
async def test_a_failure_of_tls_is_one_clear_line(name, tmp_path):
    """Of a server as of a Kafka node: with its address, and the property to set."""
    server_of, settings, reason = CASES[name]
    authority = trustme.CA()
    login = ZookeeperLogin.from_properties(properties_of(settings, authority, tmp_path))
    with listener(server_of(authority)) as address:
        session = ZookeeperSession(ZookeeperSettings(str(address), login=login), EventQueue())
        session.open()
        try:
            await until_async(lambda: re.search(reason, session.reason) is not None)
            line = session.reason
        finally:
            await asyncio.to_thread(session.close().wait, 10)
    assert line.startswith(f"ZooKeeper at {address} cannot be used: {address}")
    assert "\n" not in line


@contextlib.contextmanager
def silent_server():
    """A port that answers no connection: its queue is full and stays so."""
    with socket.socket() as listener, contextlib.ExitStack() as waiting:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield listener.getsockname()


def test_a_server_that_swallows_packets_does_not_cost_the_session():
    """Of the session's time each server gets its share to take the connection, and no more."""
    with silent_server() as address:
        settings = ZookeeperSettings("a:1,b:1,c:1", session_timeout_ms=4000)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            _Handler(settings).create_connection(address, "a", 30)
        assert 0.5 < time.monotonic() - began < 3.9


async def test_equal_watches_are_one_and_ignore_disconnections():
    """Two reads of a znode leave equal watches; that a connection ends is no change."""
    inbox = EventQueue()
    kept = {_Watch(3, FEATURE, inbox), _Watch(3, FEATURE, inbox)}
    assert len(kept | {_Watch(4, FEATURE, inbox)}) == 2
    (watch,) = kept
    watch(WatchedEvent(EventType.NONE, "CONNECTING", None))
    assert list(inbox.take()) == []
    watch(WatchedEvent(EventType.CHANGED, "CONNECTED", "/feature"))
    assert list(inbox.take()) == [WatchTriggered(3, FEATURE)]


@pytest.mark.parametrize(
    ("operation", "value", "outcome"),
    [
        (ReadOperation.GET, (b"x", STAT), ReadData(b"x", ZnodeVersion(5, 6, 7, 8))),
        (ReadOperation.GET, (None, STAT), ReadData(b"", ZnodeVersion(5, 6, 7, 8))),
        (ReadOperation.LIST, ["1", "2"], ReadChildren(("1", "2"))),
        (ReadOperation.EXISTS, STAT, ReadExists(ZnodeVersion(5, 6, 7, 8))),
        (ReadOperation.EXISTS, None, ZnodeAbsent()),
        (ReadOperation.CHROOT, None, ZnodeAbsent()),
        (ReadOperation.SYNC, "/", Synced()),
    ],
)
async def test_what_kazoo_answers(operation, value, outcome):
    """Each answer becomes an outcome under its token."""
    inbox = EventQueue()
    link = ZookeeperSession(ZookeeperSettings("127.0.0.1:1"), inbox)
    request = ReadRequest(9, operation, FEATURE, 1)
    CallbackResult(partial(link.complete, request)).set(value)
    assert list(inbox.take()) == [ReadCompleted(9, outcome, 0)]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NoNodeError(), ZnodeAbsent()),
        (NoAuthError(), ReadForbidden()),
        (OperationTimeoutError("slow"), ReadFailed("OperationTimeoutError slow")),
    ],
)
async def test_what_kazoo_raises(error, outcome):
    """An absent znode and a missing right are told from everything else."""
    inbox = EventQueue()
    link = ZookeeperSession(ZookeeperSettings("127.0.0.1:1"), inbox)
    request = ReadRequest(9, ReadOperation.GET, FEATURE, 1)
    CallbackResult(partial(link.complete, request)).set_exception(error)
    assert list(inbox.take()) == [ReadCompleted(9, outcome, 0)]


async def test_a_session_that_ends_is_closed_in_the_background():
    """Closing returns at once, also while nobody answers, and the thread ends."""
    with silent_server() as (host, port):
        link = ZookeeperSession(
            ZookeeperSettings(f"{host}:{port}", session_timeout_ms=5000), EventQueue()
        )
        link.open()
        began = time.monotonic()
        done = link.close()
        assert time.monotonic() - began < 4.5  # less than the session would last
        assert done.wait(60)
