"""Settings and producer ids (``ConfigurationControlManager``, ``ProducerIdControlManager``).

Values of settings are not checked: which are valid is known to brokers, not to this reference.
"""

from typing import Final

from featurewatch.reference.kraft.machines.controller.errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
    text_of,
)
from featurewatch.reference.kraft.machines.controller.nodes import epoch_error
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AllocateProducerIdsResponse,
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigs,
    IncrementalAlterConfigsResponse,
)
from featurewatch.reference.kraft.machines.controller.work import Work
from featurewatch.reference.kraft.machines.metadata.state import BROKER, TOPIC
from featurewatch.reference.kraft.machines.metadata.state_records import config_record

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_BLOCK: Final = 1000
"""Producer ids in a block (``ProducerIdsBlock``)."""
_KNOWN_RESOURCES: Final = frozenset({TOPIC, BROKER, 16, 32})
"""Topics, brokers, client metrics and groups (``ConfigResource.Type``)."""


def allocate_producer_ids(work: Work, request: AllocateProducerIds) -> AllocateProducerIdsResponse:
    """Gives a broker a block of producer ids that no other gets."""
    if error := epoch_error(work, request.broker_id, request.broker_epoch):
        return AllocateProducerIdsResponse(error)
    first = max(work.state.next_producer_id, 0)
    work.add(
        "PRODUCER_IDS_RECORD",
        brokerId=request.broker_id,
        brokerEpoch=request.broker_epoch,
        nextProducerId=first + _BLOCK,
    )
    return AllocateProducerIdsResponse(NONE, first, _BLOCK)


def alter_configs(work: Work, request: IncrementalAlterConfigs) -> IncrementalAlterConfigsResponse:
    """Changes settings, resource by resource."""
    before, count = work.state, len(work.records)
    seen: set[tuple[int, str]] = set()
    results = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        state, written = work.state, len(work.records)
        error, text = (INVALID_REQUEST, "Each resource must appear at most once.")
        if key not in seen:
            error, text = _alter(work, resource)
        seen.add(key)
        if error:
            work.undo(state, written)
        results.append(AlterConfigsResourceResponse(error, text or None, *key))
    if request.validate_only:
        work.undo(before, count)
    return IncrementalAlterConfigsResponse(tuple(results))


def _alter(work: Work, resource: AlterConfigsResource) -> tuple[int, str]:
    kind, name = resource.resource_type, resource.resource_name
    if kind not in _KNOWN_RESOURCES:
        return INVALID_REQUEST, f"Unsupported resource type {kind}."
    if kind == TOPIC and name not in work.state.ids:
        return UNKNOWN_TOPIC_OR_PARTITION, text_of(UNKNOWN_TOPIC_OR_PARTITION)
    if kind == BROKER and name and not name.isdecimal():
        return INVALID_REQUEST, f"Unable to parse broker name as a base 10 number: {name}"
    if len({config.name for config in resource.configs}) != len(resource.configs):
        return INVALID_REQUEST, "Error due to duplicate config keys"
    for config in resource.configs:
        if not _SET <= config.config_operation <= _SUBTRACT:
            return INVALID_REQUEST, f"Unknown operation type {config.config_operation}"
        if config.value is None and config.config_operation != _DELETE:
            return INVALID_CONFIG, f"Null value not supported for : {config.name}"
        current = work.state.setting(kind, name, config.name)
        value = _new_value(config, current)
        if value != current or kind == BROKER:  # an unchanged value makes brokers read files again
            work.write(config_record(kind, name, config.name, value))
    return NONE, ""


def _new_value(config: AlterableConfig, current: str | None) -> str | None:
    if config.config_operation in (_SET, _DELETE):
        return config.value if config.config_operation == _SET else None
    listed = [one for one in (current or "").split(",") if one]
    for one in (config.value or "").split(","):
        if config.config_operation == _APPEND and one not in listed:
            listed.append(one)
        if config.config_operation == _SUBTRACT and one in listed:
            listed.remove(one)
    return ",".join(listed)
