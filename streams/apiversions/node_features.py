"""What a node says by ApiVersions, read from Kafka's response (KIP-584, KIP-778)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from featurewatch.streams.types import FeatureLevel, FeatureName, Range

_HAS_FEATURES: Final = 3
_HAS_MINIMUM_ZERO: Final = 4
"""Versions of ApiVersions: with features, and with those whose range begins at 0."""


class AdvertisedRange(NamedTuple):
    """A feature as a node put it on the wire, whether it makes sense or not."""

    name: str
    low: int
    high: int

    def problem(self) -> str | None:
        """What is wrong with it, as the end of a sentence; None: nothing."""
        if not self.name:
            return "has no name"
        if self.low < 0:
            return f"has the minimum {self.low}, below 0"
        if self.low > self.high:
            return f"has the minimum {self.low} above the maximum {self.high}"
        return None


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """A node's answer.

    ``finalized`` is empty where it does not count: without an epoch of at least 0 (a controller
    that has not read the log yet says the lowest level it knows, with epoch -1). ``invalid`` holds
    what the node advertises and cannot be, with the reason.
    """

    supported: Mapping[FeatureName, Range]
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
    """The answer in a response of any version; below version 3 there are no features in it."""
    if response.__version__ < _HAS_FEATURES:
        return NodeFeatures({}, {}, -1, complete=False)
    supported: dict[FeatureName, Range] = {}
    faults: list[tuple[AdvertisedRange, str]] = []
    for feature in response.supported_features:
        advertised = AdvertisedRange(
            feature.name, int(feature.min_version), int(feature.max_version)
        )
        fault = advertised.problem()
        if fault is not None:
            faults.append((advertised, f"supported feature {feature.name!r} {fault}"))
        else:
            supported[FeatureName(feature.name)] = (advertised.low, advertised.high)
    finalized: dict[FeatureName, FeatureLevel] = {}
    epoch = max(int(response.finalized_features_epoch), -1)
    for level in response.finalized_features if epoch >= 0 else ():
        low, high = int(level.min_version_level), int(level.max_version_level)
        fault = AdvertisedRange(level.name, low, high).problem()
        if fault is not None:
            faults.append(
                (
                    AdvertisedRange(level.name, low, high),
                    f"finalized feature {level.name!r} {fault}",
                )
            )
        elif high > 0:
            finalized[FeatureName(level.name)] = FeatureLevel(high)
    complete = response.__version__ >= _HAS_MINIMUM_ZERO
    return NodeFeatures(supported, finalized, epoch, complete, tuple(faults))
