"""Faults of the pipeline: the verdict is on what the lake has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.faults.fault import Fault
from tests.faults.lake import PipelineStack
from tests.faults.rows.processes import STALLED, killed, servers_killed, stopped
from tests.faults.rows.resources import FILLER, fill, small_disk
from tests.faults.stack import Stack

_STARTED_S: Final = 120.0
"""Spark's start, on a machine that does other things."""


def _of(stack: Stack) -> PipelineStack:
    assert isinstance(stack, PipelineStack)
    return stack


@contextmanager
def disk_full(stack: Stack, name: str) -> Iterator[None]:
    """The lake's disk, or that of the temporary directory, is full while the pipeline runs."""
    pipeline, directory = _of(stack).pipeline, stack.directory / name
    stack.hold(pipeline)
    with small_disk(directory, 512):
        rows = len(stack.reader.outputs.changes)
        stack.release(pipeline)
        stack.reader.wait(lambda outputs: len(outputs.changes) > rows, _STARTED_S)
        fill(directory)
        try:
            yield
        finally:
            (directory / FILLER).unlink()
            stack.hold(pipeline)
    stack.release(pipeline)


ROWS: Final = (
    Fault(
        "pipeline-kill",
        "kill -9 of the pipeline",
        lambda s: killed(s, "pipeline"),
        hold_s=5,
        limit_s=_STARTED_S,
        pipeline=True,
    ),
    Fault(
        "pipeline-stop-30s",
        "SIGSTOP of the pipeline for 30 s",
        lambda s: stopped(_of(s).pipeline.pid),
        hold_s=30,
        pipeline=True,
    ),
    Fault(
        "pipeline-kill-bus-20s",
        "kill -9 of the bus, back after 20 s, seen by the pipeline",
        lambda s: servers_killed(*s.bus.nodes),
        hold_s=20,
        may_fire=STALLED,
        pipeline=True,
    ),
    Fault(
        "pipeline-disk-full-lake",
        "the lake's disk is full for 20 s; the pipeline is started again with room",
        lambda s: disk_full(s, "lake"),
        hold_s=20,
        limit_s=_STARTED_S,
        may_end=True,
        pipeline=True,
    ),
    Fault(
        "pipeline-disk-full-tmp",
        "the pipeline's temporary directory is full for 20 s; it is started again with room",
        lambda s: disk_full(s, "tmp"),
        hold_s=20,
        limit_s=_STARTED_S,
        may_end=True,
        pipeline=True,
    ),
)
