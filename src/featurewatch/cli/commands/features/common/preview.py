"""The preview of a change before it is sent: levels, consequences, the downgrade path."""

from collections.abc import Iterable, Iterator

from featurewatch.admin.features.metadata import FeatureMetadata
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.controller.downgrade_path import downgrade_path
from featurewatch.controller.kraft.consequences import between
from featurewatch.controller.kraft.releases import Release, releases
from featurewatch.controller.levels import level_name
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName


def preview(metadata: FeatureMetadata, updates: Iterable[FeatureUpdate]) -> Iterator[str]:
    """Lines for a person; ``metadata`` is that of the node that applies the change."""
    updates = tuple(updates)
    newest = list(releases().values())[-1]
    for update in sorted(updates, key=lambda each: each.feature):
        before = metadata.finalized.get(update.feature, FeatureLevel(0))
        yield (
            f"{update.feature}: {level_name(update.feature, before)} -> "
            f"{level_name(update.feature, update.level)}"
        )
        if update.level == before:
            yield "  nothing changes"
            continue
        low, high = sorted((before, update.level))
        verb = "comes" if update.level > before else "goes"
        for consequence in between(update.feature, low, high):
            yield f"  {level_name(update.feature, consequence.level)} {verb}: {consequence.change}"
            yield from (f"    beware: {cost}" for cost in consequence.costs)
        yield f"  the way back: {_way_back(newest, update.feature, before, update.level)}"
    then = {**metadata.finalized, **{update.feature: update.level for update in updates}}
    whole = downgrade_path(metadata.finalized, then)
    if whole is not None and then != metadata.finalized:
        yield f"afterwards: {whole.reason}"


def _way_back(release: Release, feature: FeatureName, before: int, after: int) -> str:
    """Whether the earlier level can be finalized again (``FeatureControlManager``)."""
    back = level_name(feature, FeatureLevel(before))
    if after < before:
        return f"an upgrade to {back}"
    if feature == "kraft.version":
        return "none: Kafka refuses a downgrade of it"
    if feature != METADATA_VERSION:
        return f"a downgrade to {back}"
    if after > release.newest(METADATA_VERSION):
        return f"unknown: the level is newer than {release.name}"
    floor = release.floor(FeatureLevel(after))
    if floor <= before:
        return f"a downgrade to {back}, without loss"
    if floor < after:
        return f"a downgrade to {level_name(feature, floor)} at the lowest; {back} is out of reach"
    return f"none: {back} cannot hold what {level_name(feature, FeatureLevel(after))} writes"
