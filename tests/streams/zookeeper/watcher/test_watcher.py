"""Requests and events of the observer in single situations."""

import pytest

from featurewatch.streams.events import DeadLetter, ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import ClusterId
from featurewatch.streams.znodes import BrokerZnode, PartitionStateZnode, UnreadableZnode
from featurewatch.streams.zookeeper.paths import CLUSTER_ID, TargetKind, WatchScope, WatchTarget
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadFailed,
    ReadOperation,
    ReadRequest,
    WatcherTiming,
    ZnodeAbsent,
)
from featurewatch.streams.zookeeper.watcher.states import WatcherState
from featurewatch.streams.zookeeper.watcher.watcher import ZnodeWatcher
from tests.streams.zookeeper.watcher.simulated import (
    CLUSTER,
    Auditor,
    Connection,
    Ensemble,
    cluster_id,
    content,
    settle,
    truth,
)

PACE = WatcherTiming(forbidden_retry_ms=100, retry_ms=100, lag_pause_ms=10, rebuilt_after_ms=1000)


class WatchedEnsemble:
    """An ensemble and an observer of it."""

    def __init__(self, cluster: str | None = CLUSTER, wanted: WatchScope | None = None) -> None:
        self.ensemble = Ensemble()
        expected = ClusterId(cluster) if cluster else None
        self.observer = ZnodeWatcher("zk:2181/k", expected, wanted, PACE)
        self.auditor = Auditor(self.ensemble)
        self.now_ms = 0
        self.connect()

    def connect(self, session: int = 1) -> None:
        """A connection to a server that knows everything."""
        self.connection = Connection(self.ensemble, self.ensemble.zxid, self.observer)
        self.observer.on_connected(session)

    def settle(self) -> None:
        """Lets everything happen until the observer follows."""
        settle(self.connection, self.auditor, self.now_ms)

    def request(self) -> ReadRequest:
        """The next request of the watcher, which has one."""
        request = self.observer.next_request()
        assert request is not None
        return request

    def run(self, steps: int = 60) -> None:
        """Lets things happen for a while."""
        for _ in range(steps):
            self.now_ms += 20
            self.observer.tick(self.now_ms)
            self.connection.send()
            self.connection.serve()
            self.connection.apply()
            self.auditor.apply(self.connection.deliver(self.now_ms))

    @property
    def line(self) -> str:
        """The trouble's line."""
        assert self.observer.stall_reason is not None
        return self.observer.stall_reason.message

    def snapshots(self) -> list[ZnodeSnapshot]:
        """The chunks that were said."""
        return [event for event in self.auditor.events if isinstance(event, ZnodeSnapshot)]

    def changes(self) -> list[ZnodeChange]:
        """The changes that were said."""
        return [event for event in self.auditor.events if isinstance(event, ZnodeChange)]


def test_the_order_after_a_connection():
    """First a sync, then the cluster's id, then the rest; nothing is said before all is read."""
    scene = WatchedEnsemble()
    requested = []
    for _ in range(3):
        request = scene.request()
        requested.append((request.operation, request.target.path))
        if len(requested) < 3:
            assert scene.observer.next_request() is None
        scene.connection.requests.append(request)
        scene.connection.serve()
        assert scene.connection.deliver(0) == []
    assert requested[:2] == [(ReadOperation.SYNC, "/"), (ReadOperation.GET, CLUSTER_ID)]
    assert scene.observer.state is WatcherState.READING
    scene.settle()
    assert [type(event) for event in scene.auditor.events] == [ZnodeSnapshot]


def test_the_cluster_is_learned_where_none_is_configured():
    """Whoever's znodes they are, the events carry its id."""
    scene = WatchedEnsemble(cluster=None)
    assert scene.observer.cluster is None
    scene.settle()
    assert scene.observer.cluster == CLUSTER
    assert scene.snapshots()[0].cluster == CLUSTER


