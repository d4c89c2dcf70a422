"""Nodes of a rehearsal that register, stop, start and go."""

from base64 import urlsafe_b64encode
from dataclasses import replace
from uuid import NAMESPACE_OID, uuid5

from featurewatch.controller.kraft import (
    ApiError,
    BrokerRegistrationRequest,
    Errors,
    RegisteredBroker,
    decide_broker_registration,
    decide_controller_registration,
    rules_of,
)
from featurewatch.controller.kraft.registration import RegisterBrokerRecord
from featurewatch.controller.kraft.releases import CONTROLLER_REGISTRATION
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.descriptions import ranges_text
from featurewatch.controller.rehearsal.result import (
    FEATUREWATCH,
    StepOutcome,
    StepVerdict,
    impossible,
)
from featurewatch.controller.rehearsal.steps import RegisterNode, StopNode, UnregisterNode
from featurewatch.controller.software import release_name_of_ranges, start_refusal
from featurewatch.streams.types import KRAFT_VERSION, NodeId, NodeKey, Role, SupportedRanges


def register_broker(scene: RehearsedCluster, step: RegisterNode) -> StepOutcome:
    """What the controller answers to a broker that registers."""
    existing = scene.broker(step.node.node_id)
    ranges: SupportedRanges | None = step.ranges or (existing.ranges if existing else None)
    if ranges is None:
        text = f"{step.node} has no registration: say of which release it is, {step.text}@4.3"
        return impossible(scene, step, text)
    request = BrokerRegistrationRequest(
        step.node.node_id,
        scene.state.cluster,
        incarnation=f"rehearsed-{scene.epoch}",
        features=tuple((name, low, high) for name, (low, high) in ranges.items()),
        directories=(_directory(step.node.node_id),),
    )
    decision = decide_broker_registration(scene.release, scene.state, request, scene.epoch)
    if decision.record is None:
        return StepOutcome(
            step,
            StepVerdict.REFUSED,
            scene.controller_label,
            scene,
            scene,
            answer=decision.answer,
            messages=(decision.answer.text or "",),
        )
    after = replace(
        scene.with_broker(_registered(request, decision.record)).with_started(step.node, ranges),
        epoch=scene.epoch + 1,
    )
    said = ranges_text(ranges, existing.ranges if existing else None)
    version = decision.record.version
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        scene.controller_label,
        scene,
        after,
        answer=decision.answer,
        effects=(
            f"registers broker {step.node.node_id} (RegisterBrokerRecord {version}): {said}",
            "unfences it when it has caught up",
        ),
    )


def _directory(node_id: NodeId) -> str:
    """The id of a log directory that no other broker has."""
    identity = uuid5(NAMESPACE_OID, f"rehearsed-{node_id}").bytes
    return urlsafe_b64encode(identity).decode().rstrip("=")


def _registered(
    request: BrokerRegistrationRequest, record: RegisterBrokerRecord
) -> RegisteredBroker:
    """A broker that registered and has caught up."""
    return RegisteredBroker(
        request.id,
        SupportedRanges((name, (low, high)) for name, low, high in record.features),
        epoch=record.epoch,
        incarnation=request.incarnation,
        directories=record.directories,
        session=True,
    )


def unregister_node(scene: RehearsedCluster, step: UnregisterNode) -> StepOutcome:
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
        answer = ApiError(Errors.BROKER_ID_NOT_REGISTERED, text)
        return StepOutcome(
            step,
            StepVerdict.REFUSED,
            scene.controller_label,
            scene,
            scene,
            answer=answer,
            messages=(text,),
        )
    living = (
        () if existing.fenced else ("it runs still: stop it first, or a restart brings it back",)
    )
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        scene.controller_label,
        scene,
        scene.without_broker(node_id),
        answer=ApiError(Errors.NONE),
        effects=(
            f"removes broker {node_id} (UnregisterBrokerRecord): it counts for no level any more",
        ),
        notes=living,
    )


