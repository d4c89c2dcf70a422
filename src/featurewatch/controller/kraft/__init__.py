"""A model of the KRaft controller's feature decisions, release by release. Pure.

`releases` holds the levels as data (``features.json``, extracted from Kafka's jars), `consequences`
what a level changes and costs. `decide_update`, `decide_broker_registration` and
`decide_controller_registration` return the errors, texts and records of Kafka's own controllers,
`decide_update_as_written` those that KIP-778 describes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from featurewatch.controller.kraft.releases import (
    Release,
    UnknownReleaseError,
    release_of,
    releases,
)

if TYPE_CHECKING:
    from featurewatch.controller.kraft.consequences import Consequence, between
    from featurewatch.controller.kraft.kip_778 import decide_update_as_written
    from featurewatch.controller.kraft.registration import (
        BrokerRegistrationRequest,
        RegistrationDecision,
        decide_broker_registration,
        decide_controller_registration,
        decide_controller_unregistration,
    )
    from featurewatch.controller.kraft.release_rules import COMPARED, ReleaseRules, rules_of
    from featurewatch.controller.kraft.replay import replay_refusal
    from featurewatch.controller.kraft.requests import (
        ApiError,
        Errors,
        LevelUpdate,
        UpdateDecision,
        UpdateRequest,
    )
    from featurewatch.controller.kraft.state import (
        ControllerState,
        RegisteredBroker,
        RegisteredController,
    )
    from featurewatch.controller.kraft.state_from_image import (
        active_controller_id,
        controller_state,
    )
    from featurewatch.controller.kraft.updates import decide_update
    from featurewatch.streams.types import UpgradeType

__all__ = [
    "COMPARED",
    "ApiError",
    "BrokerRegistrationRequest",
    "Consequence",
    "ControllerState",
    "Errors",
    "LevelUpdate",
    "RegisteredBroker",
    "RegisteredController",
    "RegistrationDecision",
    "Release",
    "ReleaseRules",
    "UnknownReleaseError",
    "UpdateDecision",
    "UpdateRequest",
    "UpgradeType",
    "active_controller_id",
    "between",
    "controller_state",
    "decide_broker_registration",
    "decide_controller_registration",
    "decide_controller_unregistration",
    "decide_update",
    "decide_update_as_written",
    "release_of",
    "releases",
    "replay_refusal",
    "rules_of",
]

_MODULES: Final = {
    "Consequence": "controller.kraft.consequences",
    "between": "controller.kraft.consequences",
    "BrokerRegistrationRequest": "controller.kraft.registration",
    "RegistrationDecision": "controller.kraft.registration",
    "decide_broker_registration": "controller.kraft.registration",
    "decide_controller_registration": "controller.kraft.registration",
    "decide_controller_unregistration": "controller.kraft.registration",
    "COMPARED": "controller.kraft.release_rules",
    "ReleaseRules": "controller.kraft.release_rules",
    "rules_of": "controller.kraft.release_rules",
    "replay_refusal": "controller.kraft.replay",
    "ApiError": "controller.kraft.requests",
    "Errors": "controller.kraft.requests",
    "LevelUpdate": "controller.kraft.requests",
    "UpdateDecision": "controller.kraft.requests",
    "UpdateRequest": "controller.kraft.requests",
    "ControllerState": "controller.kraft.state",
    "RegisteredBroker": "controller.kraft.state",
    "RegisteredController": "controller.kraft.state",
    "active_controller_id": "controller.kraft.state_from_image",
    "controller_state": "controller.kraft.state_from_image",
    "decide_update": "controller.kraft.updates",
    "decide_update_as_written": "controller.kraft.kip_778",
    "UpgradeType": "streams.types",
}


def __getattr__(name: str) -> Any:
    """Imports the module of a name at its first use: level names do not need the others."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"featurewatch.{_MODULES[name]}"), name)
