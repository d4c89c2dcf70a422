"""Nodes of a rehearsal that register, unregister, stop and start."""

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
    decide_controller_unregistration,
    release_of,
    rules_of,
)
from featurewatch.controller.kraft.registration import RegisterBrokerRecord
from featurewatch.controller.kraft.releases import (
    CONTROLLER_REGISTRATION,
    MetadataLevel,
    controller_unregistration,
)
from featurewatch.controller.rehearsal.cluster import RehearsedCluster
from featurewatch.controller.rehearsal.descriptions import ranges_text
from featurewatch.controller.rehearsal.result import (
    FEATUREWATCH,
    StepOutcome,
    StepVerdict,
    impossible,
    undecided,
)
from featurewatch.controller.rehearsal.steps import (
    RegisterNode,
    ShutDownBroker,
    StopNode,
    UnregisterNode,
    is_about_partitions,
)
from featurewatch.controller.software import (
    LEARN,
    is_unknown_release,
    release_name_of_ranges,
    software_name,
    start_refusal,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    NodeId,
    NodeKey,
    Role,
    SupportedRanges,
)
from featurewatch.tables.image.nodes import intern_capabilities


def register_broker(cluster: RehearsedCluster, step: RegisterNode) -> StepOutcome:
    """The outcome of a broker's registration."""
    existing = cluster.broker(step.node.node_id)
    ranges: SupportedRanges | None = step.ranges or (existing.ranges if existing else None)
    if ranges is None:
        text = f"{step.node} has no registration: say of which release it is, {step.text}@4.3"
        return impossible(cluster, step, text)
    request = BrokerRegistrationRequest(
        step.node.node_id,
        cluster.state.cluster,
        incarnation=f"rehearsed-{cluster.epoch}",
        features=tuple((name, low, high) for name, (low, high) in ranges.items()),
        directories=(_directory(step.node.node_id),),
    )
    decision = decide_broker_registration(cluster.release, cluster.state, request, cluster.epoch)
    if decision.record is None:
        return StepOutcome(
            step,
            StepVerdict.REFUSED,
            cluster.controller_label,
            cluster,
            cluster,
            answer=decision.answer,
            messages=(decision.answer.text or "",),
        )
    after = replace(
        cluster.with_broker(_registered(request, decision.record)).with_started(step.node, ranges),
        epoch=cluster.epoch + 1,
    )
    label = ranges_text(ranges, existing.ranges if existing else None)
    version = decision.record.version
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        cluster.controller_label,
        cluster,
        after,
        answer=decision.answer,
        effects=(
            f"registers broker {step.node.node_id} (RegisterBrokerRecord {version}): {label}",
            "unfences it when it has caught up",
        ),
    )


def _directory(node_id: NodeId) -> str:
    """A log directory id that is unique to the broker."""
    identity = uuid5(NAMESPACE_OID, f"rehearsed-{node_id}").bytes
    return urlsafe_b64encode(identity).decode().rstrip("=")


def _registered(
    request: BrokerRegistrationRequest, record: RegisterBrokerRecord
) -> RegisteredBroker:
    """The registration of a broker that has caught up."""
    return RegisteredBroker(
        request.id,
        SupportedRanges((name, (low, high)) for name, low, high in record.features),
        epoch=record.epoch,
        incarnation=request.incarnation,
        directories=record.directories,
        session=True,
    )


def unregister_node(cluster: RehearsedCluster, step: UnregisterNode) -> StepOutcome:
    """The outcome of a request to remove a registration."""
    node_id = step.node.node_id
    if step.node.role is Role.CONTROLLER:
        return _unregister_controller(cluster, step)
    existing = cluster.broker(node_id)
    if existing is None:
        text = f"Broker ID {node_id} is not currently registered"
        answer = ApiError(Errors.BROKER_ID_NOT_REGISTERED, text)
        return _refused(cluster, step, answer)
    notes = (
        () if existing.fenced else ("it runs still: stop it first, or a restart brings it back",)
    )
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        cluster.controller_label,
        cluster,
        cluster.without_broker(node_id),
        answer=ApiError(Errors.NONE),
        effects=(
            f"removes broker {node_id} (UnregisterBrokerRecord): it counts for no level any more",
        ),
        notes=notes,
    )


