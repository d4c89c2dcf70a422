"""Decides UpdateFeatures requests as ``FeatureControlManager.updateFeatures`` does."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from featurewatch.controller.kraft.map_order import by_id, by_name, hash_map_order
from featurewatch.controller.kraft.release_rules import ReleaseRules, rules_of
from featurewatch.controller.kraft.requests import (
    ACCEPTED,
    ApiError,
    ConfigRecord,
    Errors,
    FeatureLevelRecord,
    LevelUpdate,
    NoOpRecord,
    Record,
    UpdateDecision,
    UpdateRequest,
    rejected,
)
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.controller.kraft.support import reason_not_supported
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    UpgradeType,
)

ELR_VERSION = FeatureName("eligible.leader.replicas.version")
_MIN_INSYNC = "min.insync.replicas"
_NO_LEVEL = "Unknown metadata version for FeatureControlManager"


def decide_update(release: str, state: ControllerState, request: UpdateRequest) -> UpdateDecision:
    """The response of a release's active controller, and the records that it would append.

    ``state`` is not changed, and a dry run has no records. The order of the checks and of several
    updates, and the texts, are Kafka's.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    rules = rules_of(release)
    finalized = state.metadata_version(rules.default_level)
    if finalized is None:
        return UpdateDecision(rejected(Errors.UNKNOWN_SERVER_ERROR, _NO_LEVEL), (), ())
    updates = request.by_feature()
    checks = _RequestChecks(rules, state, request.dry_run, finalized, updates)
    if rules.all_or_nothing:
        return _all_or_nothing(checks)
    results = {feature: checks.decide(updates[feature]) for feature in checks.order}
    return UpdateDecision(
        ACCEPTED,
        tuple((FeatureName(name), results[FeatureName(name)]) for name in by_name(results)),
        () if request.dry_run else tuple(checks.records),
    )


def _all_or_nothing(checks: "_RequestChecks") -> UpdateDecision:
    for feature in checks.order:
        answer = checks.decide(checks.updates[feature])
        if not answer.accepted:
            return UpdateDecision(answer, (), (), checks.raised)
    results = tuple((feature, ACCEPTED) for feature in checks.updates)
    if checks.dry_run:
        return UpdateDecision(ACCEPTED, results, ())
    elr = checks.updates.get(ELR_VERSION)
    elr_records = _elr_settings(checks.state) if elr and elr.level > 0 else ()
    return UpdateDecision(ACCEPTED, results, (*elr_records, *checks.records), checks.raised)


def _elr_settings(state: ControllerState) -> tuple[ConfigRecord, ...]:
    """The records that make ELR safe: one cluster-wide min.insync.replicas, none per broker."""
    min_insync = state.min_insync
    cluster = () if min_insync.cluster else (ConfigRecord("", _MIN_INSYNC, str(min_insync.static)),)
    brokers = (ConfigRecord(str(node), _MIN_INSYNC, None) for node in by_id(min_insync.brokers))
    return (*cluster, *brokers)


