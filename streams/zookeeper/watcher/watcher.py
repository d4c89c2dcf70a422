"""An observer of a cluster's znodes, as a protocol without input, output or clock.

The shell tells of connections, answers and fired watches, sends what `ZnodeWatcher.next_request`
gives, and passes on the events that come out. The rules it keeps:

- A watch fires once and tells nothing: the znode is read again, and each read leaves a new watch.
- Watches end with the connection, so every new connection begins with a sweep over everything.
- It also begins with a sync; a server that then still knows less than we saw is asked again.
- Within a session a sweep gives only what changed; after a lost session it gives a snapshot.
"""

from enum import StrEnum
from typing import Final

from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import ClusterId
from featurewatch.streams.znodes import ClusterIdZnode
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from featurewatch.streams.zookeeper.paths import CLUSTER_ID, TargetKind, WatchScope, WatchTarget
from featurewatch.streams.zookeeper.watcher.changes import ChangeRecorder, WatcherEvent
from featurewatch.streams.zookeeper.watcher.failures import ZookeeperFailures
from featurewatch.streams.zookeeper.watcher.read_queue import ReadQueue
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadData,
    ReadExists,
    ReadFailed,
    ReadForbidden,
    ReadOperation,
    ReadRequest,
    ReadResult,
    WatcherTiming,
    ZnodeAbsent,
)
from featurewatch.streams.zookeeper.watcher.responses import ResponseHandler
from featurewatch.streams.zookeeper.watcher.znode_cache import StaleReadError

_IDENTITY: Final = WatchTarget(CLUSTER_ID, TargetKind.DATA)
_ROOT: Final = WatchTarget("/", TargetKind.DATA)