def test_no_cluster_yet_and_then_one():
    """An absent id is waited for, and the line tells a missing chroot from an empty one."""
    scene = WatchedEnsemble(cluster=None)
    scene.ensemble.delete("/cluster/id")
    scene.run()
    assert "no Kafka registered here yet" in scene.line
    assert scene.observer.stall_reason is not None
    assert scene.observer.stall_reason.permanent
    scene.ensemble.make("/cluster/id", cluster_id())
    scene.settle()
    assert scene.observer.stall_reason is None


def test_no_chroot():
    """Where not even the chroot is, it is the chroot that is to be checked."""
    scene = WatchedEnsemble(cluster=None)
    for path in ("/cluster/id", "/brokers/ids", "/brokers", "/cluster", "/"):
        scene.ensemble.delete(path)
    scene.run()
    assert "the chroot does not exist" in scene.line


def test_another_cluster_and_then_the_right_one():
    """Nothing of another cluster is read or said; when the id is right all is."""
    scene = WatchedEnsemble()
    scene.ensemble.set("/cluster/id", cluster_id("other"))
    scene.ensemble.make("/feature", content("/feature", 1))
    scene.run()
    assert "cluster other, not of" in scene.line
    assert scene.observer.state is WatcherState.IDENTIFYING
    assert scene.auditor.events == []
    scene.ensemble.set("/cluster/id", cluster_id())
    scene.settle()
    assert "/feature" in scene.auditor.known


def test_a_cluster_that_becomes_another_one():
    """Later changes do not belong to the cluster, and are not published."""
    scene = WatchedEnsemble()
    scene.settle()
    event_count = len(scene.auditor.events)
    scene.ensemble.set("/cluster/id", cluster_id("other"))
    scene.ensemble.make("/feature", content("/feature", 1))
    scene.connection.apply()
    scene.run()
    assert "other" in scene.line
    assert [event.path for event in scene.changes() if event.path == "/cluster/id"] == []
    scene.ensemble.set("/feature", content("/feature", 2))
    scene.run()
    later = scene.auditor.events[event_count + 1 :]
    changes = [event for event in later if isinstance(event, ZnodeChange)]
    assert changes == later
    assert "/feature" not in {change.path for change in changes}
    scene.ensemble.set("/cluster/id", cluster_id())
    scene.settle()
    assert scene.auditor.known == truth(scene.ensemble, {"/feature", "/cluster/id"})


def test_an_id_that_cannot_be_read():
    """A broken id does not say whose znodes these are: a dead letter, and no more."""
    scene = WatchedEnsemble(cluster=None)
    scene.ensemble.set("/cluster/id", b"{")
    scene.run()
    assert "is unreadable" in scene.line
    assert [letter.payload for letter in scene.auditor.dead_letters] == [b"{"]
    assert scene.auditor.events == []


def test_an_id_that_may_not_be_read():
    """With the id in the settings the rest is followed; without, it is what is missing."""
    scene = WatchedEnsemble(cluster=None)
    scene.ensemble.forbid("/cluster/id")
    scene.run()
    assert "or the cluster's id in the settings" in scene.line
    scene = WatchedEnsemble()
    scene.ensemble.forbid("/cluster/id")
    scene.ensemble.make("/feature", content("/feature", 1))
    scene.run()
    assert scene.observer.state is WatcherState.FOLLOWING
    assert "/feature" in scene.auditor.known
    assert "reading /cluster/id is forbidden" in scene.line


def test_what_may_not_be_read_is_tried_again():
    """It is called unreadable, once; with the right given a snapshot says what it holds."""
    scene = WatchedEnsemble()
    scene.ensemble.make("/feature", content("/feature", 1))
    scene.ensemble.forbid("/feature")
    scene.settle()
    scene.run(100)
    assert scene.line == "reading /feature is forbidden: give READ on it to the login in use"
    assert isinstance(scene.auditor.known["/feature"][1], UnreadableZnode)
    assert len(scene.auditor.dead_letters) == 1
    scene.ensemble.forbid("/feature", False)
    scene.run()
    assert scene.observer.stall_reason is None
    assert scene.snapshots()[-1].reason.startswith("/feature may be read now")
    assert scene.auditor.known == truth(scene.ensemble, {"/feature", "/cluster/id"})


