"""Cluster images built by folding events, for tests."""

from collections.abc import Sequence

from featurewatch.streams.events import Event
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import ClusterImage
from tests.simulation.records import CLUSTER


def fold_all(events: Sequence[Event], image: ClusterImage | None = None) -> ClusterImage:
    """The image after some events."""
    image = image or ClusterImage(CLUSTER)
    for event in events:
        image, _ = fold(image, event)
    return image
