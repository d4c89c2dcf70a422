"""Requests for producer ids and settings."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A broker takes a block of producer ids (``AllocateProducerIdsRequest``, 67)."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResponse:
    """The answer to an `AllocateProducerIds`."""

    error_code: int
    producer_id_start: int = 0
    producer_id_len: int = 0


class AlterableConfig(NamedTuple):
    """A setting to change; ``config_operation``: 0 set, 1 delete, 2 append, 3 subtract."""

    name: str
    config_operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class AlterConfigsResource:
    """The settings of a resource; ``resource_type`` is Kafka's number (2 topic, 4 broker)."""

    resource_type: int
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs:
    """Changes settings (``IncrementalAlterConfigsRequest``, 44)."""

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool = False


class AlterConfigsResourceResponse(NamedTuple):
    """The result for one resource."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse:
    """The answer to an `IncrementalAlterConfigs`."""

    responses: tuple[AlterConfigsResourceResponse, ...]