def stop_node(scene: RehearsedCluster, step: StopNode, node: NodeKey) -> StepOutcome:
    """What becomes of a cluster in which a node stops."""
    if not scene.knows(node):
        return impossible(scene, step, f"{node} is not there, and cannot be lost")
    if node in scene.stopped:
        does = (f"{node} was lost before",)
        return StepOutcome(step, StepVerdict.ACCEPTED, FEATUREWATCH, scene, scene, effects=does)
    after = scene.with_stopped(node)
    if node.role is Role.CONTROLLER:
        return StepOutcome(
            step,
            StepVerdict.ACCEPTED,
            FEATUREWATCH,
            scene,
            after,
            effects=_without_controller(scene, after),
        )
    if not scene.has_leader:
        says = "no controller is active: it is not fenced before there is one"
        return StepOutcome(step, StepVerdict.UNKNOWN, FEATUREWATCH, scene, scene, messages=(says,))
    broker = scene.broker(node.node_id)
    if broker is not None:
        after = after.with_broker(broker._replace(fenced=True, session=False))
    fences = f"fences broker {node.node_id} when its session ends"
    stays = "its registration stays, and counts for every level until it is unregistered"
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        scene.controller_label,
        scene,
        after,
        effects=(fences,),
        notes=(stays,),
    )


def _without_controller(before: RehearsedCluster, after: RehearsedCluster) -> tuple[str, ...]:
    if not after.has_leader:
        return ("no majority of the voters is left: nothing is answered until one is back",)
    if after.active != before.active:
        others = len(after.voters) - sum(key.role is Role.CONTROLLER for key in after.stopped) > 1
        assumed = " (assumed: another voter could be)" if others else ""
        return (f"{after.controller_label} becomes active{assumed}",)
    return ("its registration stays, and counts for every level",)


def start_controller(scene: RehearsedCluster, step: RegisterNode) -> StepOutcome:
    """What becomes of a controller that is started: it reads the log before it registers."""
    node, ranges = step.node, step.ranges or scene.ranges(step.node)
    if ranges is None:
        text = f"{node} has not registered: say of which release it is, {step.text}@4.3"
        return impossible(scene, step, text)
    levels = {**scene.state.levels, KRAFT_VERSION: scene.state.kraft_version}
    release = step.release or release_name_of_ranges(ranges)
    stops = start_refusal(release, ranges, levels) if release else None
    if stops:
        who = f"{node} itself (Kafka {release}), as it reads the log"
        return StepOutcome(step, StepVerdict.REFUSED, who, scene, scene, messages=(stops,))
    if node == scene.active and node not in scene.stopped:
        scene = scene.with_stopped(node)  # a process that starts has stopped before
    after = scene.with_started(node, ranges)
    does: list[str] = []
    if not after.has_leader:
        does.append("it waits until a majority of the voters is there")
        return StepOutcome(
            step, StepVerdict.ACCEPTED, FEATUREWATCH, scene, after, effects=tuple(does)
        )
    if after.active != scene.active or not scene.has_leader:
        does.append(f"{after.controller_label} becomes active")
    level = after.state.metadata_version(rules_of(after.release).default_level)
    if level is not None and level < CONTROLLER_REGISTRATION:
        does.append(
            f"it takes part; below metadata.version {CONTROLLER_REGISTRATION} none registers"
        )
        return StepOutcome(
            step, StepVerdict.ACCEPTED, FEATUREWATCH, scene, after, effects=tuple(does)
        )
    answer = decide_controller_registration(after.release, after.state)
    if not answer.accepted:
        return StepOutcome(
            step,
            StepVerdict.REFUSED,
            after.controller_label,
            scene,
            scene,
            answer=answer,
            messages=(answer.text or "",),
        )
    known = after.controller(node.node_id)
    does.append(
        f"registers controller {node.node_id} (RegisterControllerRecord): "
        + ranges_text(ranges, known.ranges if known else None)
    )
    after = after.with_controller(node.node_id, ranges)
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        after.controller_label,
        scene,
        after,
        answer=answer,
        effects=tuple(does),
    )
