"""Controllers that move to other addresses than the configured ones, which their log told."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from featurewatch.streams.events import LogCommit, LogGap
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.types import ClusterId, Role
from tests.hostile import Answer, answering, serving
from tests.running import running
from tests.streams.kraft.encoding import data_batch, registration
from tests.streams.kraft.hostile_controller import FETCH, GRACE, LEVEL, HostileController
from tests.streams.recording_sink import RecordingSink
from tests.waiting import until_async


@dataclass
class MovingController(HostileController):
    """A leader whose process ends at this address once ``is_gone``."""

    is_gone: bool = False

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        """The body that answers a request."""
        if self.is_gone:
            raise ConnectionResetError
        return super().answer(key, version, body)


async def test_the_log_says_where_the_controllers_moved() -> None:
    """Nobody listens at the configured address any more: the source continues at the registered
    one."""

    async def nothing() -> None:
        return None

    old, new, sink = MovingController(), MovingController(end=2), RecordingSink()
    async with AsyncExitStack() as servers:
        new_address = await servers.enter_async_context(serving(answering(new.answer)))
        old.records = data_batch([registration(new_address, Role.CONTROLLER)], leader_epoch=1)
        new.records = old.records + data_batch([LEVEL], 1, leader_epoch=1)
        async with serving(answering(old.answer)) as old_address:
            quorum = QuorumSettings("c", (old_address,))
            given = KraftSettings(ClusterId("c"), quorum=quorum, grace=GRACE, heartbeat_ms=100)
            await servers.enter_async_context(running(KraftSource(given, sink, nothing)))
            await until_async(sink.following)
            old.is_gone = True
        await until_async(lambda: len(sink.of(LogCommit)) == 2)
    assert [commit.records[0]["type"] for commit in sink.of(LogCommit)] == [
        "REGISTER_CONTROLLER_RECORD",
        "FEATURE_LEVEL_RECORD",
    ]
    assert not sink.of(LogGap)


async def test_a_name_that_led_to_another_cluster_is_resolved_again() -> None:
    """The connection to a node that refused for good is closed: the next one may lead to ours."""

    async def nothing() -> None:
        return None

    other, ours = HostileController(error=ErrorCode.inconsistent_cluster_id), HostileController()
    ours.records = data_batch([LEVEL], leader_epoch=1)
    connections: list[Answer] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(ours.answer if connections else other.answer)
        await answering(connections[-1])(reader, writer)

    sink = RecordingSink()
    async with serving(serve) as address:
        quorum = QuorumSettings("c", (address,))
        given = KraftSettings(ClusterId("c"), quorum=quorum, grace=GRACE, heartbeat_ms=100)
        async with running(KraftSource(given, sink, nothing)):
            await until_async(lambda: bool(sink.of(LogCommit)))
    assert FETCH in other.asked
