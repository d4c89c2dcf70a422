"""Nodes of a rehearsal that register, stop, start and go."""

from base64 import urlsafe_b64encode
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

from controller.kraft import (
    Answer,
    BrokerRequest,
    Error,
    RegisteredBroker,
    decide_broker,
    decide_controller,
    dialect_of,
)
from controller.kraft.registration import BrokerRecord
from controller.kraft.table import CONTROLLER_REGISTRATION
from controller.rehearsal_outcome import OURSELVES, Outcome, Verdict, impossible
from controller.rehearsal_releases import refusal_at_start, release_of_ranges
from controller.rehearsal_scene import Ranges, Scene
from controller.rehearsal_steps import Lose, Register, Unregister
from controller.rehearsal_words import ranges_text
from streams.types import KRAFT_VERSION, NodeId, Role
from tables.nodes import NodeKey


def register_broker(scene: Scene, step: Register) -> Outcome:
    """What the controller answers to a broker that registers."""
    existing = scene.broker(step.node.node_id)
    ranges: Ranges | None = step.ranges or (existing.ranges if existing else None)
    if ranges is None:
        text = f"{step.node} has no registration: say of which release it is, {step.words}@4.3"
        return impossible(scene, step, text)
    request = BrokerRequest(
        step.node.node_id,
        scene.state.cluster,
        incarnation=f"rehearsed-{scene.epoch}",
        features=tuple((name, low, high) for name, (low, high) in ranges.items()),
        directories=(_directory(step.node.node_id),),
    )
    decision = decide_broker(scene.release, scene.state, request, scene.epoch)
    if decision.record is None:
        return Outcome(
            step,
            Verdict.REFUSED,
            scene.speaker,
            scene,
            scene,
            answer=decision.answer,
            says=(decision.answer.text or "",),
        )
    after = replace(
        scene.with_broker(_registered(request, decision.record)).having(step.node, ranges),
        epoch=scene.epoch + 1,
    )
    said = ranges_text(ranges, existing.ranges if existing else None)
    version = decision.record.version
    return Outcome(
        step,
        Verdict.ACCEPTED,
        scene.speaker,
        scene,
        after,
        answer=decision.answer,
        does=(
            f"registers broker {step.node.node_id} (RegisterBrokerRecord {version}): {said}",
            "unfences it when it has caught up",
        ),
    )


def _directory(node_id: NodeId) -> str:
    """The id of a log directory that no other broker has."""
    identity = uuid5(NAMESPACE_OID, f"rehearsed-{node_id}").bytes
    return urlsafe_b64encode(identity).decode().rstrip("=")


def _registered(request: BrokerRequest, record: BrokerRecord) -> RegisteredBroker:
    """A broker that registered and has caught up."""
    return RegisteredBroker(
        request.id,
        {name: (low, high) for name, low, high in record.features},
        epoch=record.epoch,
        incarnation=request.incarnation,
        directories=record.directories,
        session=True,
    )


def unregister(scene: Scene, step: Unregister) -> Outcome:
    """What becomes of a request to remove a registration."""
    node_id = step.node.node_id
    if step.node.role is Role.CONTROLLER:
        return impossible(
            scene,
            step,
            "up to Kafka 4.3 nothing removes the registration of a controller (KIP-1312 does, from "
            f"metadata.version 4.4 on): start a controller {node_id} that supports the level",
        )
    existing = scene.broker(node_id)
    if existing is None:
        text = f"Broker ID {node_id} is not currently registered"
        answer = Answer(Error.BROKER_ID_NOT_REGISTERED, text)
        return Outcome(
            step, Verdict.REFUSED, scene.speaker, scene, scene, answer=answer, says=(text,)
        )
    living = (
        () if existing.fenced else ("it runs still: stop it first, or a restart brings it back",)
    )
    return Outcome(
        step,
        Verdict.ACCEPTED,
        scene.speaker,
        scene,
        scene.without_broker(node_id),
        answer=Answer(Error.NONE),
        does=(
            f"removes broker {node_id} (UnregisterBrokerRecord): it counts for no level any more",
        ),
        notes=living,
    )


