"""A watcher of a cluster's znodes: a protocol without input, output or clock.

The shell passes on connections, responses and triggered watches, sends the requests that
`ZnodeWatcher.next_request` returns, and publishes the events that come out.

The protocol (the rules of ZooKeeper's watches; Kafka's own reader is ``KafkaZkClient``):

- A watch triggers once and carries no data: the znode is read again, and each read sets a new watch
  in the same request, so no change is lost; several changes in between are seen as one.
- Watches end with the connection, so every new connection begins with a sweep over everything.
- A server may lag behind the previous one. A connection therefore begins with a sync, and a server
  that still knows less than was read before is retried: published state never goes back.
- Within a session a sweep publishes only what changed. After a lost session it publishes a
  snapshot, since ephemeral znodes may have been deleted and created again unseen.

Why five states suffice: after each connection the same steps follow in the same order (sync, whose
znodes, sweep, watches), each with its own requests, and a failure leads back to an earlier step.
What is read and what is known of it is data. `TRANSITIONS` is the whole machine.
"""

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
from featurewatch.streams.zookeeper.watcher.states import (
    TRANSITIONS,
    WatcherState,
    WatcherTrigger,
)
from featurewatch.streams.zookeeper.watcher.znode_cache import StaleReadError

_IDENTITY: Final = WatchTarget(CLUSTER_ID, TargetKind.DATA)
_ROOT: Final = WatchTarget("/", TargetKind.DATA)


