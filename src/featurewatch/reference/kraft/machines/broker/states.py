"""The states of a broker and the permitted transitions in both forms (``BrokerState``, KIP-631)."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from featurewatch.reference.kraft.machines.controller.settings import Form


class BrokerState(StrEnum):
    """The state of a broker as itself knows it."""

    NOT_RUNNING = "not running"
    STARTING = "starting"
    """It registers, then catches up with the metadata; the controller keeps it fenced."""
    RECOVERY = "recovery"
    """It has caught up and asks to be unfenced."""
    RUNNING = "running"
    FENCED = "fenced"
    """It was running and is fenced; as released a broker does not know this state."""
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
    UNREGISTERING = "unregistering"
    """It met a level that it does not support, and removes its registration (KIP-778)."""
    SHUTTING_DOWN = "shutting down"
    """The end."""


Transitions = Mapping[BrokerState, Mapping[BrokerState, str]]

_NOT, _START, _REC, _RUN = (
    BrokerState.NOT_RUNNING,
    BrokerState.STARTING,
    BrokerState.RECOVERY,
    BrokerState.RUNNING,
)
_FENCED, _PENDING, _UNREG, _END = (
    BrokerState.FENCED,
    BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    BrokerState.UNREGISTERING,
    BrokerState.SHUTTING_DOWN,
)

_RELEASED: Final[Transitions] = MappingProxyType(
    {
        _NOT: {_START: "starts", _END: "is told to shut down"},
        _START: {
            _REC: "the controller says that it has caught up",
            _END: "is told to shut down, or could not register in time",
        },
        _REC: {_RUN: "the controller unfences it", _END: "is told to shut down"},
        _RUN: {_PENDING: "is told to shut down"},
        _PENDING: {_END: "the controller lets it shut down"},
        _END: {},
    }
)

_AS_WRITTEN: Final[Transitions] = MappingProxyType(
    {
        _NOT: {_START: "starts", _END: "is told to shut down"},
        _START: {
            _REC: "the controller says that it has caught up",
            _UNREG: "meets a level that it does not support",
            _END: "is told to shut down",
        },
        _REC: {
            _RUN: "the controller unfences it",
            _START: "its epoch is stale",
            _UNREG: "meets a level that it does not support",
            _END: "is told to shut down",
        },
        _RUN: {
            _FENCED: "the controller has fenced it, or its session is over",
            _START: "its epoch is stale",
            _UNREG: "meets a level that it does not support",
            _PENDING: "is told to shut down",
        },
        _FENCED: {
            _RUN: "the controller unfences it",
            _START: "its epoch is stale",
            _UNREG: "meets a level that it does not support",
            _END: "is told to shut down",
        },
        _PENDING: {
            _UNREG: "meets a level that it does not support",
            _END: "the controller lets it shut down, or its epoch is stale",
        },
        _UNREG: {_END: "its registration is removed, or that took too long"},
        _END: {},
    }
)

TRANSITIONS: Final[Mapping[Form, Transitions]] = MappingProxyType(
    {Form.RELEASED: _RELEASED, Form.KIP_778: _AS_WRITTEN}
)
"""By form, from each state to each that may follow, and why."""
