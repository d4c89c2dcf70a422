"""Runs a replay: the planned logs are ingested into bronze, typed into silver, folded into gold."""

import logging
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.errors import ReplayError, reason_in
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.replay.assembly import ClusterReplay
from featurewatch.pipeline.replay.ingest import ingest
from featurewatch.pipeline.replay.plan import ReplayPlan
from featurewatch.pipeline.run import run_once
from featurewatch.pipeline.spark.queries import watched

LOG: Final = logging.getLogger("featurewatch.pipeline")


@dataclass(slots=True)
class ReplayResult:
    """The result of a replay, by cluster, with lines about what could not be read and other
    facts."""

    clusters: list[ClusterReplay] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def replay(
    lake: Lake,
    plan: ReplayPlan,
    progress: Progress = NO_PROGRESS,
    limits: Limits = DEFAULT_LIMITS,
) -> ReplayResult:
    """Replays the planned logs into the lake's tables; ``limits`` are those of the lake's worker.

    Corrupt and missing parts are reported in the result; everything else is ingested.

    Raises:
        PipelineError: Another process fills the lake, or a query failed.
    """
    result = ReplayResult(problems=[*plan.problems], notes=[*plan.notes])
    if not plan.cluster_plans:
        return result
    lake.lock()
    try:
        with watched(lake.session, progress, tasks=True):
            result.clusters = ingest(
                lake,
                plan.cluster_plans,
                lambda splits: progress.begin("reading", splits, "parts"),
            )
        for cluster in result.clusters:
            result.problems += cluster.problems
            result.notes += cluster.notes
        progress.commit(sum(cluster.messages for cluster in result.clusters))
        run_once(lake, [FoldQuery(lake, limits, progress).writer], progress)
    except (PySparkException, Py4JJavaError) as error:
        raise ReplayError(f"the replay failed: {reason_in(str(error))}") from error
    return result
