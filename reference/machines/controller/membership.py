"""The brokers as a controller learns of them: their names, and the znode of each, all watched."""

from collections.abc import Callable, Mapping

from featurewatch.reference.machines import encoding
from featurewatch.reference.machines.controller.live_brokers import LiveBroker, LiveBrokers
from featurewatch.reference.machines.dialect import Dialect
from featurewatch.reference.machines.protocol import Effect, WriteLog
from featurewatch.reference.machines.task_queue import Task, perform
from featurewatch.reference.machines.zookeeper import (
    Create,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    NoNode,
)
from featurewatch.tables.image.nodes import intern_capabilities


class BrokerMembership:
    """``live`` holds the newest content of every broker's znode (KIP-584, controller)."""

    def __init__(self, dialect: Dialect, emit: Callable[[Effect], None]) -> None:
        self._emit = emit
        self._names_stale = False
        self._stale: set[int] = set()
        self.live = LiveBrokers(dialect)
        self.joined: list[int] = []
        """Who was taken into the live set since this was emptied last."""

    def forget(self) -> None:
        """Know of no broker any more."""
        self.live.clear()
        self._stale.clear()
        self.joined.clear()
        self._names_stale = False

    def on_watch(self, path: str) -> bool:
        """A watch fired; → whether it was one of these."""
        if path == encoding.BROKER_IDS:
            self._names_stale = True
            return True
        parent, _, name = path.rpartition("/")
        if parent != encoding.BROKER_IDS or not name.isdecimal():
            return False
        self._stale.add(int(name))
        return True

    def all_stale(self) -> None:
        """Every watch is gone."""
        self._names_stale = True
        self._stale |= self.live.seen.keys()

    def read_all(self, levels: Mapping[str, int]) -> Task[None]:
        """Read everything anew."""
        self.forget()
        self._names_stale = True
        yield from self.read_changes(levels)

    def read_changes(self, levels: Mapping[str, int]) -> Task[None]:
        """Read what watches said has changed, and say who is kept out for it."""
        if self._names_stale:
            self._names_stale = False
            names = yield from self._names()
            if names is not None:
                self._stale |= names - self.live.seen.keys()
                for broker_id in self.live.seen.keys() - names:
                    self.live.remove(broker_id)
                    self._stale.discard(broker_id)
        wanted = sorted(self._stale)
        self._stale.clear()
        reads = tuple(GetData(encoding.broker_path(broker_id), watch=True) for broker_id in wanted)
        found = yield reads
        kept_out = []
        for broker_id, outcome in zip(wanted, found, strict=True):
            if not isinstance(outcome, GetDataResult):
                self.live.remove(broker_id)
            elif self.live.put(broker_id, self._seen(broker_id, outcome), levels):
                self.joined.append(broker_id)
            else:
                kept_out.append(broker_id)
        self._say(kept_out)

    def reevaluate(self, levels: Mapping[str, int]) -> None:
        """The levels are others: judge every broker anew."""
        self._say(self.live.reevaluate(levels))

    def _names(self) -> Task[set[int] | None]:
        while True:
            found = yield from perform(GetChildren(encoding.BROKER_IDS, watch=True))
            match found:
                case GetChildrenResult(names):
                    return {int(name) for name in names if name.isdecimal()}
                case NoNode():
                    yield from perform(Create(encoding.BROKER_IDS, b""))
                case _:
                    self._emit(
                        WriteLog(f"cannot list {encoding.BROKER_IDS}: {found}", warning=True)
                    )
                    return None

    def _seen(self, broker_id: int, found: GetDataResult) -> LiveBroker:
        """An unreadable znode supports nothing for sure."""
        try:
            known = encoding.decode_ranges(broker_id, found.data)
        except encoding.ZnodeDecodeError as error:
            self._emit(
                WriteLog(f"cannot read the znode of broker {broker_id}: {error}", warning=True)
            )
            known = intern_capabilities({}, complete=False)
        return LiveBroker(known, found.stat.czxid)

    def _say(self, kept_out: list[int]) -> None:
        if kept_out:
            ids = ",".join(map(str, kept_out))
            self._emit(
                WriteLog(
                    "Ignoring registration of new brokers due to incompatibilities with"
                    f" finalized features: {ids}",
                    warning=True,
                )
            )
