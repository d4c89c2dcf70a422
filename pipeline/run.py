"""Runs the queries that fill a lake: once, up to what is there now, or for as long as it is wanted.

Each layer is a query of its own with a checkpoint of its own, so that one may be rebuilt without
the others. Run once, they follow each other; run on, they work side by side.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.bronze.query import BronzeQuery
from featurewatch.pipeline.errors import RunError, reason_in
from featurewatch.pipeline.gold.query import GoldQuery
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.silver.query import SilverQuery
from featurewatch.streams.bus import BusSettings

LOG: Final = logging.getLogger("featurewatch.pipeline")

Stage = Callable[[], DataStreamWriter]
"""Gives a query that wants a trigger and to be started."""

_LOOK_S: Final = 0.2


def stages(lake: Lake, bus: BusSettings, limits: Limits = DEFAULT_LIMITS) -> list[Stage]:
    """The queries of the pipeline, in the order in which each has what it reads.

    ``limits`` are the worker's.
    """
    return [BronzeQuery(lake, bus).writer, SilverQuery(lake).writer, GoldQuery(lake, limits).writer]


def run_once(lake: Lake, stages: Iterable[Stage]) -> None:
    """Takes in what is there now, layer by layer, and ends.

    Raises:
        PipelineError: The lake is filled by somebody else, or a query failed.
    """
    lake.lock()
    for stage in stages:
        query = stage().trigger(availableNow=True).start()
        _wait(query)
        rows = sum(progress["numInputRows"] for progress in query.recentProgress)
        LOG.info("%s: took in %d rows", query.name, rows)


def run_on(lake: Lake, stages: Iterable[Stage], every_s: float, stop: threading.Event) -> None:
    """Takes in what comes, every so many seconds, until ``stop`` is set.

    Raises:
        PipelineError: The lake is filled by somebody else, or a query failed; the others are
            stopped then.
    """
    lake.lock()
    running: list[StreamingQuery] = []
    try:
        for stage in stages:
            trigger = f"{round(every_s * 1000)} milliseconds"
            running.append(stage().trigger(processingTime=trigger).start())
        LOG.info("following: %s", ", ".join(str(query.name) for query in running))
        while not stop.wait(_LOOK_S):
            for query in running:
                if not query.isActive:
                    _wait(query)
                    raise RunError(f"the query {query.name} ended by itself: start again")
    finally:
        # What is stopped in the middle of its work tells of it at length.
        context = lake.session.sparkContext
        context.setLogLevel("OFF")
        for query in running:
            query.stop()
        context.setLogLevel("ERROR")


def _wait(query: StreamingQuery) -> None:
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise RunError(f"the query {query.name} failed: {reason_in(str(error))}") from error
