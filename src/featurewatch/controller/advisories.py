"""The known faults on the way from the releases and levels of a cluster to others. Pure.

    advisories(["4.0"], "4.3", before={"metadata.version": 25}, after={"metadata.version": 30})

Nodes do not report their patch, so an advisory whose release is on the way names the patches that
have the fault and those that have the fix.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from featurewatch.kafka.advisories import AdvisoryEntry, advisory_entries, patch_number
from featurewatch.kafka.releases import release_number
from featurewatch.streams.types import FeatureLevel, FeatureName

SEVERITIES: Final = ("critical", "warning", "info")
"""From the most severe on."""

Levels = Mapping[FeatureName, FeatureLevel]
"""Finalized levels by feature; a feature that is not finalized has 0."""


@dataclass(frozen=True, slots=True)
class Advisory:
    """A known fault that matters on the way.

    ``releases`` are those on the way that have it, in some patch: of nodes now and of the target;
    ``remains`` is whether the nodes have it afterwards too. ``affected`` names the patches.
    ``fixed_in`` is empty where no release with the fix is known. ``level`` is the feature without
    which it does not matter. ``date`` is that of the source, in ISO 8601; with ``undated`` that of
    its reading.
    """

    id: str
    severity: str
    subject: str
    releases: tuple[str, ...]
    remains: bool
    affected: str
    fixed_in: tuple[str, ...]
    level: str | None
    fault: str
    advice: str
    sources: tuple[str, ...]
    date: str
    undated: bool


def advisories(
    running: Iterable[str],
    target: str | None,
    *,
    before: Levels,
    after: Levels,
) -> tuple[Advisory, ...]:
    """The known faults of releases and levels on the way, the most severe of the target first.

    ``running`` are the releases of the nodes now (``4.0``), ``target`` that which they will run
    (None: they stay). ``before`` and ``after`` are all finalized levels, now and at the end.
    Releases that are not known here have no advisories.
    """
    now = {name: release_number(name) for name in running}
    way = {**now, **({} if target is None else {target: release_number(target)})}
    found = []
    for entry in advisory_entries():
        releases = [name for name, number in way.items() if _has_fault(entry, number)]
        if not releases or not _level_matters(entry, before, after):
            continue
        first = patch_number(entry.affects[0][0])[:2]
        if entry.crossing and all(number >= first for number in now.values()):
            continue
        found.append(_advisory(entry, sorted(releases, key=release_number), target))
    return tuple(
        sorted(
            found,
            key=lambda each: (
                not each.remains,
                SEVERITIES.index(each.severity),
                [-number for number in patch_number(each.releases[-1])],
            ),
        )
    )


def _has_fault(entry: AdvisoryEntry, release: tuple[int, ...]) -> bool:
    """Whether some patch of the release is in a range."""
    return any(
        patch_number(first)[:2] <= release and (last is None or release <= patch_number(last)[:2])
        for first, last in entry.affects
    )


def _level_matters(entry: AdvisoryEntry, before: Levels, after: Levels) -> bool:
    condition = entry.condition
    if condition is None:
        return True
    feature = FeatureName(condition.feature)
    now, then = before.get(feature, 0), after.get(feature, 0)
    if condition.when == "before":
        return condition.includes(now)
    return condition.includes(then) and (condition.when == "after" or now < condition.low)


def _advisory(entry: AdvisoryEntry, releases: list[str], target: str | None) -> Advisory:
    return Advisory(
        entry.id,
        entry.severity,
        entry.subject,
        tuple(releases),
        target is None or target in releases,
        ", ".join(_range(first, last) for first, last in entry.affects),
        entry.fixed_in,
        None if entry.condition is None else entry.condition.feature,
        entry.fault,
        entry.advice,
        entry.sources,
        entry.date,
        entry.undated,
    )


def _range(first: str, last: str | None) -> str:
    if last is None:
        return f"{first} and newer"
    return first if first == last else f"{first} to {last}"
