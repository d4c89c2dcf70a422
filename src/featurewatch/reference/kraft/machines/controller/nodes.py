"""Registrations and heartbeats: brokers are registered, fenced, unfenced, shut down and removed.

Follows ``ClusterControlManager``, ``BrokerHeartbeatManager`` and ``ReplicationControlManager``;
what a registration needs is decided by `controller.kraft`.
"""

from enum import Enum, auto

from featurewatch.controller.kraft import (
    BrokerRegistrationRequest,
    decide_broker_registration,
    decide_controller_registration,
    decide_controller_unregistration,
)
from featurewatch.reference.kraft.machines.controller import partitions
from featurewatch.reference.kraft.machines.controller.errors import (
    BROKER_ID_NOT_REGISTERED,
    NONE,
    STALE_BROKER_EPOCH,
    text_of,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    ControllerRegistration,
    PlainResponse,
    UnregisterBroker,
    UnregisterController,
)
from featurewatch.reference.kraft.machines.controller.work import Work
from featurewatch.reference.kraft.machines.metadata.state import (
    Broker,
    Controller,
    Feature,
    ranges_of,
)
from featurewatch.reference.kraft.machines.metadata.state_records import (
    broker_record,
    controller_record,
)
from featurewatch.streams.types import FeatureName, NodeId

_FENCE, _UNFENCE, _SHUTS_DOWN = 1, -1, 1
_WITH_DIRECTORIES, _WITH_CORDONS, _WITH_SHUTDOWN = 2, 3, 1
"""Versions of the BrokerRegistrationChangeRecord."""


def register_broker(work: Work, request: BrokerRegistration) -> BrokerRegistrationResponse:
    """Registers a broker, fenced; its epoch is the offset at which that begins."""
    features = {feature.name: feature for feature in request.features}
    decision = decide_broker_registration(
        work.settings.release,
        work.controller_state(_rivals(work, request)),
        BrokerRegistrationRequest(
            NodeId(request.broker_id),
            request.cluster_id,
            request.incarnation_id,
            tuple((FeatureName(name), low, high) for name, low, high in features.values()),
            request.log_dirs,
            tuple(listener.name for listener in request.listeners),
            request.is_migrating_zk_broker,
        ),
        work.state.offset,
    )
    found = decision.record
    if found is None:
        text = decision.answer.text or text_of(decision.answer.error)
        work.log(f"refused broker {request.broker_id}: {text}")
        return BrokerRegistrationResponse(int(decision.answer.error))
    existing = work.state.brokers.get(request.broker_id)
    if existing is not None and existing.incarnation_id != request.incarnation_id:
        _clean_up(work, existing, request.previous_broker_epoch)
    registered = tuple(Feature(name, low, high) for name, low, high in found.features)
    broker = Broker(
        request.broker_id,
        found.epoch,
        request.incarnation_id,
        request.listeners,
        registered,
        ranges_of(registered),
        request.rack,
        found.fenced,
        found.shutting_down,
        found.migrating,
        found.directories,
        None,
        work.state.offset,
    )
    work.write_at_level(broker_record(broker))
    if found.fenced:
        work.sessions.forget(broker.id)
    work.log(f"registered broker {broker.id} with epoch {broker.epoch}")
    return BrokerRegistrationResponse(NONE, broker.epoch)


def _rivals(work: Work, request: BrokerRegistration) -> list[Broker]:
    """The brokers on which a registration depends, by their id or their directories.

    All others would make the registration of ten thousand take ten thousand times as long.
    """
    directories = frozenset(request.log_dirs)
    return [
        one
        for one in work.state.brokers.values()
        if one.id == request.broker_id or not directories.isdisjoint(one.log_dirs)
    ]


def _clean_up(work: Work, existing: Broker, previous_epoch: int) -> None:
    """Takes the replicas of an earlier incarnation out of what the new one does not have."""
    if partitions.election_rules(work).elr and previous_epoch != existing.epoch:
        partitions.remove_unclean(work, existing.id)
    elif not existing.fenced:
        partitions.remove_broker(work, existing.id)


def unregister_broker(work: Work, request: UnregisterBroker) -> PlainResponse:
    """Removes a registration, whether the broker lives or not."""
    broker = work.state.brokers.get(request.broker_id)
    if broker is None:
        text = f"Broker ID {request.broker_id} is not currently registered"
        return PlainResponse(BROKER_ID_NOT_REGISTERED, text)
    partitions.remove_broker(work, broker.id)
    work.add("UNREGISTER_BROKER_RECORD", brokerId=broker.id, brokerEpoch=broker.epoch)
    work.sessions.forget(broker.id)
    work.log(f"unregistered broker {broker.id}")
    return PlainResponse(NONE)


def register_controller(work: Work, request: ControllerRegistration) -> PlainResponse:
    """Registers a controller (KIP-919)."""
    answer = decide_controller_registration(work.settings.release, work.controller_state(()))
    if not answer.accepted:
        return PlainResponse(int(answer.error), answer.text)
    work.write_at_level(controller_record(controller_of(request)))
    work.log(f"registered controller {request.controller_id}")
    return PlainResponse(NONE)


def controller_of(request: ControllerRegistration) -> Controller:
    """The registration that a request leads to."""
    return Controller(
        request.controller_id,
        request.incarnation_id,
        False,
        request.listeners,
        request.features,
        ranges_of(request.features),
    )


def unregister_controller(work: Work, request: UnregisterController) -> PlainResponse:
    """Removes the registration of a controller (KIP-1312)."""
    answer = decide_controller_unregistration(
        work.settings.release, work.controller_state(()), NodeId(request.controller_id)
    )
    if not answer.accepted:
        return PlainResponse(int(answer.error), answer.text)
    work.add("UNREGISTER_CONTROLLER_RECORD", controllerId=request.controller_id)
    return PlainResponse(NONE)


