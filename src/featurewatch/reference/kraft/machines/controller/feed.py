"""What of a voter's log the controller of the same process has yet to apply."""

from featurewatch.reference.kraft.machines.controller.protocol import Applied, SnapshotLoaded
from featurewatch.reference.kraft.machines.log import Log


def unapplied(log: Log, position: int) -> list[Applied | SnapshotLoaded]:
    """The events that bring a controller from ``position`` to the end of what is committed.

    A shell gives them to it when it starts and after each `Committed` and `InstallSnapshot`.
    """
    events: list[Applied | SnapshotLoaded] = []
    if position < log.start.offset:
        events.append(SnapshotLoaded(log.start, log.snapshots[log.start]))
        position = log.start.offset
    end = log.high_watermark
    if position < end:
        batches = log.between(position, end)
        events.append(Applied(end, batches))
    return events
