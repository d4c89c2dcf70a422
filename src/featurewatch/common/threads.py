"""Runs blocking work in separate daemon threads.

asyncio would wait for a thread of its pool before the process ends, and librdkafka's calls block.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Final

_END_S: Final = 2.0


def start_in_thread(work: Callable[[], None], name: str) -> asyncio.Future[None]:
    """Runs ``work`` in a daemon thread; the future of this event loop has what it raises.

    Cancelling the future does not end the thread: it continues, and nobody waits for it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


async def run_in_thread(work: Callable[[threading.Event], None], name: str) -> None:
    """Runs ``work`` in a daemon thread; its event says when to end.

    Raises what ``work`` raises.
    """
    stopped = threading.Event()
    done = start_in_thread(lambda: work(stopped), name)
    try:
        await asyncio.shield(done)
    finally:
        stopped.set()
        await asyncio.wait([done], timeout=_END_S)
