"""The settings of a metadata controller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from featurewatch.controller.kraft import release_of
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName, SupportedRanges


class Form(StrEnum):
    """How the controller treats levels."""

    RELEASED = "released"
    """As the controllers of a release."""
    KIP_778 = "kip-778"
    """As the document is written: snapshots at each change of the level, lossy downgrades."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """A controller's identity, software and defaults; times are in ms, the defaults are Kafka's.

    ``release`` is that of its software, ``ranges`` what it supports (empty: what the release
    supports). ``bootstrap`` are the levels that a new cluster gets; without metadata.version it
    gets the newest one that the controller supports, in the form of KIP-778 level 1.
    ``quorum`` are the voters of ``controller.quorum.voters``. ``java`` is the version whose maps
    decide the order of refusals.
    """

    node_id: int
    cluster_id: str
    incarnation_id: str
    listeners: tuple[Listener, ...]
    quorum: tuple[int, ...]
    release: str = "4.3"
    form: Form = Form.RELEASED
    ranges: SupportedRanges = field(default_factory=SupportedRanges)
    bootstrap: Mapping[FeatureName, FeatureLevel] = field(default_factory=dict)
    session_timeout_ms: int = 9_000
    num_partitions: int = 1
    replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_election: bool = False
    leader_imbalance_check_ms: int = 300_000
    snapshot_bytes: int = 20 << 20
    """A snapshot is taken after this many bytes of the log (released form)."""
    retained_bytes: int = 100 << 20
    """The log before a snapshot is deleted once it has this many bytes."""
    lowered_log_ms: int = 5_000
    """The log before a lowered level is deleted after this time (form of KIP-778): brokers that
    follow it have the change as a record by then, and those that lag load the snapshot."""
    register_retry_ms: int = 1_000
    java: int = 17

    @property
    def local(self) -> SupportedRanges:
        """The ranges that it supports."""
        return self.ranges or release_of(self.release).ranges()

    @property
    def first_levels(self) -> dict[FeatureName, FeatureLevel]:
        """The levels of a new cluster, metadata.version first."""
        level = self.bootstrap.get(METADATA_VERSION)
        if level is None:
            newest = FeatureLevel(self.local.of(METADATA_VERSION).maximum)
            level = FeatureLevel(1) if self.form is Form.KIP_778 else newest
        return {METADATA_VERSION: level, **self.bootstrap}
