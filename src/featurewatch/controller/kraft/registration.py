"""Decides registrations of nodes as ``ClusterControlManager`` does."""

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import dataclass

from featurewatch.controller.kraft.map_order import hash_map_order, string_hash, timeline_map_order
from featurewatch.controller.kraft.release_rules import ReleaseRules, rules_of
from featurewatch.controller.kraft.releases import (
    CONTROLLER_REGISTRATION,
    can_unregister_controllers,
)
from featurewatch.controller.kraft.requests import ACCEPTED, ApiError, Errors, rejected
from featurewatch.controller.kraft.state import ControllerState, RegisteredBroker, ZkMigrationState
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
)

Offered = tuple[FeatureName, int, int]
"""A feature as a node advertises it: name, lowest and highest level."""

_DIRECTORIES = 17  # 3.7-IV2, KIP-858
_MIGRATION = 8  # 3.4-IV0, KIP-866
_ACTIVE = "Controller cannot unregister itself while it is active."
_TOO_OLD_TO_UNREGISTER = (
    "The current MetadataVersion is too old to support controller unregistration."
)
_NO_LEVEL = "Unknown metadata version for FeatureControlManager"
_RESERVED_DIRECTORIES = 100


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest:
    """A ``BrokerRegistration`` request: the fields that the controller checks."""

    id: NodeId
    cluster: str
    incarnation: str
    features: tuple[Offered, ...]
    directories: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ("PLAINTEXT",)
    migrating: bool = False


@dataclass(frozen=True, slots=True)
class RegisterBrokerRecord:
    """The ``RegisterBrokerRecord`` that would be written."""

    version: int
    features: tuple[Offered, ...]
    directories: tuple[str, ...]
    epoch: int
    fenced: bool
    shutting_down: bool
    migrating: bool


@dataclass(frozen=True, slots=True)
class RegistrationDecision:
    """The response to a broker, and the record if it may register."""

    answer: ApiError
    record: RegisterBrokerRecord | None = None


class _RegistrationRefusedError(Exception):
    def __init__(self, error: Errors, text: str) -> None:
        super().__init__(text)
        self.answer = rejected(error, text)


