"""Generated histories of clusters, as the benches of the pipeline measure them."""

from collections.abc import Iterator
from typing import Final

from featurewatch.pipeline.silver.record_rows import RECORD_ROWS
from featurewatch.streams.events import CommitKind, LogCommit, SourceState, SourceStatus
from featurewatch.streams.types import ClusterId
from tests.bench.worker import records

NODES: Final = 100
IN_A_COMMIT: Final = 100
NOW_MS: Final = 1_750_000_000_000


def history(
    cluster: ClusterId, total: int, *, everything: bool = True
) -> Iterator[LogCommit | SourceStatus]:
    """The commits of a cluster, and a heartbeat after each."""
    source = records(total, NODES)
    for first in range(0, total, IN_A_COMMIT):
        last, at_ms = first + IN_A_COMMIT - 1, NOW_MS + first
        generated = [next(source) for _ in range(IN_A_COMMIT)]
        wanted = (
            generated
            if everything
            else [record for record in generated if record["type"] in RECORD_ROWS]
        )
        left = (
            {"PARTITION_CHANGE_RECORD": len(generated) - len(wanted)}
            if len(generated) > len(wanted)
            else {}
        )
        yield LogCommit(cluster, CommitKind.BATCH, first, last, 1, at_ms, wanted, left, at_ms)
        state = (last, 1, last + 1, 1, 1)
        yield SourceStatus(cluster, "kraft", SourceState.FOLLOWING, *state, "", at_ms)
