"""Runs the queries that fill a lake, either once, up to the present, or continuously.

One query fills bronze, and one decodes its messages for silver and gold. A single run executes them
one after the other, a continuous run side by side.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.bronze.query import BronzeQuery
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.errors import RunError
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.spark.queries import wait_for_end, watched, with_settings
from featurewatch.streams.bus.settings import BusSettings

LOG: Final = logging.getLogger("featurewatch.pipeline")

Stage = Callable[[], DataStreamWriter]
"""Returns a query that needs a trigger and to be started."""

_POLL_S: Final = 0.2
_SMALL_BATCHES: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings of a continuous query. Spark plans each batch again. To compile the plan, or adapt it,
takes a tenth of a second more than it saves. A query keeps the settings of its start."""


def stages(
    lake: Lake,
    bus: BusSettings,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = NO_PROGRESS,
) -> list[Stage]:
    """Returns the queries of the pipeline, each after those whose tables it reads.

    ``limits`` must be those of the worker.
    """
    fold = FoldQuery(lake, limits, progress)
    return [BronzeQuery(lake, bus, progress).writer, fold.writer]


def run_once(lake: Lake, stages: Iterable[Stage], progress: Progress = NO_PROGRESS) -> None:
    """Processes what exists now, layer by layer, and returns; ``progress`` is that of the stages.

    Raises:
        PipelineError: Another process fills the lake, or a query failed.
    """
    lake.lock()
    for stage in stages:
        with watched(lake.session, progress):
            query = stage().trigger(availableNow=True).start()
            wait_for_end(query)
        rows = sum(progress["numInputRows"] for progress in query.recentProgress)
        LOG.info("%s: processed %d rows", query.name, rows)


def _raise_if_ended(queries: Iterable[StreamingQuery]) -> None:
    """Raises what ended one of some queries."""
    for query in queries:
        if not query.isActive:
            wait_for_end(query)
            raise RunError(f"the query {query.name} ended unexpectedly: start again")


def _has_run(query: StreamingQuery) -> bool:
    """Whether a query has completed a batch, or found nothing to process."""
    return bool(query.recentProgress) or query.status["message"].startswith("Waiting")


def run_on(lake: Lake, stages: Iterable[Stage], every_s: float, stop: threading.Event) -> None:
    """Processes new messages every ``every_s`` seconds until ``stop`` is set.

    Raises:
        PipelineError: Another process fills the lake, or a query failed; the other queries are then
            stopped.
    """
    lake.lock()
    running: list[StreamingQuery] = []
    try:
        for stage in stages:
            # This query's start would keep the cores from the first rows of the one before.
            while running and not _has_run(running[-1]) and not stop.wait(_POLL_S):
                _raise_if_ended(running)
            if stop.is_set():
                return
            trigger = f"{round(every_s * 1000)} milliseconds"
            writer = stage().trigger(processingTime=trigger)
            with with_settings(lake.session, _SMALL_BATCHES):
                running.append(writer.start())
        LOG.info("following: %s", ", ".join(str(query.name) for query in running))
        while not stop.wait(_POLL_S):
            _raise_if_ended(running)
    finally:
        # A query that is stopped in the middle of a batch logs long stack traces.
        context = lake.session.sparkContext
        context.setLogLevel("OFF")
        for query in running:
            query.stop()
        context.setLogLevel("ERROR")
