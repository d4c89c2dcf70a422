"""A whole replay: found, planned, taken into bronze, typed into silver, folded into gold."""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pipeline.gold import Telling
from pipeline.lake import Lake
from pipeline.replay.course import Told
from pipeline.replay.finding import find
from pipeline.replay.planning import plan
from pipeline.replay.taking import take
from pipeline.run import Stage, run_once
from pipeline.silver import Typing

LOG: Final = logging.getLogger("featurewatch.pipeline")

Phase = Callable[[str, int], None]
"""Is told what begins, and of how many tasks it consists (0: not known)."""


@dataclass(slots=True)
class Replayed:
    """What a replay came to: by cluster, and in lines what could not be read, and what else is
    worth knowing."""

    clusters: list[Told] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def replay(
    lake: Lake, paths: Iterable[Path], cluster: str, scratch: Path, phase: Phase = lambda *_: None
) -> Replayed:
    """Takes what lies under ``paths`` into the lake's tables; ``scratch`` is for unpacked bundles.

    What is damaged or missing is told in the result, and all else is taken.

    Raises:
        AskedError: A path is not there, or nobody says of which cluster a log is.
        PipelineError: The lake is filled by somebody else, or a query failed.
    """
    phase("looking", 0)
    finds = find(paths, cluster, scratch)
    replayed = Replayed(problems=finds.problems, notes=finds.notes)
    courses = plan(finds.found, replayed.problems)
    if not courses:
        if not replayed.problems:
            replayed.problems.append("there is no log and no snapshot in what was given")
        return replayed
    lake.lock()
    replayed.clusters = take(lake, courses, lambda units: phase("reading", units))
    for told in replayed.clusters:
        replayed.problems += told.problems
        replayed.notes += told.notes
    phase("typing and folding", 0)
    # Both read bronze alone, and neither fills both cores.
    stages: list[Stage] = [Typing(lake).writer, Telling(lake).writer]
    with ThreadPoolExecutor(len(stages)) as pool:
        for done in [pool.submit(run_once, lake, [stage]) for stage in stages]:
            done.result()
    return replayed
