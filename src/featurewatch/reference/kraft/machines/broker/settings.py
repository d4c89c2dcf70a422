"""The settings of brokers."""

from dataclasses import dataclass, field
from typing import Final

from featurewatch.controller.kraft import release_of
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.streams.types import METADATA_VERSION, SupportedRange, SupportedRanges

DEFAULT_RELEASE: Final = "4.4"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """A broker's identity, software and times; times are in ms, the defaults are Kafka's.

    ``release`` is that of its software, ``ranges`` what it supports (empty: what the release
    supports). Text ids are Kafka's. ``unregister_timeout_ms``: how long a broker that ends waits
    for the controller to remove its registration.
    """

    broker_id: int
    cluster_id: str
    incarnation_id: str
    listeners: tuple[Listener, ...]
    log_dirs: tuple[str, ...] = ()
    rack: str | None = None
    release: str = DEFAULT_RELEASE
    form: Form = Form.RELEASED
    ranges: SupportedRanges = field(default_factory=SupportedRanges)
    registration_timeout_ms: int = 60_000
    heartbeat_ms: int = 2_000
    session_timeout_ms: int = 9_000
    unregister_timeout_ms: int = 10_000

    @property
    def supported(self) -> SupportedRanges:
        """The ranges that it supports."""
        return self.ranges or release_of(self.release).ranges()

    @property
    def metadata_version(self) -> SupportedRange:
        """The levels of metadata.version that it supports."""
        return self.supported.of(METADATA_VERSION)