class ZnodeWatcher:
    """Follows what is wanted of one cluster.

    ``cluster`` is what the cluster must be (None: whatever it says it is). ``where`` names the
    servers and the chroot in messages. ``now_ms`` is of any clock that does not go back;
    ``seen_ms`` stands in events.
    """

    def __init__(
        self,
        where: str,
        cluster: ClusterId | None = None,
        wanted: WatchScope | None = None,
        pace: WatcherTiming | None = None,
    ) -> None:
        self.phase = WatcherState.OFFLINE
        self._expected = cluster
        self._roots = (wanted or WatchScope()).roots()
        self._pace = pace or WatcherTiming()
        self._record = ChangeRecorder(cluster, self._pace.chunk)
        self._reads = ReadQueue()
        self._troubles = ZookeeperFailures(where)
        self._follower = ResponseHandler(self._reads, self._record, self._troubles, self._pace)
        self._asked: dict[int, ReadRequest] = {}
        self._special: list[ReadOperation] = []
        self._token = 0
        self._generation = 0
        self._session = 0
        self._sync_again_ms: int | None = None

    @property
    def cluster(self) -> ClusterId | None:
        """The cluster's id, once it is known."""
        return self._record.cluster

    @property
    def zxid(self) -> int:
        """The newest transaction that was heard of; 0: none."""
        return self._record.zxid

    @property
    def znodes_read(self) -> int:
        """How many contents were decoded."""
        return self._record.taken

    @property
    def generation(self) -> int:
        """Counts connections; an ask carries it into its watch."""
        return self._generation

    @property
    def caught_up(self) -> bool:
        """Whether everything was read and nothing is to be read again."""
        return self.phase is WatcherState.FOLLOWING and self._reads.idle

    @property
    def under_way(self) -> int:
        """How many asks are not answered yet."""
        return len(self._asked)

    @property
    def stall_reason(self) -> StallReason | None:
        """Why not everything can be followed."""
        return self._troubles.worst

    # -- the connection ----------------------------------------------------------------------

    def on_connected(self, session: int) -> None:
        """A connection stands, of this session."""
        if self._session and session != self._session:
            self._record.need_snapshot(f"session 0x{self._session & (2**64 - 1):x} was lost")
        self._session = session
        self._generation += 1
        self._forget()
        self.phase = WatcherState.SYNCING
        self._special.append(ReadOperation.SYNC)

    def on_disconnected(self, line: str, now_ms: int) -> None:
        """There is no connection, for the reason that ``line`` says; may be told again."""
        self._forget()
        self.phase = WatcherState.OFFLINE
        self._troubles.disconnected(line, now_ms)

    def _forget(self) -> None:
        """What was asked will not be answered, or does not count."""
        self._asked.clear()
        self._special.clear()
        self._sync_again_ms = None
        self._reads.start_sweep(())

    # -- what to do --------------------------------------------------------------------------

    def next_request(self) -> ReadRequest | None:
        """What to send now, if anything. Any number may be under way at a time."""
        self._token += 1
        if self._special:
            ask = ReadRequest(self._token, self._special.pop(), _ROOT, self._generation)
        else:
            chosen = self._reads.next(self._token)
            if chosen is None:
                return None
            ask = ReadRequest(self._token, chosen[1], chosen[0], self._generation)
        self._asked[self._token] = ask
        return ask

    def tick(self, now_ms: int) -> None:
        """Call it now and then: what was put off may be due."""
        if self.phase is WatcherState.OFFLINE:
            return
        for target in self._troubles.due(now_ms):
            self._again(target)
        if self._sync_again_ms is not None and now_ms >= self._sync_again_ms:
            self._sync_again_ms = None
            self._special.append(ReadOperation.SYNC)

    def on_watch(self, generation: int, target: WatchTarget) -> None:
        """A watch fired that was left by an ask of this generation."""
        if generation == self._generation:
            self._again(target)

    def _again(self, target: WatchTarget) -> None:
        # What fires before the sweep is read by the sweep; nothing of another cluster is read.
        sweeping = self.phase in (WatcherState.READING, WatcherState.FOLLOWING)
        if sweeping or (self.phase is WatcherState.IDENTIFYING and target == _IDENTITY):
            self._reads.requeue(target)

    # -- answers -----------------------------------------------------------------------------

    def on_response(
        self, token: int, outcome: ReadResult, zxid: int, now_ms: int, seen_ms: int
    ) -> list[WatcherEvent]:
        """Takes an answer; ``zxid`` is the newest transaction that the server knew of then.

        Gives what is to be published, in order.
        """
        ask = self._asked.pop(token, None)
        if ask is None:
            return []
        if ask.operation is ReadOperation.SYNC:
            self._synced(outcome, zxid, now_ms)
            return []
        if ask.operation is ReadOperation.CHROOT:
            if self.phase is WatcherState.IDENTIFYING:
                self._troubles.chroot(isinstance(outcome, ReadExists), now_ms)
            return []
        if not self._reads.complete(ask.target, token):
            return []
        self._record.observe_zxid(zxid)
        if ask.target == _IDENTITY and not self._is_ours(ask, outcome, now_ms):
            return []
        try:
            said = self._follower.handle(ask, outcome, now_ms, seen_ms)
        except StaleReadError:
            self._behind(now_ms)
            return []
        if self.phase is WatcherState.FOLLOWING and self._record.snapshot_due is not None:
            self.phase = WatcherState.READING
        if self.phase is WatcherState.READING and self._reads.sweep_complete:
            self.phase = WatcherState.FOLLOWING
            self._troubles.level()
            said += self._record.snapshot(self._session, seen_ms)
        return said

    def _synced(self, outcome: ReadResult, zxid: int, now_ms: int) -> None:
        if isinstance(outcome, ReadFailed):
            self._sync_again_ms = now_ms + self._pace.retry_ms
            return
        self._troubles.served()
        if zxid < self.zxid:
            self._behind(now_ms)
        else:
            self._record.observe_zxid(zxid)
            self.phase = WatcherState.IDENTIFYING
            self._reads.start_sweep([_IDENTITY])

    def _behind(self, now_ms: int) -> None:
        """A server knows less than we saw: wait for it, unless that is all there is."""
        since_ms = self._troubles.lagging(self.zxid, now_ms)
        self._forget()
        self.phase = WatcherState.SYNCING
        self._sync_again_ms = now_ms + self._pace.lag_pause_ms
        if now_ms - since_ms >= self._pace.rebuilt_after_ms:
            self._record.begin_anew(
                f"ZooKeeper knows nothing of transaction 0x{self.zxid:x}, which was there: its "
                "data was restored or made anew"
            )

    # -- whose znodes they are ---------------------------------------------------------------

    def _is_ours(self, ask: ReadRequest, outcome: ReadResult, now_ms: int) -> bool:
        """Whether what is said of ``/cluster/id`` may be taken; begins the sweep if it is ours."""
        if isinstance(outcome, ReadData):
            content = decode_znode(CLUSTER_ID, outcome.data).content
            if isinstance(content, ClusterIdZnode):
                return self._identified(ClusterId(content.cluster_id), now_ms)
        if self.phase is not WatcherState.IDENTIFYING:
            return True
        match outcome:
            case ReadData():
                self._troubles.unidentified(f"{CLUSTER_ID} is unreadable", now_ms)
            case ZnodeAbsent() if ask.operation is ReadOperation.EXISTS:
                self._special.append(ReadOperation.CHROOT)
            case ReadForbidden() if self._expected is not None:
                self._begin_reading()
            case ReadForbidden():
                what = "may not be read: give READ on it, or the cluster's id in the settings"
                self._troubles.unidentified(f"{CLUSTER_ID} {what}", now_ms)
        return True

    def _identified(self, found: ClusterId, now_ms: int) -> bool:
        if self._record.cluster not in (None, found):
            self._troubles.other_cluster(found, self._record.cluster, now_ms)
            self._forget()
            self.phase = WatcherState.IDENTIFYING
            return False
        self._record.cluster = found
        self._begin_reading()
        return True

    def _begin_reading(self) -> None:
        self._troubles.identified()
        if self.phase is WatcherState.IDENTIFYING:
            self.phase = WatcherState.READING
            self._reads.start_sweep(self._roots)


class WatcherState(StrEnum):
    """In this order after each connection."""

    OFFLINE = "offline"
    """There is no connection."""
    SYNCING = "syncing"
    """The server catches up with its leader."""
    IDENTIFYING = "identifying"
    """Whose znodes these are is not known yet, or they are another cluster's."""
    READING = "reading"
    """Everything is read anew."""
    FOLLOWING = "following"
    """Watches tell what is to be read."""