# -- heartbeats ------------------------------------------------------------------------------------


class _State(Enum):
    """The states of a broker (``BrokerControlState``)."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


def heartbeat(work: Work, request: BrokerHeartbeat) -> BrokerHeartbeatResponse:
    """Keeps a session alive, and changes the state of the broker as it wants and as it may."""
    broker = work.state.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return BrokerHeartbeatResponse(STALE_BROKER_EPOCH)
    work.sessions.note_heartbeat(broker, request.current_metadata_offset, work.now_ms)
    is_caught_up = request.current_metadata_offset >= broker.offset
    after = _next_state(work, broker, request, is_caught_up=is_caught_up)
    match after:
        case _State.FENCED | _State.SHUTDOWN_NOW:
            if not broker.fenced:
                fence(work, broker)
        case _State.UNFENCED:
            if broker.fenced:
                _unfence(work, broker)
        case _State.CONTROLLED_SHUTDOWN:
            _begin_shutdown(work, broker)
    _change_directories(work, request)
    return BrokerHeartbeatResponse(
        NONE,
        is_caught_up,
        after in (_State.FENCED, _State.SHUTDOWN_NOW),
        after is _State.SHUTDOWN_NOW,
    )


def _next_state(
    work: Work, broker: Broker, request: BrokerHeartbeat, *, is_caught_up: bool
) -> _State:
    """``BrokerHeartbeatManager.calculateNextBrokerState``."""
    if broker.fenced:
        if request.want_shut_down:
            return _State.SHUTDOWN_NOW
        return _State.UNFENCED if is_caught_up and not request.want_fence else _State.FENCED
    leads = any(
        work.state.partitions[key].leader == broker.id
        for key in work.state.partitions_of(broker.id)
    )
    if broker.in_controlled_shutdown or (request.want_shut_down and not request.want_fence):
        if leads:
            return _State.CONTROLLED_SHUTDOWN
        if not broker.in_controlled_shutdown:
            return _State.SHUTDOWN_NOW
        active = [one for one in work.state.brokers.values() if one.is_active]
        may = work.sessions.may_shut_down(broker.id, active)
        return _State.SHUTDOWN_NOW if may else _State.CONTROLLED_SHUTDOWN
    if request.want_fence:
        return _State.SHUTDOWN_NOW if request.want_shut_down else _State.FENCED
    return _State.UNFENCED


def fence(work: Work, broker: Broker) -> None:
    """Fences a broker: it leads nothing and is in no ISR."""
    partitions.remove_broker(work, broker.id)
    if work.gates.registration_change:
        _change(work, broker, 0, fenced=_FENCE)
    else:
        work.add("FENCE_BROKER_RECORD", id=broker.id, epoch=broker.epoch)
    work.sessions.end_shutdown(broker.id)
    work.log(f"fenced broker {broker.id}")


def _unfence(work: Work, broker: Broker) -> None:
    if work.gates.registration_change:
        _change(work, broker, 0, fenced=_UNFENCE)
    else:
        work.add("UNFENCE_BROKER_RECORD", id=broker.id, epoch=broker.epoch)
    partitions.elect_for_leaderless(work)
    work.log(f"unfenced broker {broker.id}")


def _begin_shutdown(work: Work, broker: Broker) -> None:
    """Moves the leaders of a broker away; the others must know of that before it may end."""
    if work.gates.controlled_shutdown and not broker.in_controlled_shutdown:
        _change(work, broker, _WITH_SHUTDOWN, inControlledShutdown=_SHUTS_DOWN)
        work.log(f"broker {broker.id} shuts down")
    partitions.remove_broker(work, broker.id)
    work.sessions.begin_shutdown(broker.id, work.state.offset - 1)


def _change(work: Work, broker: Broker, version: int, **data: object) -> None:
    work.add(
        "BROKER_REGISTRATION_CHANGE_RECORD",
        version,
        brokerId=broker.id,
        brokerEpoch=broker.epoch,
        **data,
    )


def _change_directories(work: Work, request: BrokerHeartbeat) -> None:
    """Takes replicas in directories that failed out of ISRs (KIP-858); notes cordons (KIP-1066)."""
    broker = work.state.brokers[request.broker_id]
    gone = {one for one in request.offline_log_dirs if one in broker.log_dirs}
    if work.gates.directories and gone:
        lost = [
            key
            for key in work.state.partitions_of(broker.id)
            if work.state.partitions[key].directory_of(broker.id) in gone
        ]
        partitions.remove_broker(work, broker.id, lost)
        left = [one for one in broker.log_dirs if one not in gone]
        _change(work, broker, _WITH_DIRECTORIES, logDirs=left)
        work.log(f"broker {broker.id} has lost {len(gone)} log directories")
    cordoned = request.cordoned_log_dirs
    if work.gates.cordons and cordoned is not None and cordoned != broker.cordoned_log_dirs:
        _change(work, broker, _WITH_CORDONS, cordonedLogDirs=[*cordoned])


def fence_stale(work: Work) -> None:
    """Fences the brokers whose sessions have ended."""
    for _, broker in sorted(work.state.brokers.items()):
        if not broker.fenced and not work.sessions.is_valid(broker, work.now_ms):
            fence(work, work.state.brokers[broker.id])


def epoch_error(work: Work, broker_id: int, epoch: int) -> int:
    """The error of a request of a broker that is not registered with this epoch, or 0."""
    broker = work.state.brokers.get(broker_id)
    return NONE if broker is not None and broker.epoch == epoch else STALE_BROKER_EPOCH
