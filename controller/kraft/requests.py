"""What is asked of a controller, and its answers."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType


class Errors(IntEnum):
    """Kafka's error codes that a feature update or a registration may get (``Errors``)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNSUPPORTED_VERSION = 35
    INVALID_UPDATE_VERSION = 95
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_CLUSTER_ID = 104
    INVALID_REGISTRATION = 119


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error code and Kafka's text; no text with `Errors.NONE`."""

    error: Errors
    text: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the controller agrees."""
        return self.error is Errors.NONE


ACCEPTED: Final = ApiError(Errors.NONE)


def rejected(error: Errors, text: str) -> ApiError:
    """A refusal in the controller's words."""
    return ApiError(error, text)


@dataclass(frozen=True, slots=True)
class LevelUpdate:
    """A level to finalize; 0 removes the feature."""

    feature: FeatureName
    level: FeatureLevel
    kind: UpgradeType = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """An ``UpdateFeatures`` request. Of two updates of one feature the later counts."""

    updates: tuple[LevelUpdate, ...]
    dry_run: bool = False

    def by_feature(self) -> dict[FeatureName, LevelUpdate]:
        """The updates as the controller takes them in, in the request's order."""
        return {update.feature: update for update in self.updates}


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """A ``FeatureLevelRecord``."""

    feature: FeatureName
    level: FeatureLevel


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """A ``NoOpRecord``: an offset to wait for after kraft.version was raised."""


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """A broker setting that ELR forbids or needs; an empty broker stands for the whole cluster."""

    broker: str
    name: str
    value: str | None


Record = FeatureLevelRecord | NoOpRecord | ConfigRecord


@dataclass(frozen=True, slots=True)
class UpdateDecision:
    """What becomes of an ``UpdateFeatures`` request.

    ``answer`` is for the whole request; ``results`` are for each feature, in the order of their
    names: before 4.0 each has its own, and the good ones are applied though others failed. From 4.0
    on one failure refuses all, and ``results`` are empty then. ``records`` go into the log as one
    batch. ``kraft_version`` is the level that raft was told to write, which a later failure in the
    same request does not take back.
    """

    answer: ApiError
    results: tuple[tuple[FeatureName, ApiError], ...]
    records: tuple[Record, ...]
    kraft_version: FeatureLevel | None = None

    @property
    def accepted(self) -> bool:
        """Whether nothing at all was refused."""
        return self.answer.accepted and all(answer.accepted for _, answer in self.results)

    @property
    def refusals(self) -> tuple[str, ...]:
        """The texts that a client gets to see, the whole request's first."""
        said = [answer.text or "" for _, answer in self.results if not answer.accepted]
        if not self.answer.accepted:
            said.insert(0, WHOLE_REQUEST + (self.answer.text or ""))
        return tuple(said)


WHOLE_REQUEST: Final = (
    "The update failed for all features since the following feature had an error: "
)
"""What ``QuorumController`` puts before the reason from 4.0 on."""
