"""Converts the machines' responses to wire messages of the request's API version; pure."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.static.primitive import i8, i32Timedelta

from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse, UpdateResponse
from featurewatch.reference.zookeeper.wire import draft_messages
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    DRAFT_DELETE,
    DRAFT_UPDATE,
    OFFERED,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.frames import (
    WireRequest,
    build_message,
    response_classes,
)

FEATURES_SINCE: Final = 3
"""The first version of ApiVersions with features."""
_ZERO_LEVELS_SINCE: Final = 4
"""Earlier versions omit ranges that start at 0 (KAFKA-17492, ApiVersionsResponse)."""
_NO_MINIMUM_SINCE: Final = 4
"""By KIP-778, this version and later ones have no minimum of a finalized level."""
_BROKERS, _CONTROLLERS = 1, 2

NO_THROTTLE: Final = i32Timedelta.parse(datetime.timedelta(0))


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The content of Metadata and DescribeCluster; ``controller_id`` is -1 if there is none."""

    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, Endpoint] = field(default_factory=dict)


def api_versions(request: WireRequest, api_dialect: ApiDialect, response: FeaturesResponse) -> Any:
    """The response to ApiVersions of an offered version."""
    released = response_classes(API_VERSIONS, request.version)
    offered = OFFERED[api_dialect].items()
    common = {
        "error_code": ErrorCode.none,
        "api_keys": _api_keys(released, offered),
        "throttle_time": NO_THROTTLE,
    }
    if request.version < FEATURES_SINCE:
        return build_message(released.ApiVersionsResponse, **common)
    if not api_dialect.is_released:
        return _draft_api_versions(api_dialect, response, common)
    response_class, level_class = released.ApiVersionsResponse, released.FinalizedFeatureKey
    if api_dialect is ApiDialect.KIP_778 and request.version >= _NO_MINIMUM_SINCE:
        as_written = draft_messages.kip_778_api_versions()
        response_class, level_class = as_written.response, as_written.finalized
    return build_message(
        response_class,
        **common,
        supported_features=tuple(
            released.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(response.supported.items())
            if low > 0 or request.version >= _ZERO_LEVELS_SINCE
        ),
        finalized_features_epoch=response.epoch,
        # Since 3.3 the minimum always equals the maximum (KIP-778).
        finalized_features=tuple(
            build_message(level_class, name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(response.finalized.items())
        ),
    )


def api_versions_error(error: ErrorCode) -> Any:
    """The error response to ApiVersions, in the form of version 0 (KIP-511).

    For an unknown version it lists the supported versions.
    """
    released = response_classes(API_VERSIONS, 0)
    versions = OFFERED[ApiDialect.RELEASED][API_VERSIONS]
    keys = _api_keys(released, [(API_VERSIONS, versions)])
    return released.ApiVersionsResponse(
        error_code=error, api_keys=keys if error is ErrorCode.unsupported_version else ()
    )


def metadata(request: WireRequest, view: ClusterView, topics: tuple[Any, ...] = ()) -> Any:
    """The response to Metadata: brokers, controller, and the requested ``topics``."""
    classes = response_classes(request.key, request.version)
    return build_message(
        classes.MetadataResponse,
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            build_message(
                classes.MetadataResponseBroker,
                node_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=endpoint.rack,
            )
            for broker_id, endpoint in sorted(view.brokers.items())
        ),
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        topics=topics,
    )


def describe_cluster(request: WireRequest, view: ClusterView) -> Any:
    """The response to DescribeCluster; an error for controller endpoints (Kafka's AuthHelper)."""
    classes = response_classes(request.key, request.version)
    endpoint_type = getattr(request.body, "endpoint_type", _BROKERS)
    error, message = _endpoint_error(endpoint_type)
    is_valid = error is ErrorCode.none
    return build_message(
        classes.DescribeClusterResponse,
        throttle_time=NO_THROTTLE,
        error_code=error,
        error_message=message,
        endpoint_type=i8(_BROKERS),
        cluster_id=(view.cluster_id or "") if is_valid else "",
        controller_id=view.controller_id if is_valid and view.controller_id in view.brokers else -1,
        brokers=tuple(
            classes.DescribeClusterBroker(
                broker_id=broker_id, host=endpoint.host, port=endpoint.port, rack=endpoint.rack
            )
            for broker_id, endpoint in (sorted(view.brokers.items()) if is_valid else ())
        ),
    )


def update_features(request: WireRequest, api_dialect: ApiDialect, response: UpdateResponse) -> Any:
    """The response to an update or, in the early draft, to a deletion."""
    if request.key == DRAFT_UPDATE:
        return _draft_update(request, api_dialect, response)
    if request.key == DRAFT_DELETE:
        kind = draft_messages.delete_features(request.version).response
        return kind(error_code=int(response.error), error_message=response.message)
    classes = response_classes(request.key, request.version)
    # Version 2 and newer have no results (KIP-1022).
    item: Any = getattr(classes, "UpdatableFeatureResult", None)
    results = () if item is None else response.results
    return build_message(
        classes.UpdateFeaturesResponse,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(int(response.error)),
        error_message=response.message,
        results=tuple(
            item(
                feature=result.feature,
                error_code=ErrorCode(int(result.error)),
                error_message=result.message,
            )
            for result in results
        ),
    )


def update_metadata() -> Any:
    """The response to UpdateMetadata; always a success."""
    return draft_messages.update_metadata().response(error_code=0)


def _draft_update(request: WireRequest, api_dialect: ApiDialect, response: UpdateResponse) -> Any:
    classes = draft_messages.update_features(api_dialect, request.version)
    fields = {"error_code": int(response.error), "error_message": response.message}
    if api_dialect is not ApiDialect.EARLY_DRAFT_STRUCK:
        return classes.response(**fields)
    finalized = response.finalized
    return classes.response(
        **fields,
        features_epoch=-1 if finalized is None else finalized.epoch,
        features=tuple(
            classes.feature(name=name, version=level)
            for name, level in (sorted(finalized.features.items()) if finalized is not None else ())
        ),
    )


def _draft_api_versions(
    api_dialect: ApiDialect, response: FeaturesResponse, common: Mapping[str, Any]
) -> Any:
    classes = draft_messages.api_versions(api_dialect)
    level = draft_messages.level_field(api_dialect)
    return classes.response(
        **{**common, "error_code": 0},
        supported_features=tuple(
            classes.supported(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(response.supported.items())
        ),
        finalized_features_epoch=response.epoch,
        finalized_features=tuple(
            classes.finalized(**{"name": name, level: value})
            for name, value in sorted(response.finalized.items())
        ),
    )


def _api_keys(classes: Any, offered: Iterable[tuple[int, tuple[int, int]]]) -> tuple[Any, ...]:
    return tuple(
        classes.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in sorted(offered)
    )


def _endpoint_error(endpoint_type: int) -> tuple[ErrorCode, str | None]:
    if endpoint_type == _BROKERS:
        return ErrorCode.none, None
    if endpoint_type == _CONTROLLERS:
        return ErrorCode.mismatched_endpoint_type, (
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER"
        )
    return ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {endpoint_type}"
