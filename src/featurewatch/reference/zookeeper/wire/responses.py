"""Converts the machines' responses to wire messages of the request's API version; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from featurewatch.kafka.messages import (
    StruckUpdateMetadataResponseV6,
    build_message,
    message_class,
    response_class,
)
from featurewatch.reference.zookeeper.machines.requests import (
    ErrorCode,
    FeaturesResponse,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    OFFERED,
    ApiDialect,
    Versions,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest

if TYPE_CHECKING:
    from featurewatch.reference.zookeeper.machines.encoding import Endpoint

FEATURES_SINCE: Final = 3
"""The first version of ApiVersions with features."""
_ZERO_LEVELS_SINCE: Final = 4
"""Earlier versions omit ranges that start at 0 (KAFKA-17492, ApiVersionsResponse)."""
_NO_MINIMUM_SINCE: Final = 4
"""By KIP-778, this version and later ones have no minimum of a finalized level."""
_BROKERS, _CONTROLLERS = 1, 2


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The content of Metadata and DescribeCluster; ``controller_id`` is -1 without a controller."""

    cluster_id: str | None = None
    controller_id: int = -1
    brokers: "Mapping[int, Endpoint]" = field(default_factory=dict)


def api_versions(
    request: WireRequest,
    api_dialect: ApiDialect,
    response: FeaturesResponse,
    offered: Mapping[int, Versions] | None = None,
) -> Any:
    """The response to ApiVersions of an offered version.

    ``offered`` are the requests of this listener; None: those of the dialect.
    """
    form = response_class(request.body)
    if api_dialect is ApiDialect.KIP_778 and request.version >= _NO_MINIMUM_SINCE:
        form = message_class("Kip778ApiVersionsResponse", request.version)
    common = {
        "error_code": ErrorCode.NONE,
        "api_keys": _api_keys(form, (offered or OFFERED[api_dialect]).items()),
        "throttle_time_ms": 0,
    }
    if request.version < FEATURES_SINCE:
        return build_message(form, **common)
    is_draft = not api_dialect.is_released
    level_class = form.FeatureKey if is_draft else form.FinalizedFeatureKey
    return form(
        **common,
        supported_features=tuple(
            form.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(response.supported.items())
            if low > 0 or is_draft or request.version >= _ZERO_LEVELS_SINCE
        ),
        finalized_features_epoch=response.epoch,
        # Since 3.3 the minimum always equals the maximum (KIP-778).
        finalized_features=tuple(
            build_message(
                level_class,
                name=name,
                max_version_level=level,
                min_version_level=level,
                version_level=level,
            )
            for name, level in sorted(response.finalized.items())
        ),
    )


def api_versions_error(error: ErrorCode) -> Any:
    """The error response to ApiVersions, in the form of version 0 (KIP-511).

    For an unknown version it lists the supported versions.
    """
    form = message_class("ApiVersionsResponse", 0)
    versions = OFFERED[ApiDialect.RELEASED][API_VERSIONS]
    keys = _api_keys(form, [(API_VERSIONS, versions)])
    return form(error_code=error, api_keys=keys if error is ErrorCode.UNSUPPORTED_VERSION else ())


def metadata(request: WireRequest, view: ClusterView, topics: tuple[Any, ...] = ()) -> Any:
    """The response to Metadata: brokers, controller, and the requested ``topics``."""
    form = response_class(request.body)
    return build_message(
        form,
        throttle_time_ms=0,
        brokers=tuple(
            build_message(
                form.MetadataResponseBroker,
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
    form = response_class(request.body)
    endpoint_type = getattr(request.body, "endpoint_type", _BROKERS)
    error, message = _endpoint_error(endpoint_type)
    is_valid = error is ErrorCode.NONE
    return build_message(
        form,
        throttle_time_ms=0,
        error_code=error,
        error_message=message,
        endpoint_type=_BROKERS,
        cluster_id=(view.cluster_id or "") if is_valid else "",
        controller_id=view.controller_id if is_valid and view.controller_id in view.brokers else -1,
        brokers=tuple(
            build_message(
                form.DescribeClusterBroker,
                broker_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=endpoint.rack,
            )
            for broker_id, endpoint in (sorted(view.brokers.items()) if is_valid else ())
        ),
    )


def update_features(request: WireRequest, response: UpdateResponse) -> Any:
    """The response to an update or, in the early draft, to a deletion."""
    form = response_class(request.body)
    fields: dict[str, Any] = {
        "throttle_time_ms": 0,
        "error_code": response.error,
        "error_message": response.message,
    }
    if hasattr(form, "UpdatableFeatureResult"):
        fields["results"] = tuple(
            form.UpdatableFeatureResult(
                feature=result.feature, error_code=result.error, error_message=result.message
            )
            for result in response.results
        )
    if hasattr(form, "FeatureKey"):
        finalized = response.finalized
        fields["features_epoch"] = -1 if finalized is None else finalized.epoch
        fields["features"] = tuple(
            form.FeatureKey(name=name, version_level=level)
            for name, level in (sorted(finalized.features.items()) if finalized is not None else ())
        )
    return build_message(form, **fields)


def update_metadata() -> Any:
    """The response to UpdateMetadata; always a success."""
    return StruckUpdateMetadataResponseV6(error_code=0)


def _api_keys(form: Any, offered: Iterable[tuple[int, tuple[int, int]]]) -> tuple[Any, ...]:
    return tuple(
        form.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in sorted(offered)
    )


def _endpoint_error(endpoint_type: int) -> tuple[ErrorCode, str | None]:
    if endpoint_type == _BROKERS:
        return ErrorCode.NONE, None
    if endpoint_type == _CONTROLLERS:
        return ErrorCode.MISMATCHED_ENDPOINT_TYPE, (
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER"
        )
    return ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
