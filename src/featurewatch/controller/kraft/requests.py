"""Requests to a controller, and its responses."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType


class Errors(IntEnum):
    """Kafka's error codes that a feature update or a registration may get (``Errors``).

    ``UNSAFE_FEATURE_DOWNGRADE`` is in KIP-778 only, without a number, and was never released.
    """

    UNSAFE_FEATURE_DOWNGRADE = -778
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    INVALID_UPDATE_VERSION = 95
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_CLUSTER_ID = 104
    INVALID_REGISTRATION = 119
    CONTROLLER_ID_NOT_REGISTERED = 136


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error code and Kafka's text; no text with `Errors.NONE`."""

    error: Errors
    text: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the code is `Errors.NONE`."""
        return self.error is Errors.NONE


ACCEPTED: Final = ApiError(Errors.NONE)


def rejected(error: Errors, text: str) -> ApiError:
    """A refusal with the text of the controller."""
    return ApiError(error, text)


@dataclass(frozen=True, slots=True)
class LevelUpdate:
    """A level to finalize; 0 removes the feature."""

    feature: FeatureName
    level: FeatureLevel
    kind: UpgradeType = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """An ``UpdateFeatures`` request. Of two updates of the same feature the later one counts."""

    updates: tuple[LevelUpdate, ...]
    dry_run: bool = False

    def by_feature(self) -> dict[FeatureName, LevelUpdate]:
        """The updates as the controller applies them, in the request's order."""
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
    """A broker setting that ELR forbids or needs; an empty ``broker`` means the whole cluster."""

    broker: str
    name: str
    value: str | None


Record = FeatureLevelRecord | NoOpRecord | ConfigRecord


@dataclass(frozen=True, slots=True)
class UpdateDecision:
    """The controller's decision on an ``UpdateFeatures`` request.

    ``answer`` is the top-level result, ``results`` are those of the features, sorted by name.
    Before 4.0 each feature succeeds or fails alone. From 4.0 on one failure refuses the whole
    request, and ``results`` is empty. ``records`` are appended to the log as one batch.
    ``kraft_version`` is the level that raft writes, which a later failure in the same request does
    not revert.
    """

    answer: ApiError
    results: tuple[tuple[FeatureName, ApiError], ...]
    records: tuple[Record, ...]
    kraft_version: FeatureLevel | None = None

    @property
    def accepted(self) -> bool:
        """Whether nothing was refused."""
        return self.answer.accepted and all(answer.accepted for _, answer in self.results)

    @property
    def refusals(self) -> tuple[str, ...]:
        """The error texts that a client gets, that of the whole request first."""
        texts = [answer.text or "" for _, answer in self.results if not answer.accepted]
        if not self.answer.accepted:
            texts.insert(0, WHOLE_REQUEST + (self.answer.text or ""))
        return tuple(texts)


WHOLE_REQUEST: Final = (
    "The update failed for all features since the following feature had an error: "
)
"""The prefix that ``QuorumController`` adds to the reason from 4.0 on."""