@dataclass(slots=True)
class _RequestChecks:
    """The checks of one request; collects the records."""

    rules: ReleaseRules
    state: ControllerState
    dry_run: bool
    finalized: FeatureLevel
    updates: Mapping[FeatureName, LevelUpdate]
    records: list[Record] = field(default_factory=list)
    raised: FeatureLevel | None = None

    @property
    def order(self) -> list[FeatureName]:
        """The features in the order in which the controller checks them."""
        return [FeatureName(name) for name in hash_map_order(self.updates)]

    def decide(self, update: LevelUpdate) -> ApiError:
        """The result for one feature; an accepted update adds its records."""
        if update.kind is UpgradeType.UNKNOWN:
            return _invalid(update, "The controller does not support the given upgrade type.")
        current = self._current(update.feature)
        if update.level < 0:
            return _invalid(update, "A feature version cannot be less than 0.")
        reason = reason_not_supported(self.state, update.feature, update.level, self.finalized)
        reason = reason or _direction(update, current)
        if reason:
            return _invalid(update, reason)
        if update.feature == METADATA_VERSION:
            return self._metadata_version(update)
        if update.feature == KRAFT_VERSION and self.rules.raft_decides:
            return self._kraft_version(update, current)
        return self._other(update)

    def _current(self, feature: FeatureName) -> FeatureLevel:
        if feature == METADATA_VERSION:
            return self.finalized
        if feature == KRAFT_VERSION and self.rules.raft_decides:
            return self.state.kraft_version
        if feature == KRAFT_VERSION and self.rules.skips_kraft_records:
            return FeatureLevel(0)
        return self.state.levels.get(feature, FeatureLevel(0))

    def _write(self, update: LevelUpdate) -> ApiError:
        self.records.append(FeatureLevelRecord(update.feature, update.level))
        return ACCEPTED

    def _metadata_version(self, update: LevelUpdate) -> ApiError:
        release = self.rules.release
        metadata_level = release.metadata_level(update.level)
        if metadata_level is None:
            levels = f"{release.minimum} to {release.levels[-1].level}"
            text = f"Valid versions are from {levels}." if self.rules.all_or_nothing else _UNKNOWN
            return _invalid_metadata(update, text)
        if self.rules.migrates and self.state.migration.in_progress:
            return _invalid_metadata(update, _MIGRATING)
        if update.level < release.bootstrap:
            lowest = release.metadata_level(release.bootstrap)
            name = lowest.name if lowest else str(release.bootstrap)
            return _invalid_metadata(update, f"Unable to set a metadata.version less than {name}")
        if not release.lossless(self.finalized, update.level):
            unsafe = update.kind is UpgradeType.UNSAFE_DOWNGRADE
            text = _UNSAFE if unsafe else _LOSSY
            if not self.rules.names_both_levels:
                return _invalid_metadata(update, text)
            levels = f"from {self.finalized} to {update.level}"
            text = f"Unsupported metadata.version downgrade {levels}. {text}"
            return rejected(Errors.INVALID_UPDATE_VERSION, text)
        return self._write(update)

    def _kraft_version(self, update: LevelUpdate, current: FeatureLevel) -> ApiError:
        if update.kind is not UpgradeType.UPGRADE:
            if update.level == current:
                return ACCEPTED
            return _invalid(update, "Can't downgrade the version of this feature.")
        versions = {
            version.level: version.name for version in self.rules.release.features[KRAFT_VERSION]
        }
        if update.level not in versions:
            return _invalid(update, f"Unknown KRaft feature level: {update.level}")
        if update.level > current and not self.state.voters_support_kraft:
            text = f"Invalid upgrade of {KRAFT_VERSION} to {versions[update.level]} because not all"
            return rejected(Errors.INVALID_UPDATE_VERSION, f"{text} of the voters support it")
        if update.level > current and not self.dry_run:
            self.raised = update.level
        self.records.append(NoOpRecord())
        return ACCEPTED

    def _other(self, update: LevelUpdate) -> ApiError:
        if self.rules.all_or_nothing and (text := self._dependency(update)):
            return _invalid(update, text)
        return self._write(update)

    def _dependency(self, update: LevelUpdate) -> str | None:
        """``Feature.validateVersion`` on the levels as they would be after the request."""
        release = self.rules.release
        versions = release.features.get(update.feature)
        if versions is None:
            return f"Feature {update.feature} not found."
        version = next(
            (candidate for candidate in versions if candidate.level == update.level), None
        )
        if version is None:
            return f"No feature:{update.feature} with feature level {update.level}"
        proposed = {**self.state.levels, METADATA_VERSION: self.finalized}
        proposed |= {requested.feature: requested.level for requested in self.updates.values()}
        cannot = f"{update.feature} could not be set to {update.level} because it depends on"
        if version.level >= 1 and proposed[METADATA_VERSION] < release.minimum:
            name = release.levels[0].name
            return f"{cannot} {METADATA_VERSION}={release.minimum} ({name})"
        for needed, level in version.dependencies.items():
            if proposed.get(needed, -1) < level:
                return f"{cannot} {needed} level {level}"
        return None


def _direction(update: LevelUpdate, current: FeatureLevel) -> str | None:
    if update.level < current and update.kind is UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > current and update.kind is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


_UNKNOWN = "Unknown metadata.version."
_MIGRATING = "Unable to modify metadata.version while a ZK migration is in progress."
_UNSAFE = "Unsafe metadata downgrade is not supported in this version."
_LOSSY = "Refusing to perform the requested downgrade because it might delete metadata information."


def _invalid(update: LevelUpdate, reason: str) -> ApiError:
    text = f"Invalid update version {update.level} for feature {update.feature}. {reason}"
    return rejected(Errors.INVALID_UPDATE_VERSION, text)


def _invalid_metadata(update: LevelUpdate, reason: str) -> ApiError:
    text = f"Invalid metadata.version {update.level}. {reason}"
    return rejected(Errors.INVALID_UPDATE_VERSION, text)
