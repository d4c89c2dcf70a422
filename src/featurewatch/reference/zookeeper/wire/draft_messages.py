"""The messages of the drafts of KIP-584, as dataclasses for kio's codecs.

Each class is built from a table of fields, once per version. Version 0 of UpdateFeatures and
DeleteFeatures is not flexible, version 1 is; ApiVersions has the drafts' tags from version 3 on.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, Final

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.api_versions.v4 import response as released_api_versions
from kio.schema.api_versions.v4.request import ApiVersionsRequest as ApiVersionsRequest4
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader as OldRequestHeader
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader as OldResponseHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from featurewatch.reference.zookeeper.wire.api_keys import (
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
    """The classes of one API version: request, response and their nested items."""

    request: Any
    response: Any
    update: Any = None
    feature: Any = None
    """A feature with its level in UpdateFeatures, a feature's name in DeleteFeatures."""
    supported: Any = None
    finalized: Any = None


class MessageClassBuilder:
    """Builds the classes of one API version; a field is (name, type, `dataclasses.field`)."""

    def __init__(self, key: int, version: int, *, flexible: bool) -> None:
        self._common = {
            "__version__": i16(version),
            "__flexible__": flexible,
            "__api_key__": i16(key),
        }
        self._flexible = flexible

    def request(self, name: str, fields: Sequence[Any]) -> Any:
        """The class of the request."""
        header = RequestHeader if self._flexible else OldRequestHeader
        return self._make(name, EntityType.request, header, fields)

    def response(self, name: str, fields: Sequence[Any], header: Any = None) -> Any:
        """The class of the response; ``header`` None: the header of this version."""
        if header is None:
            header = ResponseHeader if self._flexible else OldResponseHeader
        return self._make(name, EntityType.response, header, fields)

    def item(self, name: str, fields: Sequence[Any]) -> Any:
        """The class of a nested item."""
        return self._make(name, EntityType.nested, RequestHeader, fields)

    def _make(self, name: str, kind: EntityType, header: Any, fields: Sequence[Any]) -> Any:
        namespace = {**self._common, "__type__": kind, "__header_schema__": header}
        return make_dataclass(
            name, fields, frozen=True, slots=True, kw_only=True, namespace=namespace
        )


def _field(name: str, type_: Any, kafka_type: str) -> Any:
    return (name, type_, field(metadata={"kafka_type": kafka_type}))


def _array(item: Any) -> Any:
    return GenericAlias(tuple, (item, ...))


_NAME = _field("name", str, "string")
_ERROR = (_field("error_code", i16, "int16"), _field("error_message", str | None, "string"))
_TIMEOUT = (
    "timeout",
    i32Timedelta,
    field(metadata={"kafka_type": "timedelta_i32"}, default=_DEFAULT_TIMEOUT),
)


def level_field(api_dialect: ApiDialect) -> str:
    """The drafts' field name for a feature's level."""
    return "version_level" if api_dialect is ApiDialect.LATER_DRAFT else "version"


@cache
def update_features(api_dialect: ApiDialect, version: int) -> MessageClasses:
    """UpdateFeatures, key 48."""
    build = MessageClassBuilder(DRAFT_UPDATE, version, flexible=version >= 1)
    feature = build.item("FeatureKey", [_NAME, _field(level_field(api_dialect), i64, "int64")])
    mode = (
        _field("allow_downgrade", bool, "bool")
        if api_dialect is ApiDialect.LATER_DRAFT
        else _field("feature_update_type", i16, "int16")
    )
    update = build.item("FeatureUpdateKey", [mode, ("feature", _array(feature))])
    request = build.request("UpdateFeaturesRequest", [_TIMEOUT, ("feature_update", _array(update))])
    response_fields: list[Any] = [*_ERROR]
    if api_dialect is ApiDialect.EARLY_DRAFT_STRUCK:
        response_fields += [_field("features_epoch", i64, "int64"), ("features", _array(feature))]
    response = build.response("UpdateFeaturesResponse", response_fields)
    return MessageClasses(request, response, update, feature)


