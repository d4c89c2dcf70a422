"""What ``kafka-features describe`` of release 3.9 or 4.3 prints, to the byte."""

import json
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Final

from featurewatch.cli.output.terminal import print_line
from featurewatch.streams.types import METADATA_VERSION

if TYPE_CHECKING:
    from featurewatch.admin.features.metadata import FeatureMetadata

_LINES: Final = {
    "3.9": "Feature: {}\tSupportedMinVersion: {}\tSupportedMaxVersion: {}\t"
    "FinalizedVersionLevel: {}\tEpoch: {}",
    "4.3": "Feature: {:<40}  SupportedMinVersion: {:<15}  SupportedMaxVersion: {:<15}  "
    "FinalizedVersionLevel: {:<15}  Epoch: {}",
}


def print_features(metadata: "FeatureMetadata", compat: str) -> None:
    """A line for each supported feature, as the tool of the release ``compat`` prints them."""
    epoch = "-" if metadata.epoch is None else metadata.epoch
    for name, bounds in sorted(metadata.supported.items()):
        levels = (*bounds, metadata.finalized.get(name, 0))
        texts = (level_text(compat, name, level) for level in levels)
        print_line(_LINES[compat].format(name, *texts, epoch))


def level_text(compat: str, feature: str, level: int) -> str:
    """How a level is shown: that of metadata.version by its name, if the release knows it."""
    if feature != METADATA_VERSION:
        return str(level)
    return _level_names(compat).get(level) or f"UNKNOWN {level}"


@cache
def _level_names(release: str) -> dict[int, str]:
    """Level to name, the unstable levels of the release with them."""
    content = pkgutil.get_data("featurewatch.kafka.releases", "features.json")
    assert content is not None  # noqa: S101 - the package has its data
    table = json.loads(content)
    content_of_release = table["releases"][release]
    low, high = content_of_release["supported"]["metadata.version"]
    stable = [item for item in table["metadata.version"] if low <= item["level"] <= high]
    return {
        item["level"]: item["name"] for item in (*stable, *content_of_release["unstable_levels"])
    }
