"""An observer of a cluster's znodes, as a protocol without input, output or clock.

The shell tells of connections, answers and fired watches, sends what `Observer.next` gives, and
passes on the events that come out. The rules it keeps:

- A watch fires once and tells nothing: the znode is read again, and each read leaves a new watch.
- Watches end with the connection, so every new connection begins with a sweep over everything.
- It also begins with a sync; a server that then still knows less than we saw is asked again.
- Within a session a sweep gives only what changed; after a lost session it gives a snapshot.
"""

from typing import Final

from streams.source_states import Trouble
from streams.types import ClusterId
from streams.znodes import ClusterIdZnode
from streams.zookeeper.asks import (
    Absent,
    Ask,
    Data,
    Failed,
    Forbidden,
    Operation,
    Outcome,
    Pace,
    There,
)
from streams.zookeeper.decoders import decode
from streams.zookeeper.follower import Follower
from streams.zookeeper.image import BehindError
from streams.zookeeper.paths import CLUSTER_ID, Kind, Target, Wanted
from streams.zookeeper.phases import Phase
from streams.zookeeper.reads import Reads
from streams.zookeeper.record import Output, Record
from streams.zookeeper.troubles import Troubles

_IDENTITY: Final = Target(CLUSTER_ID, Kind.DATA)
_ROOT: Final = Target("/", Kind.DATA)


