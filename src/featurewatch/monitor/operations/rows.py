"""Converts the state of partitions to rows of the state table and back.

`rows_before` come before the cluster's own row, which has the position in the log, and `rows_after`
delete what that row has made void.
"""

from collections.abc import Container, Iterator

from featurewatch.common.json_bytes import json_bytes
from featurewatch.monitor.operations.state import PartitionsState
from featurewatch.monitor.operations.tracker import TrackResult
from featurewatch.streams.types import ClusterId
from featurewatch.tables.partitions.image import NO_PARTITIONS, PartitionsImage
from featurewatch.tables.partitions.rows import (
    FAMILY,
    RESYNC_FAMILY,
    Touched,
    everything_in,
    rows_of_partitions,
    void_rows,
)
from featurewatch.tables.rows import Row, row_key

FAMILIES = frozenset({FAMILY, RESYNC_FAMILY})
"""The families of these rows."""

_NOTHING = Touched()


def rows_before(
    cluster: ClusterId,
    before: PartitionsState | None,
    after: PartitionsState | None,
    tracked: TrackResult | None,
) -> Iterator[Row]:
    """The rows that changed. Without ``tracked``, which tells what did, all of ``after``."""
    if after is None:
        if before is not None:
            yield from void_rows(cluster, FAMILY, before.image or NO_PARTITIONS)
            yield row_key(cluster, FAMILY), None
        return
    if tracked is None:
        touched, resync_touched = _everything(after.image), _everything(after.resync)
    else:
        touched, resync_touched = tracked.touched, tracked.resync_touched
    if after.resync is not None:
        serial = after.resync_serial
        yield from rows_of_partitions(cluster, RESYNC_FAMILY, after.resync, resync_touched, serial)
    if after.image is not None:
        yield from rows_of_partitions(cluster, FAMILY, after.image, touched)
    elif before is not None and before.image is not None:
        yield from void_rows(cluster, FAMILY, before.image)
    row = after.to_row()
    if before is None or row != before.to_row():
        yield row_key(cluster, FAMILY), json_bytes(row, default=list)  # of incidents


def rows_after(
    cluster: ClusterId,
    before: PartitionsState | None,
    after: PartitionsState | None,
    written: Container[str],
) -> Iterator[Row]:
    """Deletes the rows of a resync that ended or was replaced by another one.

    Of those, ``written`` are the keys that the next one has written again.
    """
    if before is None or before.resync is None:
        return
    collects = after is not None and after.resync is not None
    if after is None or not collects or after.resync_serial != before.resync_serial:
        for key, value in void_rows(cluster, RESYNC_FAMILY, before.resync):
            if key not in written:
                yield key, value


def _everything(image: PartitionsImage | None) -> Touched:
    return _NOTHING if image is None else everything_in(image)
