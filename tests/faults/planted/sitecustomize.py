"""A planted bug, in a process that has this directory on its path: some changes are not published.

Python imports this module when it starts.
"""

from featurewatch.monitor import step as monitor
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import FeatureChange
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage

_changes = monitor._changes


def _lossy(after: ClusterImage, delta: ClusterDelta, event: Event) -> tuple[FeatureChange, ...]:
    """All but removals of ``transaction.version``."""
    changes = _changes(after, delta, event)
    return tuple(one for one in changes if (one.feature, one.after) != ("transaction.version", 0))


monitor._changes = _lossy
