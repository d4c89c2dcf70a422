"""Converts DescribeConfigs and IncrementalAlterConfigs for topics; pure.

Other resources have no settings on this node. Removing one that is not there succeeds, as the tools
do after a reassignment with every broker that they know.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from featurewatch.kafka.messages import build_message, response_class
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.requests import (
    AlterConfigsRequest,
    ConfigChange,
    ConfigOperation,
    RequestFailed,
    TopicResponse,
    TopicResult,
    TopicResults,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest

_TOPIC_RESOURCE: Final = 2
_TOPIC_CONFIG: Final = 1
"""The source of a topic's own setting."""


def described_topics(request: WireRequest) -> tuple[str, ...]:
    """The topics whose configuration a DescribeConfigs requests."""
    return tuple(
        resource.resource_name
        for resource in request.body.resources
        if resource.resource_type == _TOPIC_RESOURCE
    )


def describe_configs(
    request: WireRequest, configs: Mapping[str, Mapping[str, str] | None] | None
) -> Any:
    """The own settings of topics; other resources have none here. None: not the controller."""
    form = response_class(request.body)
    return build_message(
        form,
        throttle_time_ms=0,
        results=tuple(
            form.DescribeConfigsResult(
                error_code=_error_of_resource(resource, configs),
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=tuple(_settings(form, resource, configs)),
            )
            for resource in request.body.resources
        ),
    )


def _error_of_resource(
    resource: Any, configs: Mapping[str, Mapping[str, str] | None] | None
) -> ErrorCode:
    if resource.resource_type != _TOPIC_RESOURCE:
        return ErrorCode.NONE
    if configs is None:
        return ErrorCode.LEADER_NOT_AVAILABLE  # retriable: another broker knows them
    if resource.resource_name not in configs:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    is_readable = configs[resource.resource_name] is not None
    return ErrorCode.NONE if is_readable else ErrorCode.INVALID_CONFIG


def _settings(
    form: Any, resource: Any, configs: Mapping[str, Mapping[str, str] | None] | None
) -> Iterable[Any]:
    own = (configs or {}).get(resource.resource_name)
    if resource.resource_type != _TOPIC_RESOURCE or own is None:
        return
    keys = resource.configuration_keys
    for name, value in sorted(own.items()):
        if keys is None or name in keys:
            yield build_message(
                form.DescribeConfigsResourceResult,
                name=name,
                value=value,
                read_only=False,
                config_source=_TOPIC_CONFIG,
                is_sensitive=False,
                synonyms=(),
                config_type=0,
                documentation=None,
            )


def read_alter_configs(request: WireRequest) -> AlterConfigsRequest:
    """The changes of topics; those of other resources are left out."""
    changes: dict[str, tuple[ConfigChange, ...]] = {}
    for resource in request.body.resources:
        if resource.resource_type == _TOPIC_RESOURCE:
            changes[resource.resource_name] = tuple(
                ConfigChange(item.name, int(item.config_operation), item.value)
                for item in resource.configs
            )
    return AlterConfigsRequest(changes, request.body.validate_only)


def alter_configs_response(request: WireRequest, response: TopicResponse | None) -> Any:
    """The result of each resource; ``response`` is None if no topic was in the request."""
    form = response_class(request.body)
    results = response.results if isinstance(response, TopicResults) else {}
    failed = response if isinstance(response, RequestFailed) else None
    return build_message(
        form,
        throttle_time_ms=0,
        responses=tuple(
            _altered(form, resource, results, failed) for resource in request.body.resources
        ),
    )


def _altered(
    form: Any,
    resource: Any,
    results: Mapping[str, TopicResult],
    failed: RequestFailed | None,
) -> Any:
    error, message = ErrorCode.NONE, None
    if resource.resource_type == _TOPIC_RESOURCE:
        result = results.get(resource.resource_name)
        code = int(failed.error if failed is not None else -1) if result is None else result.error
        error, message = ErrorCode(int(code)), None if result is None else result.message
    elif any(int(item.config_operation) != ConfigOperation.DELETE for item in resource.configs):
        error, message = ErrorCode.INVALID_REQUEST, "This node has no settings that can be changed."
    return form.AlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
