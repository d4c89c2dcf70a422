"""Calls an asynchronous client from ordinary code."""

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from typing import Any

from featurewatch.admin.errors import RequestError


@contextmanager
def blocking(client: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
    """Gives the client's methods as ordinary ones, and closes its connections at the end.

        with blocking(TopicAdmin.connect("kafka-1:9092")) as admin:
            admin.create_topic("orders", 12, 3)

    A call returns when the client's coroutine or future is done, or raises its exception. Use it in
    one thread.

    Raises:
        RequestError: An event loop is running in this thread.
    """
    if _is_in_loop():
        raise RequestError("blocking is for code outside an event loop: await the client instead")
    with asyncio.Runner() as runner:
        runner.run(client.__aenter__())
        try:
            yield _BlockingClient(client, runner)
        finally:
            runner.run(client.__aexit__(None, None, None))


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _BlockingClient:
    """A client whose methods run on a loop of their own until they are done."""

    def __init__(self, client: Any, runner: asyncio.Runner) -> None:
        self._client = client
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._client, name)
        if not inspect.ismethod(member):
            return member

        @wraps(member)
        def call(*arguments: Any, **options: Any) -> Any:
            # The draft's client needs a running loop to return a future.
            async def work() -> Any:
                result = member(*arguments, **options)
                return await result if inspect.isawaitable(result) else result

            return self._runner.run(work())

        return call
