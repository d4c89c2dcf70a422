"""Calls the public methods of a client, and tells which were not called or not refused.

A script calls the same methods of an asynchronous client, and of a `blocking` one in a separate
thread, so that each test of a client runs both.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from enum import StrEnum
from functools import partial
from typing import Any, Final

from featurewatch.admin import AdminError, UnreachableError, blocking
from featurewatch.admin.cluster.reader import metadata_request
from featurewatch.kafka.messages import (
    ListPartitionReassignmentsRequestV0,
    ListTopicsRequestV0,
)

WAIT_S: Final = 60.0
RUNNING: Final = ListPartitionReassignmentsRequestV0(timeout_ms=30_000, topics=None)
NO_RELEASED_REQUEST: Final = ListTopicsRequestV0()
"""A request of KIP-4's draft, which no released node has."""

SESSION_NEVER_REFUSES: Final = {"connect", "broker", "on_controller", "names_controllers"}
"""Public members of each session to which a broker that is reached has nothing to refuse; what
``connect`` refuses before is tested in `test_connect`."""


class Mode(StrEnum):
    """How a client is called."""

    ASYNCHRONOUS = "asynchronous"
    BLOCKING = "blocking"


def public_members(kind: type) -> set[str]:
    """The methods and properties of a client that have a public name."""
    return {
        name
        for name, member in inspect.getmembers(kind)
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property))
    }


class ApiScript:
    """One client, and the names of its members that were called, and that were refused."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self.called = {"connect"}
        self.refused: set[str] = set()

    async def returns(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The result of a method, or the value of a property."""
        self.called.add(name)
        return await self._call(name, *arguments, **options)

    async def settles(
        self, name: str, *arguments: Any, shows: Callable[[Any], bool], **options: Any
    ) -> Any:
        """As `returns`, once the result shows a change that brokers learn a moment later."""
        async with asyncio.timeout(WAIT_S):
            while not shows(result := await self.returns(name, *arguments, **options)):
                await asyncio.sleep(0.05)
        return result

    async def refuses(
        self,
        name: str,
        *arguments: Any,
        shows: Callable[[Any], bool] | type[AdminError] = AdminError,
        **options: Any,
    ) -> None:
        """Calls a method that raises this error, or whose result shows the refusal."""
        try:
            result = await self.returns(name, *arguments, **options)
        except AdminError as error:
            assert isinstance(shows, type) and isinstance(error, shows), (name, error)
        else:
            assert not isinstance(shows, type) and shows(result), (name, result)
        self.refused.add(name)

    def check(self, kind: type, never_refused: set[str]) -> None:
        """Every public member was called, and all but ``never_refused`` were refused once."""
        assert public_members(kind) - self.called == set()
        assert public_members(kind) - self.refused == never_refused


@asynccontextmanager
async def api_script(client: Any, mode: Mode) -> AsyncIterator[ApiScript]:
    """A script that calls the client in a mode, and closes it."""
    if mode is Mode.ASYNCHRONOUS:
        async with client:

            async def call(name: str, *arguments: Any, **options: Any) -> Any:
                member = getattr(client, name)
                if not callable(member):
                    return member
                result = member(*arguments, **options)
                return await result if inspect.isawaitable(result) else result

            yield ApiScript(call)
        return
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:
        # A blocking client belongs to the thread that opens it.
        opened = blocking(client)
        ordinary = await loop.run_in_executor(thread, opened.__enter__)

        async def call_in_thread(name: str, *arguments: Any, **options: Any) -> Any:
            member = getattr(ordinary, name)
            if not callable(member):
                return member
            return await loop.run_in_executor(thread, partial(member, *arguments, **options))

        try:
            yield ApiScript(call_in_thread)
        finally:
            await loop.run_in_executor(thread, opened.__exit__, None, None, None)


async def session_calls(api: ApiScript) -> None:
    """The methods that every client of released Kafka has of its session."""
    assert await api.returns("names_controllers") is False
    address = (await api.returns("broker")).address
    metadata = metadata_request(())
    assert (await api.returns("ask", metadata)).brokers
    both = await api.returns("ask_all", [metadata, metadata])
    assert [len(response.brokers) > 0 for response in both] == [True, True]
    assert (await api.returns("perform", lambda _: RUNNING, changes=False)).error_code == 0
    assert (await api.returns("exchange_with", address, metadata)).brokers
    response = await api.returns(
        "on_controller", lambda connection: connection.request(metadata, 30.0), lambda _: False
    )
    assert response.brokers
    draft = NO_RELEASED_REQUEST
    for name, arguments in (
        ("ask", (draft,)),
        ("ask_all", ([draft],)),
        ("perform", (lambda _: draft,)),
        ("exchange_with", (address, draft)),
    ):
        await api.refuses(name, *arguments, shows=UnreachableError)