def lose(scene: Scene, step: Lose, node: NodeKey) -> Outcome:
    """What becomes of a cluster in which a node stops."""
    if not scene.knows(node):
        return impossible(scene, step, f"{node} is not there, and cannot be lost")
    if node in scene.lost:
        does = (f"{node} was lost before",)
        return Outcome(step, Verdict.ACCEPTED, OURSELVES, scene, scene, does=does)
    after = scene.without(node)
    if node.role is Role.CONTROLLER:
        return Outcome(
            step, Verdict.ACCEPTED, OURSELVES, scene, after, does=_without_controller(scene, after)
        )
    if not scene.led:
        says = "no controller is active: it is not fenced before there is one"
        return Outcome(step, Verdict.UNKNOWN, OURSELVES, scene, scene, says=(says,))
    broker = scene.broker(node.node_id)
    if broker is not None:
        after = after.with_broker(broker._replace(fenced=True, session=False))
    fences = f"fences broker {node.node_id} when its session ends"
    stays = "its registration stays, and counts for every level until it is unregistered"
    return Outcome(
        step, Verdict.ACCEPTED, scene.speaker, scene, after, does=(fences,), notes=(stays,)
    )


def _without_controller(before: Scene, after: Scene) -> tuple[str, ...]:
    if not after.led:
        return ("no majority of the voters is left: nothing is answered until one is back",)
    if after.active != before.active:
        others = len(after.voters) - sum(key.role is Role.CONTROLLER for key in after.lost) > 1
        assumed = " (assumed: another voter could be)" if others else ""
        return (f"{after.speaker} becomes active{assumed}",)
    return ("its registration stays, and counts for every level",)


def start_controller(scene: Scene, step: Register) -> Outcome:
    """What becomes of a controller that is started: it reads the log before it registers."""
    node, ranges = step.node, step.ranges or scene.ranges(step.node)
    if ranges is None:
        text = f"{node} has not registered: say of which release it is, {step.words}@4.3"
        return impossible(scene, step, text)
    levels = {**scene.state.levels, KRAFT_VERSION: scene.state.kraft_version}
    release = step.release or release_of_ranges(ranges)
    stops = refusal_at_start(release, ranges, levels) if release else None
    if stops:
        who = f"{node} itself (Kafka {release}), as it reads the log"
        return Outcome(step, Verdict.REFUSED, who, scene, scene, says=(stops,))
    if node == scene.active and node not in scene.lost:
        scene = scene.without(node)  # a process that starts has stopped before
    after = scene.having(node, ranges)
    does: list[str] = []
    if not after.led:
        does.append("it waits until a majority of the voters is there")
        return Outcome(step, Verdict.ACCEPTED, OURSELVES, scene, after, does=tuple(does))
    if after.active != scene.active or not scene.led:
        does.append(f"{after.speaker} becomes active")
    level = after.state.metadata_version(dialect_of(after.release).default_level)
    if level is not None and level < CONTROLLER_REGISTRATION:
        does.append(
            f"it takes part; below metadata.version {CONTROLLER_REGISTRATION} none registers"
        )
        return Outcome(step, Verdict.ACCEPTED, OURSELVES, scene, after, does=tuple(does))
    answer = decide_controller(after.release, after.state)
    if not answer.accepted:
        return Outcome(
            step,
            Verdict.REFUSED,
            after.speaker,
            scene,
            scene,
            answer=answer,
            says=(answer.text or "",),
        )
    known = after.controller(node.node_id)
    does.append(
        f"registers controller {node.node_id} (RegisterControllerRecord): "
        + ranges_text(ranges, known.ranges if known else None)
    )
    after = after.with_controller(node.node_id, ranges)
    return Outcome(
        step, Verdict.ACCEPTED, after.speaker, scene, after, answer=answer, does=tuple(does)
    )