@cache
def delete_features(version: int) -> MessageClasses:
    """DeleteFeatures, key 49; the early draft gives 48 for the response, which has no key."""
    build = MessageClassBuilder(DRAFT_DELETE, version, flexible=version >= 1)
    feature = build.item("FeatureKey", [_NAME])
    request = build.request("DeleteFeaturesRequest", [_TIMEOUT, ("feature", _array(feature))])
    return MessageClasses(
        request, build.response("DeleteFeaturesResponse", _ERROR), feature=feature
    )


@cache
def update_metadata() -> MessageClasses:
    """UpdateMetadata version 6 with the fields that the early draft's struck-out text adds.

    The lists of topics and brokers stay empty, because no reference node needs them.
    """
    build = MessageClassBuilder(UPDATE_METADATA, 6, flexible=True)
    feature = build.item("FeatureKey", [_NAME, _field("version", i64, "int64")])
    nothing = build.item("Nothing", [_field("nothing", i8, "int8")])
    request = build.request(
        "UpdateMetadataRequest",
        [
            _field("controller_id", i32, "int32"),
            _field("controller_epoch", i32, "int32"),
            _field("broker_epoch", i64, "int64"),
            ("topic_states", _array(nothing)),
            ("live_brokers", _array(nothing)),
            (
                "features_epoch",
                i64,
                field(metadata={"kafka_type": "int64", "tag": 10000}, default=i64(-1)),
            ),
            ("features", _array(feature), field(metadata={"tag": 10001}, default=())),
        ],
    )
    response = build.response("UpdateMetadataResponse", [_field("error_code", i16, "int16")])
    return MessageClasses(request, response, feature=feature)


@cache
def kip_778_api_versions() -> MessageClasses:
    """The response to ApiVersions version 4 as KIP-778 has it: a finalized level has no minimum.

    Kafka's version 4 has one, so that no released client reads this response.
    """
    build = MessageClassBuilder(API_VERSIONS, 4, flexible=True)
    finalized = build.item(
        "FinalizedFeatureKey", [_NAME, _field("max_version_level", i16, "int16")]
    )
    epoch = field(metadata={"kafka_type": "int64", "tag": 1}, default=i64(-1))
    fields = [
        _field("error_code", ErrorCode, "error_code"),
        ("api_keys", tuple[released_api_versions.ApiVersion, ...]),
        _field("throttle_time", i32Timedelta, "timedelta_i32"),
        (
            "supported_features",
            tuple[released_api_versions.SupportedFeatureKey, ...],
            field(metadata={"tag": 0}, default=()),
        ),
        ("finalized_features_epoch", i64, epoch),
        ("finalized_features", _array(finalized), field(metadata={"tag": 2}, default=())),
    ]
    response = build.response("ApiVersionsResponse", fields, OldResponseHeader)
    return MessageClasses(ApiVersionsRequest4, response, finalized=finalized)


@cache
def api_versions(api_dialect: ApiDialect) -> MessageClasses:
    """ApiVersions version 3; its response keeps the old header, like Kafka's."""
    build = MessageClassBuilder(API_VERSIONS, 3, flexible=True)
    supported = build.item(
        "SupportedFeatureKey",
        [_NAME, _field("min_version", i64, "int64"), _field("max_version", i64, "int64")],
    )
    finalized = build.item(
        "FinalizedFeatureKey", [_NAME, _field(level_field(api_dialect), i64, "int64")]
    )
    response = build.response(
        "ApiVersionsResponse",
        [
            _field("error_code", i16, "int16"),
            ("api_keys", tuple[ApiVersion, ...]),
            _field("throttle_time", i32Timedelta, "timedelta_i32"),
            (
                "supported_features",
                _array(supported),
                field(metadata={"tag": SUPPORTED_TAG}, default=()),
            ),
            (
                "finalized_features_epoch",
                i64,
                field(metadata={"kafka_type": "int64", "tag": EPOCH_TAG}, default=i64(-1)),
            ),
            (
                "finalized_features",
                _array(finalized),
                field(metadata={"tag": FINALIZED_TAG}, default=()),
            ),
        ],
        OldResponseHeader,
    )
    return MessageClasses(ApiVersionsRequest, response, supported=supported, finalized=finalized)
