"""What decisions share: the state that they see, and the records that they write."""

from collections.abc import Iterable, Mapping
from random import Random
from types import MappingProxyType

from featurewatch.controller.kraft import (
    ControllerState,
    RegisteredBroker,
    RegisteredController,
)
from featurewatch.controller.kraft.kip_778 import PREVIEW_LEVEL
from featurewatch.controller.kraft.state import KRAFT_VERSION_0, MinInsync, ZkMigrationState
from featurewatch.reference.kraft.machines.controller.gates import Gates, gates_of
from featurewatch.reference.kraft.machines.controller.sessions import Sessions
from featurewatch.reference.kraft.machines.controller.settings import ControllerSettings, Form
from featurewatch.reference.kraft.machines.metadata.levels import record_at
from featurewatch.reference.kraft.machines.metadata.records import Record, record
from featurewatch.reference.kraft.machines.metadata.replay import apply
from featurewatch.reference.kraft.machines.metadata.snapshots import apply_rewriting
from featurewatch.reference.kraft.machines.metadata.state import BROKER, Broker, MetadataState
from featurewatch.streams.types import FeatureLevel, NodeId, SupportedRanges

MIN_INSYNC = "min.insync.replicas"


class Work:
    """A batch of records that is being written; each is in the state as soon as it is written.

    ``state.offset`` is the offset that the next record gets, if the batch is appended.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        state: MetadataState,
        sessions: Sessions,
        random: Random,
        now_ms: int,
        kraft_version: FeatureLevel = KRAFT_VERSION_0,
        peers: Mapping[int, SupportedRanges] = MappingProxyType({}),
    ) -> None:
        self.settings = settings
        self.state = state
        self.sessions = sessions
        self.random = random
        self.now_ms = now_ms
        self.records: list[Record] = []
        self.lines: list[str] = []
        """What the log of the process should say."""
        self._kraft_version = kraft_version
        self._peers = peers

    @property
    def gates(self) -> Gates:
        """What the current level permits."""
        return gates_of(self.settings.release, self.state.level or 0)

    def write(self, one: Record) -> None:
        """Adds a record."""
        apply_one = apply_rewriting if self.settings.form is Form.KIP_778 else apply
        self.state = apply_one(self.state, self.state.offset, one)
        self.records.append(one)

    def write_at_level(self, one: Record) -> None:
        """Adds a record of a part of the state, as the current level writes it."""
        self.write(record_at(one, self.state.level or PREVIEW_LEVEL))

    def add(self, record_type: str, version: int = 0, /, **data: object) -> None:
        """Adds a record of a type, version and data."""
        self.write(record(record_type, version, **data))

    def undo(self, state: MetadataState, count: int) -> None:
        """Takes back all but the first ``count`` records, after which the state was ``state``."""
        self.state = state
        del self.records[count:]

    def log(self, line: str) -> None:
        """Adds a line for the log of the process."""
        self.lines.append(line)

    def controller_state(self, brokers: Iterable[Broker] | None = None) -> ControllerState:
        """The state as the model of Kafka's decisions has it.

        ``brokers`` are those that a decision depends on; the default is all.
        """
        state, settings = self.state, self.settings
        found = state.brokers.values() if brokers is None else brokers
        in_order = sorted(found, key=lambda one: (one.epoch, one.id))
        return ControllerState(
            NodeId(settings.node_id),
            settings.local,
            state.levels,
            tuple(
                RegisteredBroker(
                    NodeId(one.id),
                    one.ranges,
                    one.fenced,
                    one.in_controlled_shutdown,
                    one.epoch,
                    one.incarnation_id,
                    one.log_dirs,
                    self.sessions.is_valid(one, self.now_ms),
                )
                for one in in_order
            ),
            self._controllers(),
            () if self._kraft_version else tuple(NodeId(voter) for voter in settings.quorum),
            settings.cluster_id,
            self._kraft_version,
            voters_support_kraft=False,  # this controller does not raise it
            migration=ZkMigrationState(state.migration),
            min_insync=self._min_insync(),
            java=settings.java,
        )

    def _controllers(self) -> tuple[RegisteredController, ...]:
        """The registered controllers; for KIP-778, which has no registration, known ones too."""
        found = {one.id: one.ranges for one in self.state.controllers.values()}
        if self.settings.form is Form.KIP_778:
            found = {**self._peers, **found}
        return tuple(RegisteredController(NodeId(one), found[one]) for one in sorted(found))

    def _min_insync(self) -> MinInsync:
        brokers = [
            NodeId(int(name))
            for (kind, name), found in self.state.configs.items()
            if kind == BROKER and name.isdecimal() and MIN_INSYNC in found
        ]
        cluster = self.state.setting(BROKER, "", MIN_INSYNC) is not None
        return MinInsync(self.settings.min_insync_replicas, cluster, tuple(sorted(brokers)))
