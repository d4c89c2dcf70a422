"""A node's features, from its ApiVersions response (KIP-584, KIP-778)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from featurewatch.common.text import quoted
from featurewatch.streams.types import FeatureLevel, FeatureName, SupportedRange

MAX_NAME_CHARS: Final = 255
"""A feature's name in characters: Kafka's longest has 32, and each is in every event of a node."""

MAX_FEATURES: Final = 1_000
"""The features of one node: Kafka 4.3 has seven."""

_HAS_FEATURES: Final = 3
_HAS_MINIMUM_ZERO: Final = 4
"""Versions of ApiVersions: with features, and with those whose range begins at 0."""


class AdvertisedRange(NamedTuple):
    """A feature's range as a node sent it, valid or not."""

    name: str
    low: int
    high: int

    def problem(self) -> str | None:
        """Why it is invalid, as the end of a sentence; None: it is valid."""
        if not self.name:
            return "has no name"
        if len(self.name) > MAX_NAME_CHARS or not self.name.isprintable():
            return f"has a name of more than {MAX_NAME_CHARS} characters, or of unprintable ones"
        if self.low < 0:
            return f"has the minimum {self.low}, below 0"
        if self.low > self.high:
            return f"has the minimum {self.low} above the maximum {self.high}"
        return None


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """A node's features.

    ``finalized`` is empty where it does not count: without an epoch of at least 0 (a controller
    that has not read the log yet sends the lowest level it knows, with epoch -1). ``invalid`` holds
    what the node advertises and cannot be, with the reason.
    """

    supported: Mapping[FeatureName, SupportedRange]
    finalized: Mapping[FeatureName, FeatureLevel]
    epoch: int
    complete: bool
    invalid: tuple[tuple[AdvertisedRange, str], ...] = ()

    def same_features(self, other: "NodeFeatures") -> bool:
        """Whether nothing changed but the epoch, which grows with every record on brokers."""
        return (
            self.supported == other.supported
            and self.finalized == other.finalized
            and self.complete == other.complete
            and self.invalid == other.invalid
            and (self.epoch < 0) == (other.epoch < 0)
        )


def read_node_features(response: Any) -> NodeFeatures:
    """The features in a response of any version; below version 3 it has no features.

    Raises `ValueError` if there are more than `MAX_FEATURES`.
    """
    if response.__version__ < _HAS_FEATURES:
        return NodeFeatures({}, {}, -1, complete=False)
    count = max(len(response.supported_features), len(response.finalized_features))
    if count > MAX_FEATURES:
        raise ValueError(f"{count} features, and no node has more than {MAX_FEATURES}")
    supported: dict[FeatureName, SupportedRange] = {}
    invalid: list[tuple[AdvertisedRange, str]] = []
    for feature in response.supported_features:
        advertised = AdvertisedRange(
            feature.name, int(feature.min_version), int(feature.max_version)
        )
        problem = advertised.problem()
        if problem is not None:
            invalid.append((advertised, f"supported feature {quoted(feature.name)!r} {problem}"))
        else:
            supported[FeatureName(feature.name)] = SupportedRange(advertised.low, advertised.high)
    finalized: dict[FeatureName, FeatureLevel] = {}
    epoch = max(int(response.finalized_features_epoch), -1)
    for level in response.finalized_features if epoch >= 0 else ():
        low, high = int(level.min_version_level), int(level.max_version_level)
        problem = AdvertisedRange(level.name, low, high).problem()
        if problem is not None:
            invalid.append(
                (
                    AdvertisedRange(level.name, low, high),
                    f"finalized feature {quoted(level.name)!r} {problem}",
                )
            )
        elif high > 0:
            finalized[FeatureName(level.name)] = FeatureLevel(high)
    complete = response.__version__ >= _HAS_MINIMUM_ZERO
    return NodeFeatures(supported, finalized, epoch, complete, tuple(invalid))
