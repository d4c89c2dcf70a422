"""The messages of the drafts of KIP-584, laid out for kio's codecs.

Each is a dataclass made from a table of fields, once for each version: version 0 of UpdateFeatures
and DeleteFeatures is of the old form, version 1 flexible; ApiVersions carries the drafts' tags
from version 3 on.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, Final

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.request_header.v1.header import RequestHeader as OldRequestHeader
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader as OldResponseHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from featurewatch.reference.wire.api_keys import (
    API_VERSIONS,
    DRAFT_DELETE,
    DRAFT_UPDATE,
    UPDATE_METADATA,
    ApiDialect,
)

SUPPORTED_TAG: Final = 10000
EPOCH_TAG: Final = 10001
FINALIZED_TAG: Final = 10002

_DEFAULT_TIMEOUT: Final = i32Timedelta.parse(datetime.timedelta(milliseconds=60_000))


@dataclass(frozen=True, slots=True)
class MessageClasses:
    """The classes of one API version: a request's and a response's, and those nested in them."""

    request: Any
    response: Any
    update: Any = None
    feature: Any = None
    """An item that names a feature with its level in UpdateFeatures, its name in DeleteFeatures."""
    supported: Any = None
    finalized: Any = None


class _Maker:
    """Makes the classes of one API version."""

    def __init__(self, key: int, version: int, *, flexible: bool) -> None:
        self._common = {
            "__version__": i16(version),
            "__flexible__": flexible,
            "__api_key__": i16(key),
        }
        self._flexible = flexible

    def request(self, name: str, fields: Sequence[Any]) -> Any:
        header = RequestHeader if self._flexible else OldRequestHeader
        return self._make(name, EntityType.request, header, fields)

    def response(self, name: str, fields: Sequence[Any], header: Any = None) -> Any:
        if header is None:
            header = ResponseHeader if self._flexible else OldResponseHeader
        return self._make(name, EntityType.response, header, fields)

    def item(self, name: str, fields: Sequence[Any]) -> Any:
        return self._make(name, EntityType.nested, RequestHeader, fields)

    def _make(self, name: str, kind: EntityType, header: Any, fields: Sequence[Any]) -> Any:
        namespace = {**self._common, "__type__": kind, "__header_schema__": header}
        return make_dataclass(
            name, fields, frozen=True, slots=True, kw_only=True, namespace=namespace
        )


def _of(name: str, type_: Any, kafka_type: str) -> Any:
    return (name, type_, field(metadata={"kafka_type": kafka_type}))


def _many(item: Any) -> Any:
    return GenericAlias(tuple, (item, ...))


_NAME = _of("name", str, "string")
_ERROR = (_of("error_code", i16, "int16"), _of("error_message", str | None, "string"))
_TIMEOUT = (
    "timeout",
    i32Timedelta,
    field(metadata={"kafka_type": "timedelta_i32"}, default=_DEFAULT_TIMEOUT),
)


def level_field(speech: ApiDialect) -> str:
    """What the drafts call a feature's level."""
    return "version_level" if speech is ApiDialect.LATER_DRAFT else "version"


@cache
def update_features(speech: ApiDialect, version: int) -> MessageClasses:
    """UpdateFeatures, key 48."""
    make = _Maker(DRAFT_UPDATE, version, flexible=version >= 1)
    feature = make.item("FeatureKey", [_NAME, _of(level_field(speech), i64, "int64")])
    how = (
        _of("allow_downgrade", bool, "bool")
        if speech is ApiDialect.LATER_DRAFT
        else _of("feature_update_type", i16, "int16")
    )
    update = make.item("FeatureUpdateKey", [how, ("feature", _many(feature))])
    request = make.request("UpdateFeaturesRequest", [_TIMEOUT, ("feature_update", _many(update))])
    answered: list[Any] = [*_ERROR]
    if speech is ApiDialect.EARLY_DRAFT_STRUCK:
        answered += [_of("features_epoch", i64, "int64"), ("features", _many(feature))]
    response = make.response("UpdateFeaturesResponse", answered)
    return MessageClasses(request, response, update, feature)


@cache
def delete_features(version: int) -> MessageClasses:
    """DeleteFeatures, key 49; the early draft's text gives 48 for the response, which has none."""
    make = _Maker(DRAFT_DELETE, version, flexible=version >= 1)
    feature = make.item("FeatureKey", [_NAME])
    request = make.request("DeleteFeaturesRequest", [_TIMEOUT, ("feature", _many(feature))])
    return MessageClasses(request, make.response("DeleteFeaturesResponse", _ERROR), feature=feature)


@cache
def update_metadata() -> MessageClasses:
    """UpdateMetadata version 6, of which only what the early draft's struck-out side adds is used.

    Topics and brokers are lists that stay empty: what they would hold, nobody here needs.
    """
    make = _Maker(UPDATE_METADATA, 6, flexible=True)
    feature = make.item("FeatureKey", [_NAME, _of("version", i64, "int64")])
    nothing = make.item("Nothing", [_of("nothing", i8, "int8")])
    request = make.request(
        "UpdateMetadataRequest",
        [
            _of("controller_id", i32, "int32"),
            _of("controller_epoch", i32, "int32"),
            _of("broker_epoch", i64, "int64"),
            ("topic_states", _many(nothing)),
            ("live_brokers", _many(nothing)),
            (
                "features_epoch",
                i64,
                field(metadata={"kafka_type": "int64", "tag": 10000}, default=i64(-1)),
            ),
            ("features", _many(feature), field(metadata={"tag": 10001}, default=())),
        ],
    )
    response = make.response("UpdateMetadataResponse", [_of("error_code", i16, "int16")])
    return MessageClasses(request, response, feature=feature)


@cache
def api_versions(speech: ApiDialect) -> MessageClasses:
    """ApiVersions version 3; its response keeps the old header, like Kafka's."""
    make = _Maker(API_VERSIONS, 3, flexible=True)
    supported = make.item(
        "SupportedFeatureKey",
        [_NAME, _of("min_version", i64, "int64"), _of("max_version", i64, "int64")],
    )
    finalized = make.item("FinalizedFeatureKey", [_NAME, _of(level_field(speech), i64, "int64")])
    response = make.response(
        "ApiVersionsResponse",
        [
            _of("error_code", i16, "int16"),
            ("api_keys", tuple[ApiVersion, ...]),
            _of("throttle_time", i32Timedelta, "timedelta_i32"),
            (
                "supported_features",
                _many(supported),
                field(metadata={"tag": SUPPORTED_TAG}, default=()),
            ),
            (
                "finalized_features_epoch",
                i64,
                field(metadata={"kafka_type": "int64", "tag": EPOCH_TAG}, default=i64(-1)),
            ),
            (
                "finalized_features",
                _many(finalized),
                field(metadata={"tag": FINALIZED_TAG}, default=()),
            ),
        ],
        OldResponseHeader,
    )
    return MessageClasses(ApiVersionsRequest, response, supported=supported, finalized=finalized)
