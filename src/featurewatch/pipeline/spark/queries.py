"""Waits for streaming queries, and watches how many rows Spark's stages have read meanwhile."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.pipeline.errors import RunError, reason_in

_EVERY_S: Final = 1.0


def wait_for_end(query: StreamingQuery) -> None:
    """Waits until a query has ended.

    Raises:
        RunError: The query failed.
    """
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise RunError(f"the query {query.name} failed: {reason_in(str(error))}") from error


@contextmanager
def with_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Has a session use other settings while the block runs."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, earlier)


@contextmanager
def watched(session: SparkSession, progress: Progress, *, tasks: bool = False) -> Iterator[None]:
    """Advances a step by the rows that Spark has read while the block runs.

    Spark counts the rows of a task when it ends, and every ten seconds. ``tasks``: completed tasks
    are counted instead. The step ends with the block, unless that raises an exception.
    """
    if progress is NO_PROGRESS:
        yield
        return
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(_EVERY_S):
            try:
                progress.advance(_done(session, tasks=tasks))
            except Py4JError:
                return  # the session ends

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    progress.end()


def _done(session: SparkSession, *, tasks: bool) -> int:
    """The rows that the furthest of the active stages has read, or its completed tasks."""
    context: Any = session.sparkContext._jsc
    stages = context.sc().statusStore().activeStages()
    active = [stages.apply(index) for index in range(stages.size())]
    if tasks:
        return max((stage.numCompleteTasks() for stage in active), default=0)
    return max(
        (max(stage.inputRecords(), stage.shuffleReadRecords()) for stage in active), default=0
    )
