"""The sources' part of an image: their statuses, disagreements of nodes, applied messages."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from immutables import Map

from featurewatch.streams.events import FeatureView, SourceState, SourceStatus
from featurewatch.streams.types import FeatureName

Disagreements = Map[FeatureName, tuple[FeatureView, ...]]
"""The features for which nodes report different levels, with the views of the nodes."""


class MessagePosition(NamedTuple):
    """The position of a message on the bus: input topic, offset, and time in Unix milliseconds."""

    topic: str
    offset: int
    time_ms: int


def sources_to_row(sources: Map[str, SourceStatus]) -> list[SourceStatus]:
    """The newest status of each source, to be encoded as JSON objects."""
    return list(sources.values())


def sources_from_row(row: Iterable[Mapping[str, Any]]) -> Map[str, SourceStatus]:
    """The newest status of each source, by its name."""
    return Map({status["source"]: _status(status) for status in row})


def _status(row: Mapping[str, Any]) -> SourceStatus:
    return SourceStatus(
        cluster=row["cluster"],
        source=row["source"],
        state=SourceState(row["state"]),
        offset=row["offset"],
        offset_epoch=row["offset_epoch"],
        high_watermark=row["high_watermark"],
        leader_id=row["leader_id"],
        leader_epoch=row["leader_epoch"],
        detail=row["detail"],
        seen_ms=row["seen_ms"],
    )


def disagreements_to_row(disagreements: Disagreements) -> dict[FeatureName, Any]:
    """The views of each feature, to be encoded as JSON objects."""
    return dict(disagreements.items())


def disagreements_from_row(row: Mapping[FeatureName, Iterable[Mapping[str, Any]]]) -> Disagreements:
    """The views of each feature that a row holds."""
    return Map(
        {
            feature: tuple(FeatureView(view["level"], tuple(view["nodes"])) for view in views)
            for feature, views in row.items()
        }
    )


def positions_to_row(positions: Map[str, MessagePosition]) -> dict[str, tuple[int, int]]:
    """Offset and time of the last applied message, by topic."""
    return {topic: (last.offset, last.time_ms) for topic, last in positions.items()}


def positions_from_row(row: Mapping[str, tuple[int, int]]) -> Map[str, MessagePosition]:
    """The last applied message of each topic."""
    return Map({topic: MessagePosition(topic, *last) for topic, last in row.items()})