class Observer:
    """Follows what is wanted of one cluster.

    ``cluster`` is what the cluster must be (None: whatever it says it is). ``where`` names the
    servers and the chroot in messages. ``now_ms`` is of any clock that does not go back;
    ``seen_ms`` stands in events.
    """

    def __init__(
        self,
        where: str,
        cluster: ClusterId | None = None,
        wanted: Wanted | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.phase = Phase.OFFLINE
        self._expected = cluster
        self._roots = (wanted or Wanted()).roots()
        self._pace = pace or Pace()
        self._record = Record(cluster, self._pace.chunk)
        self._reads = Reads()
        self._troubles = Troubles(where)
        self._follower = Follower(self._reads, self._record, self._troubles, self._pace)
        self._asked: dict[int, Ask] = {}
        self._special: list[Operation] = []
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
        return self.phase is Phase.FOLLOWING and self._reads.idle

    @property
    def under_way(self) -> int:
        """How many asks are not answered yet."""
        return len(self._asked)

    @property
    def trouble(self) -> Trouble | None:
        """Why not everything can be followed."""
        return self._troubles.worst

    # -- the connection ----------------------------------------------------------------------

    def connected(self, session: int) -> None:
        """A connection stands, of this session."""
        if self._session and session != self._session:
            self._record.need_snapshot(f"session 0x{self._session & (2**64 - 1):x} was lost")
        self._session = session
        self._generation += 1
        self._forget()
        self.phase = Phase.SYNCING
        self._special.append(Operation.SYNC)

    def disconnected(self, line: str, now_ms: int) -> None:
        """There is no connection, for the reason that ``line`` says; may be told again."""
        self._forget()
        self.phase = Phase.OFFLINE
        self._troubles.disconnected(line, now_ms)

    def _forget(self) -> None:
        """What was asked will not be answered, or does not count."""
        self._asked.clear()
        self._special.clear()
        self._sync_again_ms = None
        self._reads.begin(())

    # -- what to do --------------------------------------------------------------------------

    def next(self) -> Ask | None:
        """What to send now, if anything. Any number may be under way at a time."""
        self._token += 1
        if self._special:
            ask = Ask(self._token, self._special.pop(), _ROOT, self._generation)
        else:
            chosen = self._reads.next(self._token)
            if chosen is None:
                return None
            ask = Ask(self._token, chosen[1], chosen[0], self._generation)
        self._asked[self._token] = ask
        return ask

    def tick(self, now_ms: int) -> None:
        """Call it now and then: what was put off may be due."""
        if self.phase is Phase.OFFLINE:
            return
        for target in self._troubles.due(now_ms):
            self._again(target)
        if self._sync_again_ms is not None and now_ms >= self._sync_again_ms:
            self._sync_again_ms = None
            self._special.append(Operation.SYNC)

    def fired(self, generation: int, target: Target) -> None:
        """A watch fired that was left by an ask of this generation."""
        if generation == self._generation:
            self._again(target)

    def _again(self, target: Target) -> None:
        # What fires before the sweep is read by the sweep; nothing of another cluster is read.
        sweeping = self.phase in (Phase.READING, Phase.FOLLOWING)
        if sweeping or (self.phase is Phase.IDENTIFYING and target == _IDENTITY):
            self._reads.again(target)

    # -- answers -----------------------------------------------------------------------------

    def answer(
        self, token: int, outcome: Outcome, zxid: int, now_ms: int, seen_ms: int
    ) -> list[Output]:
        """Takes an answer; ``zxid`` is the newest transaction that the server knew of then.

        Gives what is to be published, in order.
        """
        ask = self._asked.pop(token, None)
        if ask is None:
            return []
        if ask.operation is Operation.SYNC:
            self._synced(outcome, zxid, now_ms)
            return []
        if ask.operation is Operation.CHROOT:
            if self.phase is Phase.IDENTIFYING:
                self._troubles.chroot(isinstance(outcome, There), now_ms)
            return []
        if not self._reads.answered(ask.target, token):
            return []
        self._record.saw(zxid)
        if ask.target == _IDENTITY and not self._is_ours(ask, outcome, now_ms):
            return []
        try:
            said = self._follower.take(ask, outcome, now_ms, seen_ms)
        except BehindError:
            self._behind(now_ms)
            return []
        if self.phase is Phase.FOLLOWING and self._record.due is not None:
            self.phase = Phase.READING
        if self.phase is Phase.READING and self._reads.swept:
            self.phase = Phase.FOLLOWING
            self._troubles.level()
            said += self._record.snapshot(self._session, seen_ms)
        return said

    def _synced(self, outcome: Outcome, zxid: int, now_ms: int) -> None:
        if isinstance(outcome, Failed):
            self._sync_again_ms = now_ms + self._pace.retry_ms
            return
        self._troubles.served()
        if zxid < self.zxid:
            self._behind(now_ms)
        else:
            self._record.saw(zxid)
            self.phase = Phase.IDENTIFYING
            self._reads.begin([_IDENTITY])

    def _behind(self, now_ms: int) -> None:
        """A server knows less than we saw: wait for it, unless that is all there is."""
        since_ms = self._troubles.lagging(self.zxid, now_ms)
        self._forget()
        self.phase = Phase.SYNCING
        self._sync_again_ms = now_ms + self._pace.lag_pause_ms
        if now_ms - since_ms >= self._pace.rebuilt_after_ms:
            self._record.begin_anew(
                f"ZooKeeper knows nothing of transaction 0x{self.zxid:x}, which was there: its "
                "data was restored or made anew"
            )

    # -- whose znodes they are ---------------------------------------------------------------

    def _is_ours(self, ask: Ask, outcome: Outcome, now_ms: int) -> bool:
        """Whether what is said of ``/cluster/id`` may be taken; begins the sweep if it is ours."""
        if isinstance(outcome, Data):
            content = decode(CLUSTER_ID, outcome.data).content
            if isinstance(content, ClusterIdZnode):
                return self._identified(ClusterId(content.cluster_id), now_ms)
        if self.phase is not Phase.IDENTIFYING:
            return True
        match outcome:
            case Data():
                self._troubles.unidentified(f"{CLUSTER_ID} is unreadable", now_ms)
            case Absent() if ask.operation is Operation.EXISTS:
                self._special.append(Operation.CHROOT)
            case Forbidden() if self._expected is not None:
                self._begin_reading()
            case Forbidden():
                what = "may not be read: give READ on it, or the cluster's id in the settings"
                self._troubles.unidentified(f"{CLUSTER_ID} {what}", now_ms)
        return True

    def _identified(self, found: ClusterId, now_ms: int) -> bool:
        if self._record.cluster not in (None, found):
            self._troubles.other_cluster(found, self._record.cluster, now_ms)
            self._forget()
            self.phase = Phase.IDENTIFYING
            return False
        self._record.cluster = found
        self._begin_reading()
        return True

    def _begin_reading(self) -> None:
        self._troubles.identified()
        if self.phase is Phase.IDENTIFYING:
            self.phase = Phase.READING
            self._reads.begin(self._roots)