def test_a_right_that_is_taken_away_takes_nothing_known():
    """The last content stays until the znode can be read again; later changes count as missed."""
    scene = WatchedEnsemble()
    scene.ensemble.make("/feature", content("/feature", 1))
    scene.settle()
    scene.ensemble.forbid("/feature")
    scene.ensemble.set("/feature", content("/feature", 2))
    scene.run()
    assert "/feature" in scene.line
    assert scene.auditor.known["/feature"][0].version == 0
    scene.ensemble.set("/feature", content("/feature", 4))
    scene.ensemble.forbid("/feature", False)
    scene.run()
    (change,) = scene.changes()
    assert change.znode is not None
    assert (change.znode.version, change.missed) == (2, 1)
    assert scene.observer.stall_reason is None


def test_brokers_that_may_not_be_listed_are_followed_singly():
    """Those that were known keep their watches."""
    scene = WatchedEnsemble()
    scene.ensemble.make("/brokers/ids/1", content("/brokers/ids/1", 1))
    scene.settle()
    scene.ensemble.forbid("/brokers/ids")
    scene.observer.on_disconnected("away", 0)
    scene.connect()
    scene.run()
    assert "/brokers/ids is forbidden" in scene.line
    scene.ensemble.set("/brokers/ids/1", content("/brokers/ids/1", 2))
    scene.run()
    assert scene.auditor.known["/brokers/ids/1"][0].version == 1


def test_a_history_that_went_back():
    """A server that knows less is asked again and again; when no other comes, all is reread."""
    scene = WatchedEnsemble()
    scene.ensemble.make("/feature", content("/feature", 1))
    for number in range(2, 8):
        scene.ensemble.set("/feature", content("/feature", number))
    scene.settle()
    restored = Ensemble()
    restored.make("/feature", content("/feature", 1))
    scene.observer.on_disconnected("away", scene.now_ms)
    scene.ensemble = restored
    scene.auditor._ensemble = restored
    scene.connect(session=2)
    scene.run(20)
    assert "it lags" in scene.line
    assert scene.observer.state is WatcherState.SYNCING
    assert len(scene.snapshots()) == 1
    for _ in range(60):
        scene.now_ms += 20
        scene.observer.tick(scene.now_ms)
        scene.connection.send()
        scene.connection.serve()
        events = scene.connection.deliver(scene.now_ms)
        if events:
            break
    (chunk,) = events
    assert isinstance(chunk, ZnodeSnapshot)
    assert "restored or recreated" in chunk.reason
    assert {znode.path: znode.version for znode in chunk.znodes} == {
        "/feature": 0,
        "/cluster/id": 0,
    }
    assert scene.observer.stall_reason is None


def test_a_read_that_fails_is_tried_again():
    """Any other error is a line, and the sweep waits for the znode."""
    scene = WatchedEnsemble()
    scene.run(4)
    failing = None
    while failing is None:
        request = scene.observer.next_request()
        if request is not None and request.target.path == "/feature":
            failing = request
        elif request is not None:
            scene.connection.requests.append(request)
            scene.connection.serve()
        scene.auditor.apply(scene.connection.deliver(0))
    assert scene.observer.on_response(failing.token, ReadFailed("ThrottledOp"), 0, 0, 0) == []
    assert scene.line == "/feature cannot be read at zk:2181/k: ThrottledOp"
    scene.settle()
    assert scene.observer.stall_reason is None


def test_a_bad_znode_is_a_dead_letter_once():
    """Its bytes go to the dead letters with the place; a new session does not send them again."""
    scene = WatchedEnsemble()
    scene.ensemble.make("/feature", b"junk")
    scene.settle()
    scene.observer.on_disconnected("away", 0)
    scene.connect(session=2)
    scene.settle()
    (letter,) = scene.auditor.dead_letters
    assert isinstance(letter, DeadLetter)
    assert letter.payload == b"junk"
    assert letter.location.startswith("znode /feature version 0 of transaction ")
    assert letter.reason.startswith("/feature has invalid content: it is not JSON")
    assert len(scene.snapshots()) == 2


