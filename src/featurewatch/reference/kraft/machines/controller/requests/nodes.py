"""Requests of brokers and controllers about themselves, and about the cluster's nodes."""

from dataclasses import dataclass

from featurewatch.reference.kraft.machines.metadata.state import Feature, Listener


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker registers (``BrokerRegistrationRequest``, 62, versions 0-4)."""

    broker_id: int
    cluster_id: str
    incarnation_id: str
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]
    rack: str | None = None
    is_migrating_zk_broker: bool = False
    log_dirs: tuple[str, ...] = ()
    previous_broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse:
    """The answer to a `BrokerRegistration`; the epoch is -1 where it was refused."""

    error_code: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat:
    """A broker reports, and says what it wants (``BrokerHeartbeatRequest``, 63, versions 0-2)."""

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: tuple[str, ...] = ()
    cordoned_log_dirs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse:
    """The answer to a `BrokerHeartbeat`."""

    error_code: int
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    """Removes the registration of a broker (``UnregisterBrokerRequest``, 64)."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class UnregisterController:
    """Removes the registration of a controller (``UnregisterControllerRequest``, KIP-1312)."""

    controller_id: int


@dataclass(frozen=True, slots=True)
class PlainResponse:
    """The answer that has an error and a text, and nothing else.

    It answers `UnregisterBroker`, `UnregisterController` and `ControllerRegistration`.
    """

    error_code: int
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """A controller registers (``ControllerRegistrationRequest``, 70)."""

    controller_id: int
    incarnation_id: str
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    features: tuple[Feature, ...]