def _refused(
    cluster: RehearsedCluster, step: UnregisterNode, answer: ApiError, notes: tuple[str, ...] = ()
) -> StepOutcome:
    """The outcome of a refused request, which changes nothing."""
    return StepOutcome(
        step,
        StepVerdict.REFUSED,
        cluster.controller_label,
        cluster,
        cluster,
        answer=answer,
        messages=(answer.text or "",),
        notes=notes,
    )


def _unregister_controller(cluster: RehearsedCluster, step: UnregisterNode) -> StepOutcome:
    """The outcome for a controller, by the release of the active one (KIP-1312)."""
    node_id, first = step.node.node_id, controller_unregistration()
    if first is None or release_of(cluster.release).metadata_level(first.level) is None:
        since = f" (Kafka {first.since} can, from {_level(first)} on)" if first else ""
        return impossible(
            cluster,
            step,
            f"Kafka {cluster.release} cannot remove the registration of a controller{since}: start "
            f"a controller {node_id} that supports the level",
        )
    answer = decide_controller_unregistration(cluster.release, cluster.state, node_id)
    if not answer.accepted:
        is_too_old = answer.error is Errors.UNSUPPORTED_VERSION
        return _refused(
            cluster, step, answer, _way_out(cluster, node_id, first) if is_too_old else ()
        )
    is_stopped = step.node in cluster.stopped
    is_voter = node_id in cluster.voters
    notes = []
    if is_voter:
        notes.append("it is a voter: remove it from the quorum first, or levels are refused again")
    if not is_stopped:
        notes.append("if it still runs, stop it first: it registers again")
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        cluster.controller_label,
        cluster,
        cluster.without_controller(node_id),
        answer=answer,
        effects=(
            f"removes controller {node_id} (UnregisterControllerRecord): it counts for no level "
            "any more",
        ),
        notes=tuple(notes),
    )


def _way_out(cluster: RehearsedCluster, node_id: NodeId, first: MetadataLevel) -> tuple[str, ...]:
    """How to get to the level from which the controller can be unregistered, if it blocks it."""
    registered = cluster.controller(node_id)
    if registered is None or registered.ranges.of(METADATA_VERSION).includes(first.level):
        return (f"raise {_level(first)} first",)
    return (
        f"it blocks {_level(first)}, which it needs: start a controller {node_id} on Kafka "
        f"{first.since}, raise, stop it, then unregister it",
    )


def _level(level: MetadataLevel) -> str:
    return f"{METADATA_VERSION} {level.level} ({level.name})"


def stop_node(
    cluster: RehearsedCluster, step: StopNode | ShutDownBroker, node: NodeKey
) -> StepOutcome:
    """The outcome of a node that stops."""
    if not cluster.knows(node):
        return impossible(cluster, step, f"{node} is not there, and cannot be lost")
    if node in cluster.stopped:
        effects = (f"{node} was lost before",)
        return StepOutcome(
            step, StepVerdict.ACCEPTED, FEATUREWATCH, cluster, cluster, effects=effects
        )
    after = cluster.with_stopped(node)
    if node.role is Role.CONTROLLER:
        return StepOutcome(
            step,
            StepVerdict.ACCEPTED,
            FEATUREWATCH,
            cluster,
            after,
            effects=_without_controller(cluster, after),
        )
    if not cluster.has_leader:
        text = "no controller is active, and only an active one fences it"
        return StepOutcome(
            step, StepVerdict.UNKNOWN, FEATUREWATCH, cluster, cluster, messages=(text,)
        )
    broker = cluster.broker(node.node_id)
    if broker is not None:
        after = after.with_broker(broker._replace(fenced=True, session=False))
    effect = f"fences broker {node.node_id} when its session ends"
    if isinstance(step, ShutDownBroker):
        effect = f"moves the leaders of broker {node.node_id}, and fences it"
    notes = ("its registration stays, and counts for every level until it is unregistered",)
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        cluster.controller_label,
        cluster,
        after,
        effects=(effect,),
        notes=() if is_about_partitions(step) else notes,
    )


