"""featurewatch itself, run in a thread of this process as `featurewatch up` would."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Final

from featurewatch.agents.worker import Worker
from featurewatch.cli.config.settings import Settings
from featurewatch.cli.runtime.sources import SourceRunner
from featurewatch.stack.errors import StackError
from featurewatch.stack.process.group import Group
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage

LOG: Final = logging.getLogger("featurewatch.demo")


class Monitor:
    """The sources and a worker in a separate event loop; use it as a context.

    ``bus`` are the servers without which the monitor cannot see anything.
    """

    def __init__(self, settings: Settings, bus: Group) -> None:
        self._settings = settings
        self._bus = bus
        self._failure: StackError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._main, name="featurewatch", daemon=True)

    def __enter__(self) -> "Monitor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop has already ended
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(timeout=20)

    def check(self) -> None:
        """Checks that the sources, the worker and the bus run.

        Raises:
            StackError: One of them has ended. The text states which, and why.
        """
        for server in self._bus.members:
            server.require_running()
        if self._failure is not None:
            raise self._failure

    def image(self, cluster: ClusterId) -> ClusterImage | None:
        """The known state of a cluster; raises `StackError` as `check` does."""
        self.check()
        return self._worker.image(cluster) if self._worker is not None else None

    def wait(
        self, cluster: ClusterId, done: Callable[[ClusterImage], bool], timeout_s: float = 60.0
    ) -> ClusterImage:
        """The image as soon as it meets a condition.

        Raises:
            StackError: A part of featurewatch has ended.
            TimeoutError: It did not meet the condition in time.
        """
        pause = threading.Event()
        for _ in range(int(timeout_s / 0.02)):
            image = self.image(cluster)
            if image is not None and done(image):
                return image
            pause.wait(0.02)
        raise TimeoutError(f"featurewatch has not seen it within {timeout_s:.0f} s")

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._fail("the thread", error)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._worker = Worker(self._settings.worker_settings())
        runner = SourceRunner(self._settings)
        worker = asyncio.ensure_future(self._worker.run())
        watch = asyncio.ensure_future(runner.run())
        try:
            done, _ = await asyncio.wait({worker, watch}, return_when=asyncio.FIRST_COMPLETED)
            # Before the orderly end of the other one, which may wait for an unavailable bus.
            for task in done:
                error = asyncio.CancelledError() if task.cancelled() else task.exception()
                self._fail("the worker" if task is worker else "the sources", error)
        finally:
            watch.cancel()
            self._worker.stop()
            await asyncio.gather(worker, watch, return_exceptions=True)

    def _fail(self, part: str, error: BaseException | None) -> None:
        """Records which part ended first, and why."""
        if self._failure is not None:
            return
        reason = "nothing failed"
        if error is not None:
            reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        LOG.debug("%s ended", part, exc_info=error)
        self._failure = StackError(f"{part} of featurewatch ended: {' '.join(reason.split())}")
        self._failure.__cause__ = error