def decide_broker_registration(
    release: str, state: ControllerState, request: BrokerRegistrationRequest, epoch: int
) -> RegistrationDecision:
    """Whether a broker may register; ``epoch`` is the broker epoch of a new registration.

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    rules = rules_of(release)
    try:
        return RegistrationDecision(ACCEPTED, _registration_record(rules, state, request, epoch))
    except _RegistrationRefusedError as refusal:
        return RegistrationDecision(refusal.answer)


def _registration_record(
    rules: ReleaseRules, state: ControllerState, request: BrokerRegistrationRequest, epoch: int
) -> RegisterBrokerRecord:
    level = state.metadata_version(rules.default_level)
    if level is None:
        raise _RegistrationRefusedError(Errors.UNKNOWN_SERVER_ERROR, _NO_LEVEL)
    if request.cluster != state.cluster:
        text = f"Expected cluster ID {state.cluster}, but got cluster ID {request.cluster}"
        raise _RegistrationRefusedError(Errors.INCONSISTENT_CLUSTER_ID, text)
    existing = next((broker for broker in state.brokers if broker.id == request.id), None)
    _check_duplicate(rules, existing, request)
    _check_migration(rules, state, request, level)
    if level >= _DIRECTORIES:
        _check_directories(state, request)
    features = _check_features(rules, state, request, level)
    is_reregistration = existing is not None and existing.incarnation == request.incarnation
    version = rules.release.gate(level, "registerBrokerRecordVersion", 0)
    return RegisterBrokerRecord(
        int(version or 0),
        features,
        request.directories if level >= _DIRECTORIES else (),
        existing.epoch if is_reregistration and existing else epoch,
        fenced=existing.fenced if is_reregistration and existing else True,
        shutting_down=bool(is_reregistration and existing and existing.shutting_down),
        migrating=request.migrating,
    )


def _check_duplicate(
    rules: ReleaseRules, existing: RegisteredBroker | None, request: BrokerRegistrationRequest
) -> None:
    if existing is None or existing.incarnation == request.incarnation or not existing.session:
        return
    if existing.fenced and rules.migrates:
        return  # up to 3.9 a fenced broker has no session, whatever it sends
    text = "Another broker is registered with that broker id."
    if rules.explains_duplicates:
        text += (
            " If the broker was recently restarted this should self-resolve once the heartbeat "
            "manager expires the broker's session."
        )
    raise _RegistrationRefusedError(Errors.DUPLICATE_BROKER_REGISTRATION, text)


def _check_migration(
    rules: ReleaseRules,
    state: ControllerState,
    request: BrokerRegistrationRequest,
    level: FeatureLevel,
) -> None:
    allowed = rules.migrates and state.migration_enabled and level >= _MIGRATION
    if request.migrating and not allowed:
        text = "Controller does not support registering ZK brokers."
        raise _RegistrationRefusedError(Errors.BROKER_ID_NOT_REGISTERED, text)
    is_pre_migration = rules.migrates and state.migration is ZkMigrationState.PRE_MIGRATION
    if not request.migrating and is_pre_migration:
        text = (
            "Controller is in pre-migration mode and cannot register KRaft brokers until the "
            "metadata migration is complete."
        )
        raise _RegistrationRefusedError(Errors.BROKER_ID_NOT_REGISTERED, text)
    if request.migrating and state.listener not in request.listeners:
        text = f"Broker does not have the current inter.broker.listener {state.listener}"
        raise _RegistrationRefusedError(Errors.INVALID_REGISTRATION, text)


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    directories = request.directories
    if not directories:
        raise _RegistrationRefusedError(
            Errors.INVALID_REGISTRATION, "No directories specified in request"
        )
    if any(_is_reserved(directory) for directory in directories):
        raise _RegistrationRefusedError(
            Errors.INVALID_REGISTRATION, "Reserved directory ID in request"
        )
    if len(set(directories)) != len(directories):
        raise _RegistrationRefusedError(
            Errors.INVALID_REGISTRATION, "Duplicate directory ID in request"
        )
    owners = {directory: broker.id for broker in state.brokers for directory in broker.directories}
    for directory in directories:
        owner = owners.get(directory, request.id)
        if owner != request.id:
            text = f"Broker {owner} is already registered with directory {directory}"
            raise _RegistrationRefusedError(Errors.INVALID_REGISTRATION, text)


def _is_reserved(directory: str) -> bool:
    return int.from_bytes(urlsafe_b64decode(directory + "==")) < _RESERVED_DIRECTORIES


def _check_features(
    rules: ReleaseRules,
    state: ControllerState,
    request: BrokerRegistrationRequest,
    level: FeatureLevel,
) -> tuple[Offered, ...]:
    finalized = {**state.levels, METADATA_VERSION: level, KRAFT_VERSION: state.kraft_version}
    offered = {name for name, _, _ in request.features}
    for feature in request.features:
        _check_feature(finalized, feature)
    assumed: tuple[Offered, ...] = ()
    if METADATA_VERSION not in offered:
        if not rules.assumes_level_1:
            text = f"Request features do not contain '{METADATA_VERSION}'"
            raise _RegistrationRefusedError(Errors.INVALID_REGISTRATION, text)
        assumed = ((METADATA_VERSION, 1, 1),)
        _check_feature(finalized, assumed[0])
    for name in _finalized_order(rules, state):
        if name not in offered and name != METADATA_VERSION and finalized[name]:
            _check_feature(finalized, (name, 0, 0))
    return (*request.features, *assumed)


def _check_feature(finalized: dict[FeatureName, FeatureLevel], feature: Offered) -> None:
    name, low, high = feature
    level = finalized.get(name, 0)
    if not low <= level <= high:
        text = (
            f"Unable to register because the broker does not support finalized version {level} of "
            f"{name}. The broker wants a version between {low} and {high}, inclusive."
        )
        raise _RegistrationRefusedError(Errors.UNSUPPORTED_VERSION, text)


def _finalized_order(rules: ReleaseRules, state: ControllerState) -> Iterable[FeatureName]:
    """The finalized features in the iteration order of the controller's copies of its maps."""
    excluded = (
        {METADATA_VERSION, KRAFT_VERSION} if rules.skips_kraft_records else {METADATA_VERSION}
    )
    others = [name for name, level in state.levels.items() if name not in excluded and level]
    names = hash_map_order([METADATA_VERSION, *timeline_map_order(others, string_hash)])
    copied = hash_map_order([*names, KRAFT_VERSION], copied_of=len(names), java=state.java)
    recopied = hash_map_order(copied, copied_of=len(copied), java=state.java)
    return [FeatureName(name) for name in recopied]


def decide_controller_registration(release: str, state: ControllerState) -> ApiError:
    """Whether a controller may register; its ranges are not checked (KIP-919).

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    level = state.metadata_version(rules_of(release).default_level)
    if level is None:
        return rejected(Errors.UNKNOWN_SERVER_ERROR, _NO_LEVEL)
    if level < CONTROLLER_REGISTRATION:
        text = "The current MetadataVersion is too old to support controller registrations."
        return rejected(Errors.UNSUPPORTED_VERSION, text)
    return ACCEPTED


def decide_controller_unregistration(
    release: str, state: ControllerState, node_id: NodeId
) -> ApiError:
    """Whether a controller's registration is removed (KIP-1312), by a release that serves that.

    A voter is not refused, nor one that runs; only the active controller is
    (``QuorumController.unregisterController``, ``ClusterControlManager.unregisterController``).

    Raises:
        UnknownReleaseError: if the release is unknown.
    """
    level = state.metadata_version(rules_of(release).default_level)
    if node_id == state.id:
        return rejected(Errors.INVALID_REQUEST, _ACTIVE)
    if level is None or not can_unregister_controllers(level):
        return rejected(Errors.UNSUPPORTED_VERSION, _TOO_OLD_TO_UNREGISTER)
    if all(controller.id != node_id for controller in state.controllers):
        text = f"Controller ID {node_id} is not currently registered."
        return rejected(Errors.CONTROLLER_ID_NOT_REGISTERED, text)
    return ACCEPTED
