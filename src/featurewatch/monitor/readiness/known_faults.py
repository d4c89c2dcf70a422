"""The known faults on the way of one cluster: its releases and levels as its image has them."""

from collections.abc import Collection, Mapping

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.controller.advisories import Advisory, advisories
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.software import release_name
from featurewatch.kafka.releases import on_reread
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeKey
from featurewatch.tables.image.cluster import ClusterImage

Levels = Map[FeatureName, FeatureLevel]


def known_faults(
    image: ClusterImage,
    target: Release | None,
    target_levels: Mapping[FeatureName, FeatureLevel],
    ghosts: Collection[NodeKey] = (),
) -> tuple[Advisory, ...]:
    """The advisories for a cluster that goes to a release and to levels.

    ``target`` None: its nodes stay on their releases. ``target_levels`` are those that change, or
    all. The releases of ``ghosts``, which do not run, do not count.
    """
    levels = image.features.levels
    running = {
        name
        for key, ids in image.nodes.classes.items()
        if (name := release_name(key.capabilities)) is not None
        and any(NodeKey(key.role, node_id) not in ghosts for node_id in ids)
    }
    name = None if target is None else target.name
    return _advisories(frozenset(running), name, levels, Map(target_levels))


@weighted_cache(lambda running, _, *levels: len(running) + sum(map(len, levels)))
def _advisories(
    running: frozenset[str], target: str | None, before: Levels, changes: Levels
) -> tuple[Advisory, ...]:
    """The advisories of a way, which many clusters go."""
    return advisories(running, target, before=before, after={**before, **changes})


on_reread(_advisories.cache_clear)
