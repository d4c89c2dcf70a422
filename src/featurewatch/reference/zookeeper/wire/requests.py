"""Converts wire requests to the machines' requests; pure."""

import re
from typing import Any, Final

from featurewatch.reference.zookeeper.machines.requests import (
    DeleteFeatures,
    EarlyUpdate,
    LaterUpdate,
    ReleasedUpdate,
    Update,
    UpdateFeatures,
    UpdateMetadata,
)
from featurewatch.reference.zookeeper.wire.api_keys import DRAFT_DELETE, DRAFT_UPDATE, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.streams.types import UpgradeType

_WITH_TYPES: Final = 1
"""The version of released Kafka's request that has what KIP-778 has in all versions."""
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def is_valid_software(body: Any) -> bool:
    """Whether an ApiVersions request has a valid client software name and version (KIP-511).

    Versions without these fields are valid.
    """
    names = (
        getattr(body, "client_software_name", None),
        getattr(body, "client_software_version", None),
    )
    return all(name is None or _SOFTWARE.fullmatch(name) is not None for name in names)


def read_update_features(
    request: WireRequest, api_dialect: ApiDialect
) -> UpdateFeatures | DeleteFeatures:
    """The controller's request for an update or a deletion of features."""
    body = request.body
    if request.key == DRAFT_DELETE:
        return DeleteFeatures(tuple(item.name for item in body.feature), body.timeout_ms)
    if request.key == DRAFT_UPDATE:
        return UpdateFeatures(
            _draft_updates(body, api_dialect), body.timeout_ms, version=request.version
        )
    if api_dialect is ApiDialect.KIP_778:
        return UpdateFeatures(
            tuple(_as_written(item) for item in body.feature_updates),
            body.timeout_ms,
            version=_WITH_TYPES,
            validate_only=getattr(body, "dry_run", False),
        )
    return UpdateFeatures(
        tuple(_released(item) for item in body.feature_updates),
        body.timeout_ms,
        version=request.version,
        validate_only=getattr(body, "validate_only", False),
    )


def read_update_metadata(request: WireRequest) -> UpdateMetadata:
    """The message that a controller pushes to a broker."""
    body = request.body
    features = {item.name: item.version_level for item in body.features}
    return UpdateMetadata(body.features_epoch, features)


def _released(item: Any) -> ReleasedUpdate:
    return ReleasedUpdate(
        item.feature,
        int(item.max_version_level),
        allow_downgrade=getattr(item, "allow_downgrade", False),
        upgrade_type=int(getattr(item, "upgrade_type", UpgradeType.UPGRADE)),
    )


def _as_written(item: Any) -> ReleasedUpdate:
    """KIP-778's DowngradeType 0, 1 and 2 are released Kafka's UpgradeType 1, 2 and 3."""
    return ReleasedUpdate(
        item.feature, int(item.max_version_level), upgrade_type=int(item.downgrade_type) + 1
    )


def _draft_updates(body: Any, api_dialect: ApiDialect) -> tuple[Update, ...]:
    """The updates of a draft's request, whose items each apply one mode to several features."""
    if api_dialect is ApiDialect.LATER_DRAFT:
        return tuple(
            LaterUpdate(feature.name, feature.version_level, update.allow_downgrade)
            for update in body.feature_update
            for feature in update.feature
        )
    return tuple(
        EarlyUpdate(feature.name, feature.version_level, update.feature_update_type)
        for update in body.feature_update
        for feature in update.feature
    )
