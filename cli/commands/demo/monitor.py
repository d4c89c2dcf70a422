"""featurewatch itself, run in a thread of this process as `featurewatch up` would."""

import asyncio
import threading
from collections.abc import Callable

from featurewatch.agents.worker import Worker
from featurewatch.cli.config.settings import Settings
from featurewatch.cli.runtime.sources import SourceRunner, run_all
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage


class Monitor:
    """The sources and a worker in an event loop of their own; use it as a context."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._main, name="featurewatch", daemon=True)

    def __enter__(self) -> "Monitor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(timeout=20)

    def image(self, cluster: ClusterId) -> ClusterImage | None:
        """What is known of a cluster now; raises what stopped the monitor, if something did."""
        if self._failure is not None:
            raise self._failure
        return self._worker.image(cluster) if self._worker is not None else None

    def wait(
        self, cluster: ClusterId, done: Callable[[ClusterImage], bool], timeout_s: float = 60.0
    ) -> ClusterImage:
        """The image as soon as it is as wished.

        Raises:
            TimeoutError: It was not in time.
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
            self._failure = error

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._worker = Worker(self._settings.worker_settings())
        worker = asyncio.ensure_future(self._worker.run())
        watch = asyncio.ensure_future(SourceRunner(self._settings).run())
        try:
            await run_all([watch, asyncio.shield(worker)])
        finally:
            self._worker.stop()
            await worker
