"""The finalized features as a controller keeps them: set up, read, and written under its fence."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from controller.reference import encoding
from controller.reference.dialect import Dialect
from controller.reference.protocol import (
    BadVersion,
    Check,
    Create,
    Data,
    Done,
    Effect,
    Exists,
    Get,
    Multi,
    NodeExists,
    NoNode,
    Say,
    SetData,
    Stat,
    Unknown,
    WriteOperation,
)
from controller.reference.serial import Task, ask
from streams.types import KRAFT_VERSION, Range
from streams.znodes import FeaturesZnode

FENCE: Final = 0
"""The place of the check of the controller epoch in each transaction."""


class Fate(Enum):
    """What became of a write."""

    WRITTEN = "it is written"
    DEPOSED = "another controller was elected; nothing is written"
    DEPOSED_UNKNOWN = "another controller was elected, and nobody knows whether it is written"
    OVERTAKEN = "somebody else changed the znode; nothing is written"
    UNKNOWN = "nobody knows whether it is written"
    REFUSED = "ZooKeeper refused it; nothing is written"


class Finalized:
    """``levels`` and ``epoch`` as last read or written; ``stale``: a watch has fired since."""

    def __init__(
        self, dialect: Dialect, supported: Mapping[str, Range], emit: Callable[[Effect], None]
    ) -> None:
        self._dialect = dialect
        self._supported = supported
        self._emit = emit
        self.forget()

    def forget(self) -> None:
        """Know nothing any more."""
        self.levels: Mapping[str, int] = {}
        self._stat: Stat | None = None
        self._znode: FeaturesZnode | None = None
        self.stale = False

    @property
    def readable(self) -> bool:
        """Whether it is known what is finalized."""
        return self._znode is not None

    @property
    def epoch(self) -> int:
        """The znode's data version; -1 where it is not known to be there."""
        return -1 if self._stat is None else self._stat.version

    def set_up(self, fence: int) -> Task[Fate]:
        """Make the znode if it is absent, turn it on if it is off; else leave it as it is.

        Start-up waits for it (KIP-584, bootstrap; ``KafkaController.enableFeatureVersioning``). An
        unreadable znode is left alone, and said.
        """
        while True:
            yield from self.read()
            if self._stat is not None and not self._must_be_rewritten():
                return Fate.WRITTEN
            made: WriteOperation
            if self._stat is None:
                first = encoding.encode_features(self._dialect, self._default())
                made = Create(self._dialect.path, first)
            else:
                again = encoding.encode_features(self._dialect, self.levels)
                made = SetData(self._dialect.path, again, self._stat.version)
            outcome = yield from ask(Multi((Check(encoding.CONTROLLER_EPOCH, fence), made)))
            match outcome:
                case BadVersion(index) | NoNode(index) if index == FENCE:
                    return Fate.DEPOSED
                case Done() | NodeExists() | BadVersion() | NoNode() | Unknown():
                    continue
                case _:
                    self._emit(Say(f"cannot set up {self._dialect.path}: {outcome}", warning=True))
                    return Fate.REFUSED

    def read(self) -> Task[None]:
        """Read the znode and leave a watch, also where there is none."""
        path = self._dialect.path
        while True:
            self.stale = False
            found = yield from ask(Get(path, watch=True))
            if isinstance(found, Data):
                self._take(found)
                return
            self.forget()
            if not isinstance(found, NoNode):
                self._emit(Say(f"cannot read {path}: {found}", warning=True))
                return
            again = yield from ask(Exists(path, watch=True))
            if isinstance(again, NoNode):
                return

    def write(self, levels: Mapping[str, int], fence: int) -> Task[Fate]:
        """Write the levels if the znode is as last read and nobody was elected since.

        A write whose outcome is lost is asked for again. Its conditions let it happen once at most,
        and what the second says, tells of the first.
        """
        before, znode = self._stat, self._znode
        if before is None or znode is None:
            return Fate.REFUSED
        data = encoding.encode_features(
            self._dialect, levels, encoding.metadata_of(znode), before.version + 1
        )
        operation = Multi(
            (
                Check(encoding.CONTROLLER_EPOCH, fence),
                SetData(self._dialect.path, data, before.version),
            )
        )
        lost = False
        while True:
            outcome = yield from ask(operation)
            match outcome:
                case Unknown():
                    lost = True
                case Done():
                    return Fate.WRITTEN
                case BadVersion(index) | NoNode(index) if index == FENCE:
                    return (yield from self._deposed(before)) if lost else Fate.DEPOSED
                case BadVersion():
                    return (yield from self._compare(before, data)) if lost else Fate.OVERTAKEN
                case _:
                    return Fate.UNKNOWN if lost else Fate.REFUSED

    def _compare(self, before: Stat, data: bytes) -> Task[Fate]:
        """Still the controller, and the znode is not as it was: by our own lost write?"""
        found = yield from ask(Get(self._dialect.path))
        if not isinstance(found, Data):
            return Fate.UNKNOWN
        ours = (found.stat.czxid, found.stat.version) == (before.czxid, before.version + 1)
        return Fate.WRITTEN if ours and found.data == data else Fate.UNKNOWN

    def _deposed(self, before: Stat) -> Task[Fate]:
        """No longer the controller: what is still as it was, our write can no longer change."""
        found = yield from ask(Get(self._dialect.path))
        same = isinstance(found, Data) and found.stat == before
        return Fate.DEPOSED if same else Fate.DEPOSED_UNKNOWN

    def _take(self, found: Data) -> None:
        self.forget()
        self._stat = found.stat
        try:
            self._znode = encoding.decode_features(self._dialect, found.data)
        except encoding.UnreadableError as error:
            self._emit(Say(f"cannot read {self._dialect.path}: {error}", warning=True))
        else:
            self.levels = encoding.levels_of(self._znode)

    def _must_be_rewritten(self) -> bool:
        """Released Kafka turns status 0 on, with no levels, and brings the schema to its own."""
        znode = self._znode
        return znode is not None and not (znode.enabled and znode.form is self._dialect.form)

    def _default(self) -> dict[str, int]:
        """The greatest level of each feature that this controller supports itself.

        Of ``kraft.version`` it is 0, as in ``BrokerFeatures.defaultFinalizedFeatures``, so that it
        is left out. The early draft speaks of no default, and begins with none.
        """
        if not self._dialect.defaults:
            return {}
        return {name: high for name, (_, high) in self._supported.items() if name != KRAFT_VERSION}