def test_a_broker_with_a_range_upside_down():
    """A dead letter says it, and the broker is told as it is."""
    scene = WatchedEnsemble()
    data = b'{"version":5,"endpoints":[],"features":{"f":{"min_version":3,"max_version":1}}}'
    scene.ensemble.make("/brokers/ids/1", data)
    scene.settle()
    assert "the minimum is above the maximum" in scene.auditor.dead_letters[0].reason
    _, broker = scene.auditor.known["/brokers/ids/1"]
    assert isinstance(broker, BrokerZnode)
    assert broker.features == {"f": (3, 1)}


@pytest.mark.parametrize(("znodes", "sizes"), [(0, [1]), (499, [500]), (500, [500, 1])])
def test_snapshots_come_in_chunks(znodes, sizes):
    """At most this many znodes each, numbered, the last one marked; brokers in order of ids."""
    scene = WatchedEnsemble()
    for number in range(znodes):
        scene.ensemble.make(f"/brokers/ids/{number}", content("/brokers/ids/0", 1))
    scene.settle()
    chunks = scene.snapshots()
    assert [len(chunk.znodes) for chunk in chunks] == sizes
    assert [chunk.index for chunk in chunks] == list(range(len(sizes)))
    assert [chunk.last for chunk in chunks] == [False] * (len(sizes) - 1) + [True]
    paths = [znode.path for chunk in chunks for znode in chunk.znodes]
    assert paths == ["/cluster/id", *(f"/brokers/ids/{number}" for number in range(znodes))]


def test_no_reading_has_the_name_of_another():
    """Each snapshot is told apart by its session and a count."""
    scene = WatchedEnsemble()
    names = set()
    for session in (1, 2, -3, 2):
        scene.observer.on_disconnected("away", 0)
        scene.connect(session)
        scene.settle()
        names.add(scene.snapshots()[-1].resync)
    assert names == {"1-1", "2-2", f"{2**64 - 3:x}-3", "2-4"}


def test_partitions_come_and_go_with_their_topics():
    """Directories are followed down to each state; a deleted topic removes all of them."""
    scene = WatchedEnsemble(wanted=WatchScope(partitions=True))
    scene.ensemble.make("/brokers/topics", b"")
    scene.settle()
    base = "/brokers/topics/t"
    state = f"{base}/partitions/0/state"
    data = b'{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1]}'
    for path in (base, f"{base}/partitions", f"{base}/partitions/0"):
        scene.ensemble.make(path, b"")
        scene.run()
    scene.ensemble.make(state, data)
    scene.settle()
    _, partition = scene.auditor.known[state]
    assert isinstance(partition, PartitionStateZnode)
    assert partition.leader == 1
    for path in (state, f"{base}/partitions/0", f"{base}/partitions", base):
        scene.ensemble.delete(path)
    scene.settle()
    assert state not in scene.auditor.known
    assert [change.znode is None for change in scene.changes()] == [False, True]


def test_what_comes_from_an_old_connection_is_void():
    """Neither its answers nor its watches count."""
    scene = WatchedEnsemble()
    request = scene.request()
    generation = scene.observer.generation
    scene.observer.on_disconnected("away", 0)
    assert scene.observer.on_response(request.token, ZnodeAbsent(), 9**9, 0, 0) == []
    scene.connect()
    scene.settle()
    scene.observer.on_watch(generation, WatchTarget("/feature", TargetKind.DATA))
    assert scene.observer.next_request() is None
    scene.observer.on_watch(generation + 1, WatchTarget("/feature", TargetKind.DATA))
    assert scene.request().target.path == "/feature"


def test_a_requested_resync_is_a_snapshot_of_everything():
    """It needs one read; what changes meanwhile is in the snapshot, and nothing is missed."""
    watched = WatchedEnsemble()
    watched.settle()
    before = watched.snapshots()
    watched.observer.resync("messages were lost")
    assert watched.request().target.path == CLUSTER_ID
    watched.connect()
    watched.observer.resync("messages were lost")
    watched.settle()
    again = watched.snapshots()[len(before) :]
    assert [chunk.reason for chunk in again] == ["messages were lost"]
    assert again[0].resync != before[0].resync
    assert {z.path for z in again[0].znodes} == {z.path for z in before[0].znodes}
    assert watched.observer.caught_up
