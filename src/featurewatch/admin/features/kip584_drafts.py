"""The messages of KIP-584's two drafts, as their clients send and read them; no IO.

Both put UPDATE_FEATURES on key 48 and features on the tags 10000 to 10002 of ApiVersions, each in a
form of its own; the early one has DELETE_FEATURES on key 49. Flexible versions only: who has
features has KIP-482.
"""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader as OldResponseHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32Timedelta, i64

from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.kafka.connection import CLIENT_ID, CLIENT_VERSION
from featurewatch.streams.types import FeatureName, UpgradeType

UPDATE: Final = 48
DELETE: Final = 49
_ADD, _LOWER = 0, 1
"""``FeatureUpdateType`` of the early draft: add or update, and the same with a downgrade."""


def _is(kafka_type: str, tag: int | None = None) -> dict[str, Any]:
    return {"kafka_type": kafka_type} if tag is None else {"kafka_type": kafka_type, "tag": tag}


class _Flexible:
    """What all these messages have in common."""

    __version__: ClassVar[i16] = i16(1)
    __flexible__: ClassVar[bool] = True
    __type__: ClassVar = EntityType.nested
    __header_schema__: ClassVar[Any] = RequestHeader
    __api_key__: ClassVar[i16] = i16(UPDATE)


def _timeout(timeout_s: float) -> i32Timedelta:
    return i32Timedelta.parse(datetime.timedelta(milliseconds=int(timeout_s * 1000)))


@dataclass(frozen=True)
class EarlyFeature(_Flexible):
    """A feature and its level in the early draft."""

    name: str = field(metadata=_is("string"))
    version: i64 = field(metadata=_is("int64"))


@dataclass(frozen=True)
class EarlyFeatureUpdate(_Flexible):
    """Features that are updated in one way."""

    feature_update_type: i16 = field(metadata=_is("int16"))
    feature: tuple[EarlyFeature, ...]


@dataclass(frozen=True)
class EarlyUpdateFeatures(_Flexible):
    """UPDATE_FEATURES of the early draft."""

    __type__: ClassVar = EntityType.request
    timeout: i32Timedelta = field(metadata=_is("timedelta_i32"))
    feature_update: tuple[EarlyFeatureUpdate, ...]


@dataclass(frozen=True)
class LateFeature(_Flexible):
    """A feature and its level in the later draft; a level below 1 deletes."""

    name: str = field(metadata=_is("string"))
    version_level: i64 = field(metadata=_is("int64"))


@dataclass(frozen=True)
class LateFeatureUpdate(_Flexible):
    """Features that are updated in one way."""

    allow_downgrade: bool = field(metadata=_is("bool"))
    feature: tuple[LateFeature, ...]


@dataclass(frozen=True)
class LateUpdateFeatures(_Flexible):
    """UPDATE_FEATURES of the later draft."""

    __type__: ClassVar = EntityType.request
    timeout: i32Timedelta = field(metadata=_is("timedelta_i32"))
    feature_update: tuple[LateFeatureUpdate, ...]


@dataclass(frozen=True)
class DeletedFeature(_Flexible):
    """A feature by its name."""

    name: str = field(metadata=_is("string"))


@dataclass(frozen=True)
class DeleteFeaturesRequest(_Flexible):
    """DELETE_FEATURES of the early draft."""

    __type__: ClassVar = EntityType.request
    __api_key__: ClassVar[i16] = i16(DELETE)
    timeout: i32Timedelta = field(metadata=_is("timedelta_i32"))
    feature: tuple[DeletedFeature, ...]


@dataclass(frozen=True)
class DraftResponse(_Flexible):
    """The response to both requests."""

    __type__: ClassVar = EntityType.response
    __header_schema__: ClassVar[Any] = ResponseHeader
    error_code: i16 = field(metadata=_is("int16"))
    error_message: str | None = field(metadata=_is("string"))


@dataclass(frozen=True)
class DraftSupportedRange(_Flexible):
    """A range that a broker supports."""

    name: str = field(metadata=_is("string"))
    min_version: i64 = field(metadata=_is("int64"))
    max_version: i64 = field(metadata=_is("int64"))


@dataclass(frozen=True)
class _Features(_Flexible):
    """ApiVersions version 3 as both drafts begin it; the response's header is old, like Kafka's."""

    __version__: ClassVar[i16] = i16(3)
    __type__: ClassVar = EntityType.response
    __api_key__: ClassVar[i16] = i16(18)
    __header_schema__: ClassVar[Any] = OldResponseHeader
    error_code: i16 = field(metadata=_is("int16"))
    api_keys: tuple[ApiVersion, ...]
    throttle_time: i32Timedelta = field(metadata=_is("timedelta_i32"))
    supported_features: tuple[DraftSupportedRange, ...] = field(metadata={"tag": 10000}, default=())
    finalized_features_epoch: i64 = field(metadata=_is("int64", 10001), default=i64(-1))


@dataclass(frozen=True)
class EarlyFeatures(_Features):
    """With the early draft's levels."""

    finalized_features: tuple[EarlyFeature, ...] = field(metadata={"tag": 10002}, default=())


@dataclass(frozen=True)
class LateFeatures(_Features):
    """With the later draft's levels."""

    finalized_features: tuple[LateFeature, ...] = field(metadata={"tag": 10002}, default=())


def level_field(dialect: FeatureDialect) -> str:
    """What a draft calls a finalized level on the wire."""
    return "version_level" if dialect is FeatureDialect.LATE else "version"


def features_request(dialect: FeatureDialect) -> tuple[Any, Any]:
    """The request for features, and the class of its response."""
    request = ApiVersionsRequest(
        client_software_name=CLIENT_ID, client_software_version=CLIENT_VERSION
    )
    return request, LateFeatures if dialect is FeatureDialect.LATE else EarlyFeatures


def update_request(
    dialect: FeatureDialect, updates: Iterable[FeatureUpdate], timeout_s: float = 60.0
) -> tuple[Any, Any]:
    """One request with an item for each update, and the class of its response."""
    updates = tuple(updates)
    timeout = _timeout(timeout_s)
    if dialect is FeatureDialect.LATE:
        late = tuple(
            LateFeatureUpdate(
                update.allows_downgrade(), (LateFeature(update.feature, i64(update.level)),)
            )
            for update in updates
        )
        return LateUpdateFeatures(timeout, late), DraftResponse
    early = tuple(
        EarlyFeatureUpdate(
            i16(_ADD if update.kind is UpgradeType.UPGRADE else _LOWER),
            (EarlyFeature(update.feature, i64(update.level)),),
        )
        for update in updates
    )
    return EarlyUpdateFeatures(timeout, early), DraftResponse


def delete_request(features: Iterable[FeatureName], timeout_s: float = 60.0) -> tuple[Any, Any]:
    """The early draft's deletion, and the class of its response."""
    return DeleteFeaturesRequest(
        _timeout(timeout_s), tuple(DeletedFeature(n) for n in features)
    ), DraftResponse