def _without_controller(before: RehearsedCluster, after: RehearsedCluster) -> tuple[str, ...]:
    if not after.has_leader:
        return ("no majority of the voters is left: no request is answered until there is one",)
    if after.active != before.active:
        others = len(after.voters) - sum(key.role is Role.CONTROLLER for key in after.stopped) > 1
        assumed = " (assumed: another voter could be)" if others else ""
        return (f"{after.controller_label} becomes active{assumed}",)
    return ("its registration stays, and counts for every level",)


def start_controller(cluster: RehearsedCluster, step: RegisterNode) -> StepOutcome:
    """The outcome of a controller's start: it reads the log before it registers."""
    node, ranges = step.node, step.ranges or cluster.ranges(step.node)
    if ranges is None:
        text = f"{node} has not registered: say of which release it is, {step.text}@4.3"
        return impossible(cluster, step, text)
    levels = {**cluster.state.levels, KRAFT_VERSION: cluster.state.kraft_version}
    release = step.release or release_name_of_ranges(ranges)
    refusal = start_refusal(release, ranges, levels) if release else None
    if release is None and is_unknown_release(intern_capabilities(ranges)):
        # Whether it stops as it reads the log is its own decision.
        software = software_name(intern_capabilities(ranges))
        text = f"whether a controller of {software} starts at these levels is not known: {LEARN}"
        after = cluster.with_started(node, ranges)
        return StepOutcome(
            step, StepVerdict.UNKNOWN, FEATUREWATCH, cluster, after, messages=(text,)
        )
    if refusal:
        responder = f"{node} itself (Kafka {release}), as it reads the log"
        return StepOutcome(
            step, StepVerdict.REFUSED, responder, cluster, cluster, messages=(refusal,)
        )
    if node == cluster.active and node not in cluster.stopped:
        cluster = cluster.with_stopped(node)  # a process that starts has stopped before
    after = cluster.with_started(node, ranges)
    effects: list[str] = []
    if not after.has_leader:
        effects.append("it waits until a majority of the voters is there")
        return StepOutcome(
            step, StepVerdict.ACCEPTED, FEATUREWATCH, cluster, after, effects=tuple(effects)
        )
    if after.active != cluster.active or not cluster.has_leader:
        effects.append(f"{after.controller_label} becomes active")
    if not after.release:
        return replace(undecided(after, step), before=cluster, effects=tuple(effects))
    level = after.state.metadata_version(rules_of(after.release).default_level)
    if level is not None and level < CONTROLLER_REGISTRATION:
        effects.append(
            f"it takes part; below metadata.version {CONTROLLER_REGISTRATION} none registers"
        )
        return StepOutcome(
            step, StepVerdict.ACCEPTED, FEATUREWATCH, cluster, after, effects=tuple(effects)
        )
    answer = decide_controller_registration(after.release, after.state)
    if not answer.accepted:
        return StepOutcome(
            step,
            StepVerdict.REFUSED,
            after.controller_label,
            cluster,
            cluster,
            answer=answer,
            messages=(answer.text or "",),
        )
    registered = after.controller(node.node_id)
    effects.append(
        f"registers controller {node.node_id} (RegisterControllerRecord): "
        + ranges_text(ranges, registered.ranges if registered else None)
    )
    after = after.with_controller(node.node_id, ranges)
    return StepOutcome(
        step,
        StepVerdict.ACCEPTED,
        after.controller_label,
        cluster,
        after,
        answer=answer,
        effects=tuple(effects),
    )
