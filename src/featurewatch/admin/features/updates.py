"""Updates of finalized levels and their results; plain values (KIP-584, KIP-778)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum

from featurewatch.admin.api_errors import error_text
from featurewatch.admin.errors import UpdateRefusedError
from featurewatch.streams.types import FeatureLevel, FeatureName, UpgradeType


class DowngradeType(IntEnum):
    """The type of a downgrade in KIP-778 as written; released Kafka counts from one more."""

    NONE = 0
    SAFE = 1
    UNSAFE = 2

    @property
    def upgrade_type(self) -> UpgradeType:
        """The same in released Kafka."""
        return UpgradeType(self + 1)

    @classmethod
    def of(cls, kind: UpgradeType) -> "DowngradeType":
        """KIP-778's type of what released Kafka calls ``kind``."""
        return cls(kind - 1)


class AllowDowngradeSemantics(Enum):
    """Which meaning the boolean has that update types replaced."""

    WRITTEN = "KIP-778, to the letter"
    RELEASED = "Kafka 3.3 and later"


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A level to set; 0 removes the feature."""

    feature: FeatureName
    level: FeatureLevel
    kind: UpgradeType = UpgradeType.UPGRADE

    @classmethod
    def of_boolean(
        cls,
        feature: FeatureName,
        level: FeatureLevel,
        allow_downgrade: bool,
        reading: AllowDowngradeSemantics = AllowDowngradeSemantics.RELEASED,
    ) -> "FeatureUpdate":
        """The deprecated form, made of a level and whether it may be lower (``FeatureUpdate``).

        True is a safe downgrade. False is an upgrade in released Kafka; KIP-778 as written gives
        a safe downgrade for either.
        """
        safe = allow_downgrade or reading is AllowDowngradeSemantics.WRITTEN
        return cls(feature, level, UpgradeType.SAFE_DOWNGRADE if safe else UpgradeType.UPGRADE)

    def allows_downgrade(
        self, reading: AllowDowngradeSemantics = AllowDowngradeSemantics.RELEASED
    ) -> bool:
        """The deprecated ``allowDowngrade()``: as written it is true for safe downgrades alone."""
        if reading is AllowDowngradeSemantics.WRITTEN:
            return self.kind is UpgradeType.SAFE_DOWNGRADE
        return self.kind is not UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True)
class FeatureResult:
    """The result of one update: ``error`` is 0, or Kafka's number with the text for people."""

    feature: FeatureName
    error: int = 0
    text: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the controller accepted it."""
        return self.error == 0


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The result of a request, for each feature in the order of their names.

    Controllers of 3.x apply those that are accepted though others are not; from 4.0 on, and in the
    drafts of KIP-584, one refusal refuses all, and every feature has its text.
    """

    results: tuple[FeatureResult, ...]

    @property
    def refused(self) -> tuple[FeatureResult, ...]:
        """The updates that the controller refused."""
        return tuple(result for result in self.results if not result.accepted)

    def check(self) -> None:
        """Does nothing if all was accepted.

        Raises:
            UpdateRefusedError: With the texts of the refused ones, each text once.
        """
        texts = dict.fromkeys(result.text or str(result.error) for result in self.refused)
        if texts:
            raise UpdateRefusedError("; ".join(texts))


def uniform_result(features: Iterable[FeatureName], error: int, text: str | None) -> UpdateResult:
    """The result of a request that was answered as a whole."""
    message = None if error == 0 else text or error_text(error)
    return UpdateResult(
        tuple(FeatureResult(name, error, message) for name in sorted(set(features)))
    )
