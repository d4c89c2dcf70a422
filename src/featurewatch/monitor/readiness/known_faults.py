"""The known faults on the way of one cluster: its releases and levels as its image has them."""

from collections.abc import Collection, Mapping

from featurewatch.controller.advisories import Advisory, advisories
from featurewatch.controller.kraft.releases import Release
from featurewatch.controller.software import release_name
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeKey
from featurewatch.tables.image.cluster import ClusterImage


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
    return advisories(
        running,
        None if target is None else target.name,
        before=levels,
        after={**levels, **target_levels},
    )
