"""Reads and watches the list of brokers and each broker's znode, for a controller."""

from collections.abc import Callable, Mapping

from featurewatch.reference.zookeeper.machines import encoding
from featurewatch.reference.zookeeper.machines.controller.live_brokers import (
    LiveBroker,
    LiveBrokers,
)
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.protocol import Effect, WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.zookeeper import (
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
        self._is_list_stale = False
        self._stale_ids: set[int] = set()
        self.live = LiveBrokers(dialect)
        self.joined: list[int] = []
        """The brokers that joined the live set since this list was last emptied."""

    def reset(self) -> None:
        """Removes all brokers."""
        self.live.clear()
        self._stale_ids.clear()
        self.joined.clear()
        self._is_list_stale = False

    def on_watch(self, path: str) -> bool:
        """Marks what a fired watch has changed; returns whether the path belongs to brokers."""
        if path == encoding.BROKER_IDS:
            self._is_list_stale = True
            return True
        parent, _, name = path.rpartition("/")
        if parent != encoding.BROKER_IDS or not name.isdecimal():
            return False
        self._stale_ids.add(int(name))
        return True

    def mark_all_stale(self) -> None:
        """Marks everything as changed, because all watches are lost."""
        self._is_list_stale = True
        self._stale_ids |= self.live.brokers.keys()

    def read_all(self, levels: Mapping[str, int]) -> Task[None]:
        """Reads the list and all brokers from scratch."""
        self.reset()
        self._is_list_stale = True
        yield from self.read_changes(levels)

    def read_changes(self, levels: Mapping[str, int]) -> Task[None]:
        """Reads what is marked as changed, and logs the brokers that are excluded."""
        if self._is_list_stale:
            self._is_list_stale = False
            names = yield from self._read_names()
            if names is not None:
                self._stale_ids |= names - self.live.brokers.keys()
                for broker_id in self.live.brokers.keys() - names:
                    self.live.remove(broker_id)
                    self._stale_ids.discard(broker_id)
        stale_ids = sorted(self._stale_ids)
        self._stale_ids.clear()
        reads = tuple(
            GetData(encoding.broker_path(broker_id), watch=True) for broker_id in stale_ids
        )
        results = yield reads
        excluded = []
        for broker_id, outcome in zip(stale_ids, results, strict=True):
            if not isinstance(outcome, GetDataResult):
                self.live.remove(broker_id)
            elif self.live.put(broker_id, self._live_broker(broker_id, outcome), levels):
                self.joined.append(broker_id)
            else:
                excluded.append(broker_id)
        self._log_excluded(excluded)

    def reevaluate(self, levels: Mapping[str, int]) -> None:
        """Checks every broker against changed levels, and logs those that are excluded."""
        self._log_excluded(self.live.reevaluate(levels))

    def _read_names(self) -> Task[set[int] | None]:
        while True:
            result = yield from perform(GetChildren(encoding.BROKER_IDS, watch=True))
            match result:
                case GetChildrenResult(names):
                    return {int(name) for name in names if name.isdecimal()}
                case NoNode():
                    yield from perform(Create(encoding.BROKER_IDS, b""))
                case _:
                    self._emit(
                        WriteLog(f"cannot list {encoding.BROKER_IDS}: {result}", warning=True)
                    )
                    return None

    def _live_broker(self, broker_id: int, result: GetDataResult) -> LiveBroker:
        """Decodes a broker's znode; an unreadable one has unknown ranges."""
        try:
            capabilities = encoding.decode_ranges(broker_id, result.data)
        except encoding.ZnodeDecodeError as error:
            self._emit(
                WriteLog(f"cannot read the znode of broker {broker_id}: {error}", warning=True)
            )
            capabilities = intern_capabilities({}, complete=False)
        endpoint = encoding.decode_endpoint(result.data)
        return LiveBroker(capabilities, result.stat.czxid, endpoint)

    def _log_excluded(self, excluded: list[int]) -> None:
        if excluded:
            ids = ",".join(map(str, excluded))
            self._emit(
                WriteLog(
                    "Ignoring registration of new brokers due to incompatibilities with"
                    f" finalized features: {ids}",
                    warning=True,
                )
            )
