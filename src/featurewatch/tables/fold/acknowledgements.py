"""Applies that a person acknowledged an alert, which ends it.

Only alerts about what is over can be acknowledged: something was lost, could not be read, or was
changed. All others end with their condition.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from featurewatch.streams.events import Acknowledgement
from featurewatch.tables.image.cluster import NOTHING, SKIPPED, ClusterDelta, ClusterImage


def fold_acknowledgement(
    image: ClusterImage, event: Acknowledgement
) -> tuple[ClusterImage, ClusterDelta]:
    """Applies an acknowledgement; one of an alert that does not fire changes nothing."""
    rule, _, subject = event.alert.removeprefix(f"{image.cluster}/").partition("/")
    if rule in ACKNOWLEDGED_TIMERS:
        return image, NOTHING
    end = ACKNOWLEDGED.get(rule)
    after = image if end is None else end(image, subject.partition("/")[2])
    return (image, SKIPPED) if after == image else (after, NOTHING)


def _end_unreadable(image: ClusterImage, kind: str) -> ClusterImage:
    if kind not in image.sources.unreadable:
        return image
    unreadable = image.sources.unreadable.delete(kind)
    return image.with_unreadable(unreadable)


def _end_gap(image: ClusterImage, _: str) -> ClusterImage:
    return replace(image, log=replace(image.log, gap=""))


def _end_log_regression(image: ClusterImage, _: str) -> ClusterImage:
    return replace(image, log=replace(image.log, max_offset=image.log.provenance.offset))


def _end_missed_znodes(image: ClusterImage, path: str) -> ClusterImage:
    issue = image.zookeeper.issues.get(f"/{path}")
    if issue is None:
        return image
    issues = image.zookeeper.issues.set(f"/{path}", replace(issue, missed=0))
    return replace(image, zookeeper=replace(image.zookeeper, issues=issues))


def _end_znode_regression(image: ClusterImage, path: str) -> ClusterImage:
    znode = image.zookeeper.znodes.get(f"/{path}")
    if znode is None or f"/{path}" not in image.zookeeper.max_versions:
        return image
    max_versions = image.zookeeper.max_versions.set(znode.path, znode.version)
    return replace(image, zookeeper=replace(image.zookeeper, max_versions=max_versions))


ACKNOWLEDGED: Final[Mapping[str, Callable[[ClusterImage, str], ClusterImage]]] = {
    "unreadable": _end_unreadable,
    "messages-lost": _end_unreadable,
    "outputs-lost": _end_unreadable,
    "clock-ahead": _end_unreadable,
    "source-rivals": _end_unreadable,
    "log-gap": _end_gap,
    "epoch-regression": _end_log_regression,
    "znode-missed": _end_missed_znodes,
    "znode-regression": _end_znode_regression,
}
"""The rules whose alerts can be acknowledged, and what that makes of an image; the text is the
alert's subject behind its kind."""

ACKNOWLEDGED_TIMERS: Final = frozenset({"voter-rejoined", "voter-directory-changed"})
"""The rules whose alerts end with what the monitor remembers, and no image has."""

ACKNOWLEDGEABLE: Final = (*ACKNOWLEDGED, *sorted(ACKNOWLEDGED_TIMERS))
"""All rules whose alerts can be acknowledged."""
