"""Creates, reads and writes the finalized features for a controller, fenced by its epoch."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from featurewatch.reference.zookeeper.machines import encoding
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.protocol import Effect, WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    CheckVersion,
    Create,
    Exists,
    GetData,
    GetDataResult,
    Multi,
    NodeExists,
    NoNode,
    OperationDone,
    OutcomeUnknown,
    SetData,
    Stat,
    WriteOperation,
)
from featurewatch.streams.types import KRAFT_VERSION, SupportedRange
from featurewatch.streams.znodes import FeaturesZnode

FENCE: Final = 0
"""The index of the check of the controller epoch in each transaction."""


class WriteResult(Enum):
    """The result of a write; the values are texts for responses."""

    WRITTEN = "it is written"
    DEPOSED = "another controller was elected; nothing is written"
    DEPOSED_UNKNOWN = "another controller was elected, and nobody knows whether it is written"
    OVERTAKEN = "somebody else changed the znode; nothing is written"
    UNKNOWN = "nobody knows whether it is written"
    REFUSED = "ZooKeeper refused it; nothing is written"


class FinalizedFeatureStore:
    """The features znode as last read; ``stale`` means that its watch has fired since."""

    def __init__(
        self,
        dialect: Dialect,
        supported: Mapping[str, SupportedRange],
        emit: Callable[[Effect], None],
    ) -> None:
        self._dialect = dialect
        self._supported = supported
        self._emit = emit
        self.reset()

    def reset(self) -> None:
        """Discards the cached znode."""
        self.levels: Mapping[str, int] = {}
        self._stat: Stat | None = None
        self._znode: FeaturesZnode | None = None
        self.stale = False

    @property
    def is_readable(self) -> bool:
        """Whether the znode was read and decoded."""
        return self._znode is not None

    @property
    def epoch(self) -> int:
        """The znode's data version; -1 if it is not known to exist."""
        return -1 if self._stat is None else self._stat.version

    def initialize(self, fence: int) -> Task[WriteResult]:
        """Creates an absent znode and enables a disabled one; leaves others unchanged.

        ``fence`` is the expected version of ``/controller_epoch``. The controller's start-up waits
        for this (KIP-584, bootstrap; ``KafkaController.enableFeatureVersioning``). An unreadable
        znode is logged and left unchanged.
        """
        while True:
            yield from self.read()
            if self._stat is not None and not self._needs_rewrite():
                return WriteResult.WRITTEN
            operation: WriteOperation
            if self._stat is None:
                first = encoding.encode_features(self._dialect, self._default_levels())
                operation = Create(self._dialect.path, first)
            else:
                again = encoding.encode_features(self._dialect, self.levels)
                operation = SetData(self._dialect.path, again, self._stat.version)
            outcome = yield from perform(
                Multi((CheckVersion(encoding.CONTROLLER_EPOCH, fence), operation))
            )
            match outcome:
                case BadVersion(index) | NoNode(index) if index == FENCE:
                    return WriteResult.DEPOSED
                case OperationDone() | NodeExists() | BadVersion() | NoNode() | OutcomeUnknown():
                    continue
                case _:
                    self._emit(
                        WriteLog(f"cannot set up {self._dialect.path}: {outcome}", warning=True)
                    )
                    return WriteResult.REFUSED

    def read(self) -> Task[None]:
        """Reads the znode and leaves a watch, also if it does not exist."""
        path = self._dialect.path
        while True:
            self.stale = False
            result = yield from perform(GetData(path, watch=True))
            if isinstance(result, GetDataResult):
                self._load(result)
                return
            self.reset()
            if not isinstance(result, NoNode):
                self._emit(WriteLog(f"cannot read {path}: {result}", warning=True))
                return
            existence = yield from perform(Exists(path, watch=True))
            if isinstance(existence, NoNode):
                return

    def write(self, levels: Mapping[str, int], fence: int) -> Task[WriteResult]:
        """Writes the levels if the znode is as last read and no other controller was elected.

        A write of unknown outcome is repeated. Its conditions let it succeed at most once, and the
        outcome of the second attempt shows that of the first.
        """
        before, znode = self._stat, self._znode
        if before is None or znode is None:
            return WriteResult.REFUSED
        data = encoding.encode_features(
            self._dialect, levels, encoding.metadata_of(znode), before.version + 1
        )
        operation = Multi(
            (
                CheckVersion(encoding.CONTROLLER_EPOCH, fence),
                SetData(self._dialect.path, data, before.version),
            )
        )
        is_outcome_unknown = False
        while True:
            outcome = yield from perform(operation)
            match outcome:
                case OutcomeUnknown():
                    is_outcome_unknown = True
                case OperationDone():
                    return WriteResult.WRITTEN
                case BadVersion(index) | NoNode(index) if index == FENCE:
                    return (
                        (yield from self._resolve_deposed(before))
                        if is_outcome_unknown
                        else WriteResult.DEPOSED
                    )
                case BadVersion():
                    return (
                        (yield from self._resolve_changed(before, data))
                        if is_outcome_unknown
                        else WriteResult.OVERTAKEN
                    )
                case _:
                    return WriteResult.UNKNOWN if is_outcome_unknown else WriteResult.REFUSED

    def _resolve_changed(self, before: Stat, data: bytes) -> Task[WriteResult]:
        """Still the controller and the znode has changed: checks whether the lost write did it."""
        result = yield from perform(GetData(self._dialect.path))
        if not isinstance(result, GetDataResult):
            return WriteResult.UNKNOWN
        is_next_version = (result.stat.czxid, result.stat.version) == (
            before.czxid,
            before.version + 1,
        )
        return (
            WriteResult.WRITTEN if is_next_version and result.data == data else WriteResult.UNKNOWN
        )

    def _resolve_deposed(self, before: Stat) -> Task[WriteResult]:
        """Deposed: an unchanged znode shows that the write did not happen, and never will."""
        result = yield from perform(GetData(self._dialect.path))
        is_unchanged = isinstance(result, GetDataResult) and result.stat == before
        return WriteResult.DEPOSED if is_unchanged else WriteResult.DEPOSED_UNKNOWN

    def _load(self, result: GetDataResult) -> None:
        self.reset()
        self._stat = result.stat
        try:
            self._znode = encoding.decode_features(self._dialect, result.data)
        except encoding.ZnodeDecodeError as error:
            self._emit(WriteLog(f"cannot read {self._dialect.path}: {error}", warning=True))
        else:
            self.levels = encoding.levels_of(self._znode)

    def _needs_rewrite(self) -> bool:
        """Released Kafka enables status 0, without levels, and rewrites another schema version."""
        znode = self._znode
        return znode is not None and not (znode.enabled and znode.form is self._dialect.form)

    def _default_levels(self) -> dict[str, int]:
        """The highest level of each feature that this controller supports.

        ``kraft.version`` is omitted, because its default is level 0
        (``BrokerFeatures.defaultFinalizedFeatures``). The early draft has no defaults.
        """
        if not self._dialect.defaults:
            return {}
        return {name: high for name, (_, high) in self._supported.items() if name != KRAFT_VERSION}
