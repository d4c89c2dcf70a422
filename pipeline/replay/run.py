"""A replay: what was planned is taken into bronze, typed into silver, folded into gold."""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.errors import ReplayError, reason_in
from featurewatch.pipeline.gold.query import GoldQuery
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.replay.assembly import ClusterReplay
from featurewatch.pipeline.replay.ingest import ingest
from featurewatch.pipeline.replay.plan import ReplayPlan
from featurewatch.pipeline.run import Stage, run_once
from featurewatch.pipeline.silver.query import SilverQuery

LOG: Final = logging.getLogger("featurewatch.pipeline")

Phase = Callable[[str, int], None]
"""Is told what begins, and of how many tasks it consists (0: not known)."""


@dataclass(slots=True)
class ReplayResult:
    """What a replay came to: by cluster, and in lines what could not be read, and what else is
    worth knowing."""

    clusters: list[ClusterReplay] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def replay(
    lake: Lake,
    plan: ReplayPlan,
    phase: Phase = lambda *_: None,
    limits: Limits = DEFAULT_LIMITS,
) -> ReplayResult:
    """Takes what was planned into the lake's tables; ``limits`` are those of the lake's worker.

    What is damaged or missing is told in the result, and all else is taken.

    Raises:
        PipelineError: The lake is filled by somebody else, or a query failed.
    """
    replayed = ReplayResult(problems=[*plan.problems], notes=[*plan.notes])
    if not plan.courses:
        return replayed
    lake.lock()
    try:
        replayed.clusters = ingest(lake, plan.courses, lambda units: phase("reading", units))
        for told in replayed.clusters:
            replayed.problems += told.problems
            replayed.notes += told.notes
        phase("typing and folding", 0)
        _type_and_fold(lake, limits)
    except (PySparkException, Py4JJavaError) as error:
        raise ReplayError(f"the replay failed: {reason_in(str(error))}") from error
    return replayed


def _type_and_fold(lake: Lake, limits: Limits) -> None:
    # Both read bronze alone, and neither fills both cores.
    stages: list[Stage] = [SilverQuery(lake).writer, GoldQuery(lake, limits).writer]
    with ThreadPoolExecutor(len(stages)) as pool:
        for done in [pool.submit(run_once, lake, [stage]) for stage in stages]:
            done.result()
