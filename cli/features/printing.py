"""How what a node says of features is printed; no more than that, so that it is there at once."""

from typing import TYPE_CHECKING

from cli.features import tool

if TYPE_CHECKING:
    from admin.metadata import FeatureMetadata


def print_features(known: "FeatureMetadata", compat: str) -> None:
    """A line for each supported feature, as the tool of the release ``compat`` prints them."""
    speaks = tool.KafkaFeaturesTool(compat)
    for name, (low, high) in sorted(known.supported.items()):
        line = tool.DescribeLine(
            name,
            speaks.level_text(name, low),
            speaks.level_text(name, high),
            speaks.level_text(name, known.finalized.get(name, 0)),
            "-" if known.epoch is None else str(known.epoch),
        )
        print(speaks.described(line))
