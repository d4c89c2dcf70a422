"""Questions to a controller, what our model answers, and both as JSON."""

from dataclasses import dataclass
from typing import Any

from featurewatch.controller.kraft.registration import (
    BrokerRegistrationRequest,
    Offered,
    RegisterBrokerRecord,
    decide_broker_registration,
    decide_controller_registration,
)
from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.replay import replay_refusal
from featurewatch.controller.kraft.requests import (
    ApiError,
    ConfigRecord,
    FeatureLevelRecord,
    Record,
    UpdateRequest,
)
from featurewatch.controller.kraft.state import (
    ControllerState,
    RegisteredBroker,
    RegisteredController,
)
from featurewatch.controller.kraft.updates import decide_update

_BROKER_RESOURCE = 4
"""``ConfigResource.Type.BROKER``."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ControllerRequest:
    """A ``ControllerRegistration`` request: nothing of it is checked."""

    id: int


@dataclass(frozen=True, slots=True)
class RequestInState:
    """A request to a controller in a state."""

    state: ControllerState
    request: UpdateRequest | BrokerRegistrationRequest | ControllerRequest
    epoch: int = 7


def model_response(release: str, question: RequestInState) -> Json:
    """The model's answer, in the shape of the harness's answer."""
    state = question.state
    for feature, level in state.levels.items():
        if text := replay_refusal(release, state, feature, level):
            return {"replay": text}
    match question.request:
        case UpdateRequest() as request:
            update = decide_update(release, state, request)
            if update.answer.error < 0:
                return {"answer": _pair(update.answer)}
            own = not update.answer.accepted or rules_of(release).all_or_nothing
            return {
                "answer": _pair(update.answer),
                "results": [] if own else [[name, _pair(error)] for name, error in update.results],
                "records": [_record(record) for record in update.records],
                "kraft_version": update.kraft_version,
            }
        case BrokerRegistrationRequest() as request:
            broker = decide_broker_registration(release, state, request, question.epoch)
            if broker.record is None:
                return {"answer": _pair(broker.answer)}
            return {"answer": _pair(broker.answer), "records": [_broker_record(broker.record)]}
        case ControllerRequest():
            answer = decide_controller_registration(release, state)
            if not answer.accepted:
                return {"answer": _pair(answer)}
            return {"answer": _pair(answer), "records": [["controller"]]}


def _pair(answer: ApiError) -> list[Any]:
    return [int(answer.error), answer.text]


def _record(record: Record) -> list[Any]:
    match record:
        case FeatureLevelRecord(feature, level):
            return ["level", feature, level]
        case ConfigRecord(broker, name, value):
            return ["config", _BROKER_RESOURCE, broker, name, value]
        case _:
            return ["nothing"]


def _broker_record(record: RegisterBrokerRecord) -> list[Any]:
    return [
        "broker",
        record.version,
        [list(feature) for feature in record.features],
        list(record.directories),
        *(record.epoch, record.fenced, record.shutting_down, record.migrating),
    ]


def request_json(question: RequestInState) -> Json:
    """The question as the harness reads it."""
    kinds = {
        UpdateRequest: "update",
        BrokerRegistrationRequest: "broker",
        ControllerRequest: "controller",
    }
    ask = kinds[type(question.request)]
    return {"ask": ask, "state": _state(question.state), "request": _request(question)}


def _request(question: RequestInState) -> Json:
    match question.request:
        case UpdateRequest(updates, dry_run):
            listed = [[update.feature, update.level, int(update.kind)] for update in updates]
            return {"updates": listed, "dry_run": dry_run}
        case BrokerRegistrationRequest() as request:
            return {
                "id": request.id,
                "cluster": request.cluster,
                "incarnation": request.incarnation,
                "features": request.features,
                "directories": request.directories,
                "listeners": request.listeners,
                "migrating": request.migrating,
                "epoch": question.epoch,
            }
        case ControllerRequest(node):
            return {"id": node}


def _ranges(node: RegisteredBroker | RegisteredController) -> list[Offered]:
    return [(name, low, high) for name, (low, high) in node.ranges.items()]


def _state(state: ControllerState) -> Json:
    return {
        "id": state.id,
        "local": [[name, low, high] for name, (low, high) in state.local.items()],
        "levels": list(state.levels.items()),
        "brokers": [
            {
                "id": broker.id,
                "ranges": _ranges(broker),
                "fenced": broker.fenced,
                "shutting_down": broker.shutting_down,
                "epoch": broker.epoch,
                "incarnation": broker.incarnation,
                "directories": broker.directories,
                "session": broker.session,
            }
            for broker in state.brokers
        ],
        "controllers": [
            {"id": controller.id, "ranges": _ranges(controller)} for controller in state.controllers
        ],
        "quorum": state.quorum,
        "cluster": state.cluster,
        "kraft_version": state.kraft_version,
        "voters_support_kraft": state.voters_support_kraft,
        "migration": int(state.migration),
        "migration_enabled": state.migration_enabled,
        "listener": state.listener,
        "min_insync": {
            "static": state.min_insync.static,
            "cluster": state.min_insync.cluster,
            "brokers": state.min_insync.brokers,
        },
    }
