"""What a KRaft controller of a given release knows of feature levels, and what it would answer.

`table` holds the levels as data (``features.json``, taken from Kafka's jars), `consequences` what a
level changes and costs. `decide_update`, `decide_broker` and `decide_controller` answer requests as
the controllers of Kafka 3.9 and 4.3 do, in their own words. All of it is pure.
"""

from controller.kraft.answers import (
    Answer,
    Error,
    Update,
    UpdateDecision,
    UpdateRequest,
    UpgradeType,
)
from controller.kraft.consequences import Consequence, between
from controller.kraft.dialect import COMPARED, Dialect, dialect_of
from controller.kraft.registration import (
    BrokerDecision,
    BrokerRequest,
    decide_broker,
    decide_controller,
)
from controller.kraft.replay import replay_refusal
from controller.kraft.seen import leader_of, seen_state
from controller.kraft.state import ControllerState, RegisteredBroker, RegisteredController
from controller.kraft.table import Release, UnknownReleaseError, release_of, releases
from controller.kraft.updates import decide_update

__all__ = [
    "COMPARED",
    "Answer",
    "BrokerDecision",
    "BrokerRequest",
    "Consequence",
    "ControllerState",
    "Dialect",
    "Error",
    "RegisteredBroker",
    "RegisteredController",
    "Release",
    "UnknownReleaseError",
    "Update",
    "UpdateDecision",
    "UpdateRequest",
    "UpgradeType",
    "between",
    "decide_broker",
    "decide_controller",
    "decide_update",
    "dialect_of",
    "leader_of",
    "release_of",
    "releases",
    "replay_refusal",
    "seen_state",
]
