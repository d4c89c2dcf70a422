"""The requests of KIP-584's two drafts; no IO.

Both put UPDATE_FEATURES on key 48 and features on other tags of ApiVersions than released Kafka;
the early one has DELETE_FEATURES on key 49. Only flexible versions are used, because nodes with
features support KIP-482.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.kafka.connection import CLIENT_ID, CLIENT_VERSION
from featurewatch.kafka.messages import (
    DraftApiVersionsRequestV3,
    EarlyDeleteFeaturesRequestV1,
    EarlyUpdateFeaturesRequestV1,
    LateUpdateFeaturesRequestV1,
    Request,
)
from featurewatch.streams.types import FeatureName, UpgradeType

if TYPE_CHECKING:
    from featurewatch.kafka.messages import (
        EarlyUpdateFeaturesResponseV1,
        LateUpdateFeaturesResponseV1,
    )

LEVEL_FIELD: Final = "version_level"
"""The field of a finalized level in a response to `features_request`."""
_ADD, _LOWER = 0, 1
"""``FeatureUpdateType`` of the early draft: add or update, and the same with a downgrade."""


def features_request() -> DraftApiVersionsRequestV3:
    """The request for features."""
    return DraftApiVersionsRequestV3(
        client_software_name=CLIENT_ID, client_software_version=CLIENT_VERSION
    )


def update_request(
    dialect: FeatureDialect, updates: Iterable[FeatureUpdate], timeout_s: float = 60.0
) -> "Request[EarlyUpdateFeaturesResponseV1 | LateUpdateFeaturesResponseV1]":
    """One request with an item for each update."""
    timeout_ms = int(timeout_s * 1000)
    if dialect is FeatureDialect.LATE:
        late = LateUpdateFeaturesRequestV1
        return late(
            timeout_ms=timeout_ms,
            feature_update=tuple(
                late.FeatureUpdateKey(
                    allow_downgrade=update.allows_downgrade(),
                    feature=(late.FeatureKey(name=update.feature, version_level=update.level),),
                )
                for update in updates
            ),
        )
    early = EarlyUpdateFeaturesRequestV1
    return early(
        timeout_ms=timeout_ms,
        feature_update=tuple(
            early.FeatureUpdateKey(
                feature_update_type=_ADD if update.kind is UpgradeType.UPGRADE else _LOWER,
                feature=(early.FeatureKey(name=update.feature, version_level=update.level),),
            )
            for update in updates
        ),
    )


def delete_request(
    features: Iterable[FeatureName], timeout_s: float = 60.0
) -> EarlyDeleteFeaturesRequestV1:
    """The early draft's deletion."""
    form = EarlyDeleteFeaturesRequestV1
    names = tuple(form.FeatureKey(name=name) for name in features)
    return form(timeout_ms=int(timeout_s * 1000), feature=names)
