"""UpdateFeatures, decided by `controller.kraft`, and the first levels of a log."""

from collections.abc import Mapping

from featurewatch.controller.kraft import (
    LevelUpdate,
    UpdateDecision,
    UpdateRequest,
    UpgradeType,
    decide_update,
    decide_update_as_written,
)
from featurewatch.controller.kraft.kip_778 import first_record
from featurewatch.controller.kraft.requests import (
    WHOLE_REQUEST,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from featurewatch.reference.kraft.machines.controller.gates import gates_of
from featurewatch.reference.kraft.machines.controller.requests import (
    FeatureUpdate,
    UpdatableFeatureResult,
    UpdateFeatures,
    UpdateFeaturesResponse,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.controller.work import Work
from featurewatch.reference.kraft.machines.metadata.state import BROKER
from featurewatch.reference.kraft.machines.metadata.state_records import config_record, level_record
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName

_RESULTS_END = 2
"""From this version on a response has no results of single features."""


def bootstrap(work: Work) -> None:
    """Writes the first levels into a log that has none; ends the transaction of a lost leader."""
    if work.state.transaction is not None:
        work.add("ABORT_TRANSACTION_RECORD", reason="Controller failover")
    levels = work.settings.first_levels
    if work.settings.form is Form.KIP_778:
        first = first_record(work.state.levels, levels[METADATA_VERSION])
        if first is not None:
            work.write(level_record(first.feature, first.level))
    elif work.state.is_empty:
        _write_first(work, levels)


def _write_first(work: Work, levels: Mapping[FeatureName, FeatureLevel]) -> None:
    """``ActivationRecordsGenerator.recordsForEmptyLog``."""
    gates = gates_of(work.settings.release, levels[METADATA_VERSION])
    if gates.transactions:
        work.add("BEGIN_TRANSACTION_RECORD", name="Bootstrap records")
    for feature, level in levels.items():
        work.write(level_record(feature, level))
    if gates.migration:
        work.add("ZK_MIGRATION_STATE_RECORD", zkMigrationState=0)
    if gates.transactions:
        work.add("END_TRANSACTION_RECORD")


def update_features(work: Work, request: UpdateFeatures, version: int) -> UpdateFeaturesResponse:
    """Changes levels, or says why not; ``version`` is that of the request."""
    is_kip = work.settings.form is Form.KIP_778
    updates = tuple(_update(one, version, is_kip=is_kip) for one in request.feature_updates)
    decide = decide_update_as_written if is_kip else decide_update
    decision = decide(
        work.settings.release,
        work.controller_state(),
        UpdateRequest(updates, dry_run=request.validate_only),
    )
    for one in decision.records:
        match one:
            case FeatureLevelRecord(feature, level):
                work.write(level_record(feature, level))
                work.log(f"{feature} becomes {level}")
            case ConfigRecord(broker, name, value):
                work.write(config_record(BROKER, broker, name, value))
            case NoOpRecord():
                work.add("NO_OP_RECORD")
    return _response(decision, version)


def _update(one: FeatureUpdate, version: int, *, is_kip: bool) -> LevelUpdate:
    """An update with its type, whose numbers the document counts from 0."""
    if version == 0:
        kind = UpgradeType.SAFE_DOWNGRADE if one.allow_downgrade else UpgradeType.UPGRADE
    else:
        kind = UpgradeType.of(one.upgrade_type + is_kip)
    return LevelUpdate(FeatureName(one.feature), FeatureLevel(one.max_version_level), kind)


def _response(decision: UpdateDecision, version: int) -> UpdateFeaturesResponse:
    """The response of ``QuorumController.updateFeatures``."""
    answer = decision.answer
    if answer.accepted and version >= _RESULTS_END:  # has no place for the error of one feature
        answer = next((one for _, one in decision.results if not one.accepted), answer)
    if not answer.accepted:
        return UpdateFeaturesResponse(int(answer.error), WHOLE_REQUEST + (answer.text or ""))
    results = tuple(
        UpdatableFeatureResult(str(feature), int(found.error), found.text)
        for feature, found in decision.results
    )
    return UpdateFeaturesResponse(0, None, results if version < _RESULTS_END else ())