class ZnodeWatcher:
    """Follows the wanted znodes of one cluster.

    ``cluster`` is the expected cluster id (None: any). ``where`` names the servers and the chroot
    in messages. ``now_ms`` is of any monotonic clock; ``seen_ms`` is for events.
    """

    def __init__(
        self,
        where: str,
        cluster: ClusterId | None = None,
        wanted: WatchScope | None = None,
        timing: WatcherTiming | None = None,
    ) -> None:
        self.state = WatcherState.OFFLINE
        self._expected = cluster
        self._roots = (wanted or WatchScope()).roots()
        self._timing = timing or WatcherTiming()
        self._changes = ChangeRecorder(cluster, self._timing.chunk)
        self._reads = ReadQueue()
        self._failures = ZookeeperFailures(where)
        self._handler = ResponseHandler(self._reads, self._changes, self._failures, self._timing)
        self._pending: dict[int, ReadRequest] = {}
        self._control: list[ReadOperation] = []
        self._token = 0
        self._generation = 0
        self._session = 0
        self._sync_again_ms: int | None = None

    @property
    def cluster(self) -> ClusterId | None:
        """The cluster's id, once it is known."""
        return self._changes.cluster

    @property
    def zxid(self) -> int:
        """The newest transaction that any server knew; 0: none."""
        return self._changes.zxid

    @property
    def znodes_read(self) -> int:
        """How many contents were decoded."""
        return self._changes.znodes_decoded

    @property
    def generation(self) -> int:
        """Counts connections; a request carries it into its watch."""
        return self._generation

    @property
    def caught_up(self) -> bool:
        """Whether everything was read and no read is queued or pending."""
        return self.state is WatcherState.FOLLOWING and self._reads.idle

    @property
    def under_way(self) -> int:
        """How many requests are pending."""
        return len(self._pending)

    @property
    def stall_reason(self) -> StallReason | None:
        """Why not everything can be read."""
        return self._failures.worst

    # -- the connection ----------------------------------------------------------------------

    def on_connected(self, session: int) -> None:
        """A connection is open, of this session."""
        if self._session and session != self._session:
            self._changes.need_snapshot(f"session 0x{self._session & (2**64 - 1):x} was lost")
        self._session = session
        self._generation += 1
        self._forget_requests()
        self._move(WatcherTrigger.CONNECTED)
        self._control.append(ReadOperation.SYNC)

    def on_disconnected(self, reason: str, now_ms: int) -> None:
        """There is no connection, for this ``reason``; may be called repeatedly."""
        self._forget_requests()
        self._move(WatcherTrigger.DISCONNECTED)
        self._failures.disconnected(reason, now_ms)

    def _move(self, trigger: WatcherTrigger) -> None:
        self.state = TRANSITIONS[self.state, trigger]

    def _forget_requests(self) -> None:
        """Pending requests get no response, or one that does not count."""
        self._pending.clear()
        self._control.clear()
        self._sync_again_ms = None
        self._reads.start_sweep(())

    # -- requests ----------------------------------------------------------------------------

    def next_request(self) -> ReadRequest | None:
        """The request to send now, if any. Any number may be pending at a time."""
        self._token += 1
        if self._control:
            request = ReadRequest(self._token, self._control.pop(), _ROOT, self._generation)
        else:
            chosen = self._reads.next(self._token)
            if chosen is None:
                return None
            request = ReadRequest(self._token, chosen[1], chosen[0], self._generation)
        self._pending[self._token] = request
        return request

    def tick(self, now_ms: int) -> None:
        """Call it periodically: retries may be due."""
        if self.state is WatcherState.OFFLINE:
            return
        for target in self._failures.due(now_ms):
            self._requeue(target)
        if self._sync_again_ms is not None and now_ms >= self._sync_again_ms:
            self._sync_again_ms = None
            self._control.append(ReadOperation.SYNC)

    def resync(self, reason: str) -> None:
        """Publish everything as a snapshot, for this ``reason``; call it while following.

        The next response completes it: a read of the cluster's id is the smallest one.
        """
        self._changes.need_snapshot(reason)
        self._requeue(_IDENTITY)

    def on_watch(self, generation: int, target: WatchTarget) -> None:
        """A watch triggered that a request of this generation set."""
        if generation == self._generation:
            self._requeue(target)

    def _requeue(self, target: WatchTarget) -> None:
        # What triggers before the sweep is read by it; nothing of another cluster is read.
        sweeping = self.state in (WatcherState.READING, WatcherState.FOLLOWING)
        if sweeping or (self.state is WatcherState.IDENTIFYING and target == _IDENTITY):
            self._reads.requeue(target)

    # -- responses ---------------------------------------------------------------------------

    def on_response(
        self, token: int, outcome: ReadResult, zxid: int, now_ms: int, seen_ms: int
    ) -> list[WatcherEvent]:
        """Apply a response; ``zxid`` is the newest transaction that the server knew then.

        Returns the events to publish, in order.
        """
        request = self._pending.pop(token, None)
        if request is None:
            return []
        if request.operation is ReadOperation.SYNC:
            self._on_synced(outcome, zxid, now_ms)
            return []
        if request.operation is ReadOperation.CHROOT:
            if self.state is WatcherState.IDENTIFYING:
                self._failures.chroot(isinstance(outcome, ReadExists), now_ms)
            return []
        if not self._reads.complete(request.target, token):
            return []
        self._changes.observe_zxid(zxid)
        if request.target == _IDENTITY and not self._check_identity(request, outcome, now_ms):
            return []
        try:
            events = self._handler.handle(request, outcome, now_ms, seen_ms)
        except StaleReadError:
            self._on_stale_server(now_ms)
            return []
        if self.state is WatcherState.FOLLOWING and self._changes.snapshot_due is not None:
            self._move(WatcherTrigger.SNAPSHOT_DUE)
        if self.state is WatcherState.READING and self._reads.sweep_complete:
            self._move(WatcherTrigger.SWEPT)
            self._failures.level()
            events += self._changes.snapshot(self._session, seen_ms)
        return events

    def _on_synced(self, outcome: ReadResult, zxid: int, now_ms: int) -> None:
        if isinstance(outcome, ReadFailed):
            self._sync_again_ms = now_ms + self._timing.retry_ms
            return
        self._failures.served()
        if zxid < self.zxid:
            self._on_stale_server(now_ms)
        else:
            self._changes.observe_zxid(zxid)
            self._move(WatcherTrigger.SYNCED)
            self._reads.start_sweep([_IDENTITY])

    def _on_stale_server(self, now_ms: int) -> None:
        """A server knows less than was read: wait for it, unless no server knows more."""
        since_ms = self._failures.lagging(self.zxid, now_ms)
        self._forget_requests()
        self._move(WatcherTrigger.STALE_SERVER)
        self._sync_again_ms = now_ms + self._timing.lag_pause_ms
        if now_ms - since_ms >= self._timing.rebuilt_after_ms:
            self._changes.restart(
                f"ZooKeeper no longer has transaction 0x{self.zxid:x}: its data was restored or "
                "recreated"
            )

    # -- the cluster's id -------------------------------------------------------------------

    def _check_identity(self, request: ReadRequest, outcome: ReadResult, now_ms: int) -> bool:
        """Whether a response about ``/cluster/id`` is of our cluster; if so, begins the sweep."""
        if isinstance(outcome, ReadData):
            content = decode_znode(CLUSTER_ID, outcome.data).content
            if isinstance(content, ClusterIdZnode):
                return self._identified(ClusterId(content.cluster_id), now_ms)
        if self.state is not WatcherState.IDENTIFYING:
            return True
        match outcome:
            case ReadData():
                self._failures.unidentified(f"{CLUSTER_ID} is unreadable", now_ms)
            case ZnodeAbsent() if request.operation is ReadOperation.EXISTS:
                self._control.append(ReadOperation.CHROOT)
            case ReadForbidden() if self._expected is not None:
                self._begin_reading()
            case ReadForbidden():
                problem = "may not be read: give READ on it, or the cluster's id in the settings"
                self._failures.unidentified(f"{CLUSTER_ID} {problem}", now_ms)
        return True

    def _identified(self, cluster: ClusterId, now_ms: int) -> bool:
        if self._changes.cluster not in (None, cluster):
            self._failures.other_cluster(cluster, self._changes.cluster, now_ms)
            self._forget_requests()
            self._move(WatcherTrigger.OTHER_CLUSTER)
            return False
        self._changes.cluster = cluster
        self._begin_reading()
        return True

    def _begin_reading(self) -> None:
        self._failures.identified()
        if self.state is WatcherState.IDENTIFYING:
            self._move(WatcherTrigger.IDENTIFIED)
            self._reads.start_sweep(self._roots)
