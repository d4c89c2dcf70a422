"""What a controller answers to a node that registers: ``ClusterControlManager``."""

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import dataclass

from featurewatch.controller.kraft.map_order import hash_map_order, string_hash, timeline_map_order
from featurewatch.controller.kraft.release_rules import ReleaseRules, rules_of
from featurewatch.controller.kraft.releases import CONTROLLER_REGISTRATION
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
"""A feature as a node offers it: name, lowest and highest level."""

_DIRECTORIES = 17  # 3.7-IV2, KIP-858
_MIGRATION = 8  # 3.4-IV0, KIP-866
_NO_LEVEL = "Unknown metadata version for FeatureControlManager"
_RESERVED_DIRECTORIES = 100


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest:
    """A ``BrokerRegistration`` request, as far as anything is checked."""

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
    """The answer to a broker, and the record if it may register."""

    answer: ApiError
    record: RegisterBrokerRecord | None = None


class _RegistrationRefused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, error: Errors, text: str) -> None:
        super().__init__(text)
        self.answer = rejected(error, text)


def decide_broker_registration(
    release: str, state: ControllerState, request: BrokerRegistrationRequest, epoch: int
) -> RegistrationDecision:
    """Whether a broker may register; ``epoch`` is the one that a new registration would get.

    Raises:
        controller.kraft.table.UnknownReleaseError: if the release is unknown.
    """
    dialect = rules_of(release)
    try:
        return RegistrationDecision(ACCEPTED, _registered(dialect, state, request, epoch))
    except _RegistrationRefused as no:
        return RegistrationDecision(no.answer)


def _registered(
    dialect: ReleaseRules, state: ControllerState, request: BrokerRegistrationRequest, epoch: int
) -> RegisterBrokerRecord:
    level = state.metadata_version(dialect.default_level)
    if level is None:
        raise _RegistrationRefused(Errors.UNKNOWN_SERVER_ERROR, _NO_LEVEL)
    if request.cluster != state.cluster:
        text = f"Expected cluster ID {state.cluster}, but got cluster ID {request.cluster}"
        raise _RegistrationRefused(Errors.INCONSISTENT_CLUSTER_ID, text)
    existing = next((one for one in state.brokers if one.id == request.id), None)
    _check_duplicate(dialect, existing, request)
    _check_migration(dialect, state, request, level)
    if level >= _DIRECTORIES:
        _check_directories(state, request)
    features = _check_features(dialect, state, request, level)
    amends = existing is not None and existing.incarnation == request.incarnation
    version = dialect.release.gate(level, "registerBrokerRecordVersion", 0)
    return RegisterBrokerRecord(
        int(version or 0),
        features,
        request.directories if level >= _DIRECTORIES else (),
        existing.epoch if amends and existing else epoch,
        fenced=existing.fenced if amends and existing else True,
        shutting_down=bool(amends and existing and existing.shutting_down),
        migrating=request.migrating,
    )


def _check_duplicate(
    dialect: ReleaseRules, existing: RegisteredBroker | None, request: BrokerRegistrationRequest
) -> None:
    if existing is None or existing.incarnation == request.incarnation or not existing.session:
        return
    if existing.fenced and dialect.migrates:
        return  # up to 3.9 a fenced broker has no session, whatever it sends
    text = "Another broker is registered with that broker id."
    if dialect.explains_duplicates:
        text += (
            " If the broker was recently restarted this should self-resolve once the heartbeat "
            "manager expires the broker's session."
        )
    raise _RegistrationRefused(Errors.DUPLICATE_BROKER_REGISTRATION, text)


def _check_migration(
    dialect: ReleaseRules,
    state: ControllerState,
    request: BrokerRegistrationRequest,
    level: FeatureLevel,
) -> None:
    allowed = dialect.migrates and state.migration_enabled and level >= _MIGRATION
    if request.migrating and not allowed:
        text = "Controller does not support registering ZK brokers."
        raise _RegistrationRefused(Errors.BROKER_ID_NOT_REGISTERED, text)
    before = dialect.migrates and state.migration is ZkMigrationState.PRE_MIGRATION
    if not request.migrating and before:
        text = (
            "Controller is in pre-migration mode and cannot register KRaft brokers until the "
            "metadata migration is complete."
        )
        raise _RegistrationRefused(Errors.BROKER_ID_NOT_REGISTERED, text)
    if request.migrating and state.listener not in request.listeners:
        text = f"Broker does not have the current inter.broker.listener {state.listener}"
        raise _RegistrationRefused(Errors.INVALID_REGISTRATION, text)


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    directories = request.directories
    if not directories:
        raise _RegistrationRefused(
            Errors.INVALID_REGISTRATION, "No directories specified in request"
        )
    if any(_reserved(directory) for directory in directories):
        raise _RegistrationRefused(Errors.INVALID_REGISTRATION, "Reserved directory ID in request")
    if len(set(directories)) != len(directories):
        raise _RegistrationRefused(Errors.INVALID_REGISTRATION, "Duplicate directory ID in request")
    owners = {directory: one.id for one in state.brokers for directory in one.directories}
    for directory in directories:
        owner = owners.get(directory, request.id)
        if owner != request.id:
            text = f"Broker {owner} is already registered with directory {directory}"
            raise _RegistrationRefused(Errors.INVALID_REGISTRATION, text)


def _reserved(directory: str) -> bool:
    return int.from_bytes(urlsafe_b64decode(directory + "==")) < _RESERVED_DIRECTORIES


def _check_features(
    dialect: ReleaseRules,
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
        if not dialect.assumes_level_1:
            text = f"Request features do not contain '{METADATA_VERSION}'"
            raise _RegistrationRefused(Errors.INVALID_REGISTRATION, text)
        assumed = ((METADATA_VERSION, 1, 1),)
        _check_feature(finalized, assumed[0])
    for name in _finalized_order(dialect, state):
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
        raise _RegistrationRefused(Errors.UNSUPPORTED_VERSION, text)


def _finalized_order(dialect: ReleaseRules, state: ControllerState) -> Iterable[FeatureName]:
    """The finalized features as they come out of the copies that the controller makes of them."""
    apart = {METADATA_VERSION, KRAFT_VERSION} if dialect.skips_kraft_records else {METADATA_VERSION}
    others = [name for name, level in state.levels.items() if name not in apart and level]
    names = hash_map_order([METADATA_VERSION, *timeline_map_order(others, string_hash)])
    copied = hash_map_order([*names, KRAFT_VERSION], copied_of=len(names), java=state.java)
    again = hash_map_order(copied, copied_of=len(copied), java=state.java)
    return [FeatureName(name) for name in again]


def decide_controller_registration(release: str, state: ControllerState) -> ApiError:
    """Whether a controller may register: its ranges are not looked at (KIP-919).

    Raises:
        controller.kraft.table.UnknownReleaseError: if the release is unknown.
    """
    level = state.metadata_version(rules_of(release).default_level)
    if level is None:
        return rejected(Errors.UNKNOWN_SERVER_ERROR, _NO_LEVEL)
    if level < CONTROLLER_REGISTRATION:
        text = "The current MetadataVersion is too old to support controller registrations."
        return rejected(Errors.UNSUPPORTED_VERSION, text)
    return ACCEPTED
