"""What a KRaft controller of a given release knows of feature levels, and what it would answer.

`table` holds the levels as data (``features.json``, taken from Kafka's jars), `consequences` what a
level changes and costs. `decide_update`, `decide_broker_registration` and
`decide_controller_registration` answer requests as the controllers of Kafka 3.9 and 4.3 do, in
their own words. All of it is pure.
"""

from featurewatch.controller.kraft.consequences import Consequence, between
from featurewatch.controller.kraft.registration import (
    BrokerRegistrationRequest,
    RegistrationDecision,
    decide_broker_registration,
    decide_controller_registration,
)
from featurewatch.controller.kraft.release_rules import COMPARED, ReleaseRules, rules_of
from featurewatch.controller.kraft.releases import (
    Release,
    UnknownReleaseError,
    release_of,
    releases,
)
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
from featurewatch.controller.kraft.state_from_image import active_controller_id, controller_state
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
    "decide_update",
    "release_of",
    "releases",
    "replay_refusal",
    "rules_of",
]
