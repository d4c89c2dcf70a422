"""The shells' own small machines: the directory, the light brokers, and who watches what."""

from featurewatch.reference.machines.dialect import RELEASED
from featurewatch.reference.machines.directory import CLUSTER_ID, BrokerDirectory, Endpoint
from featurewatch.reference.machines.encoding import (
    BROKER_IDS,
    BrokerIdentity,
    broker_path,
    encode_broker,
)
from featurewatch.reference.machines.light_brokers import IN_FLIGHT, LightBrokers
from featurewatch.reference.machines.protocol import (
    Disconnected,
    Event,
    Machine,
    OperationCompleted,
    Reconnected,
    SessionLost,
    SessionStarted,
    Tick,
    WatchFired,
    WatchKind,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.machines.zookeeper import (
    Create,
    Exists,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    NodeExists,
    NoNode,
    Operation,
    OperationDone,
    OperationRefused,
    OperationResult,
    OutcomeUnknown,
    Stat,
)
from featurewatch.reference.zookeeper.watches import WatchRegistry

SESSION = 77
STAT = Stat(0, 1, 1, SESSION)
IDS = GetChildren(BROKER_IDS, watch=True)


class Script:
    """Gives a machine events and keeps what it asks for until it is answered."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.open: dict[Operation, int] = {}
        self.logged: list[str] = []

    def deliver(self, event: Event) -> list[Operation]:
        """What it asks for at this event."""
        asked = []
        for effect in self.machine.receive(event, 0):
            if isinstance(effect, ZookeeperRequest):
                asked.append(effect.operation)
                self.open[effect.operation] = effect.token
            elif isinstance(effect, WriteLog):
                self.logged.append(effect.line)
        return asked

    def complete(self, operation: Operation, outcome: OperationResult) -> list[Operation]:
        """What it asks for at this answer."""
        return self.deliver(OperationCompleted(self.open.pop(operation), outcome))


def broker(port: int) -> GetDataResult:
    """The znode of a broker."""
    listeners = {"PLAINTEXT": ("h", port, "PLAINTEXT")}
    return GetDataResult(encode_broker(RELEASED, BrokerIdentity(1, listeners), {}, 0), STAT)


def watched(broker_id: int) -> GetData:
    """The read of a broker's znode."""
    return GetData(broker_path(broker_id), watch=True)


def started() -> tuple[BrokerDirectory, Script]:
    """A directory that knows brokers 1 and 2."""
    directory = BrokerDirectory("new")
    script = Script(directory)
    script.deliver(SessionStarted(SESSION))
    script.complete(GetData(CLUSTER_ID), GetDataResult(b'{"version":"1","id":"there"}', STAT))
    assert script.complete(IDS, GetChildrenResult(("2", "1", "x"))) == [watched(1), watched(2)]
    script.complete(watched(1), broker(11))
    assert not directory.complete
    script.complete(watched(2), broker(12))
    return directory, script


def test_the_directory_reads_every_broker_once() -> None:
    """It is complete when all that is listed is read; names that are no ids are passed over."""
    directory, script = started()
    assert directory.complete
    assert directory.cluster_id == "there"
    assert directory.brokers == {1: Endpoint("h", 11), 2: Endpoint("h", 12)}
    script.deliver(WatchFired(BROKER_IDS, WatchKind.CHILDREN))
    assert not directory.complete
    assert script.deliver(Tick()) == [IDS]
    assert script.complete(IDS, GetChildrenResult(("1", "2", "3"))) == [watched(3)]
    script.complete(watched(3), NoNode())
    assert directory.complete
    assert sorted(directory.brokers) == [1, 2]


def test_a_broker_that_comes_back_elsewhere_is_read_anew() -> None:
    """Gone and back between two lists, it listens where it says now."""
    directory, script = started()
    script.deliver(WatchFired(broker_path(1), WatchKind.DELETED))
    assert sorted(directory.brokers) == [2]
    script.deliver(WatchFired(BROKER_IDS, WatchKind.CHILDREN))
    script.deliver(Tick())
    assert script.complete(IDS, GetChildrenResult(("1", "2"))) == [watched(1)]
    script.complete(watched(1), broker(21))
    assert directory.brokers[1] == Endpoint("h", 21)
    assert script.deliver(WatchFired(broker_path(2), WatchKind.CHANGED)) == [watched(2)]
    script.complete(watched(2), GetDataResult(b"{", STAT))
    assert sorted(directory.brokers) == [1]


def test_brokers_that_went_while_nobody_looked_are_gone() -> None:
    """After a lost connection all is read again, and what is not listed any more is dropped."""
    directory, script = started()
    script.deliver(Disconnected())
    assert script.deliver(Reconnected()) == [GetData(CLUSTER_ID), IDS]
    assert script.complete(IDS, GetChildrenResult(("2",))) == [watched(2)]
    script.complete(watched(2), broker(12))
    assert sorted(directory.brokers) == [2]


def test_a_cluster_without_an_id_is_given_one() -> None:
    """Of two that give one at once the first is right."""
    directory = BrokerDirectory("mine")
    script = Script(directory)
    script.deliver(SessionStarted(SESSION))
    (create,) = script.complete(GetData(CLUSTER_ID), NoNode())
    assert create == Create(CLUSTER_ID, b'{"version":"1","id":"mine"}')
    (again,) = script.complete(create, NodeExists())
    script.complete(again, GetDataResult(b'{"version":"1","id":"theirs"}', STAT))
    assert directory.cluster_id == "theirs"


def creation(broker_id: int) -> Create:
    """How a light broker registers."""
    return Create(broker_path(broker_id), b"%d" % broker_id, ephemeral=True)


def light(count: int) -> tuple[LightBrokers, Script]:
    """So many, not registered yet."""
    brokers = LightBrokers({each: b"%d" % each for each in range(count)})
    return brokers, Script(brokers)


def test_light_brokers_register_a_window_at_a_time() -> None:
    """Each answer lets the next one go."""
    count = IN_FLIGHT + 2
    brokers, script = light(count)
    assert len(script.deliver(SessionStarted(SESSION))) == IN_FLIGHT
    assert script.complete(creation(0), OperationDone((STAT,))) == [creation(IN_FLIGHT)]
    for each in range(1, count - 1):
        script.complete(creation(each), OperationDone((STAT,)))
    assert not brokers.complete
    script.complete(creation(count - 1), OperationDone((STAT,)))
    assert brokers.complete


def test_a_registration_whose_answer_was_lost_is_found() -> None:
    """It is there already, and of this session: ours."""
    brokers, script = light(1)
    script.deliver(SessionStarted(SESSION))
    script.complete(creation(0), OutcomeUnknown())
    script.deliver(Disconnected())
    script.deliver(Tick())
    (again,) = script.deliver(Reconnected())
    (look,) = script.complete(again, NodeExists())
    assert look == Exists(broker_path(0))
    script.complete(look, OperationDone((STAT,)))
    assert brokers.complete


def test_one_of_an_old_session_is_waited_for() -> None:
    """What stands of an earlier process goes with its session; then the place is free."""
    brokers, script = light(1)
    (first,) = script.deliver(SessionStarted(SESSION))
    (look,) = script.complete(first, NodeExists())
    assert script.complete(look, OperationDone((Stat(0, 1, 1, SESSION - 1),))) == []
    (again,) = script.deliver(Tick())
    script.complete(again, OperationDone((STAT,)))
    assert brokers.complete


def test_an_expired_session_takes_all_and_all_register_again() -> None:
    """Ephemeral znodes are gone with their session."""
    brokers, script = light(2)
    script.deliver(SessionStarted(SESSION))
    for each in (0, 1):
        script.complete(creation(each), OperationDone((STAT,)))
    script.deliver(Disconnected())
    script.deliver(SessionLost())
    assert script.deliver(SessionStarted(SESSION + 1)) == [creation(0), creation(1)]
    assert not brokers.complete


def test_a_refusal_is_said_and_not_repeated() -> None:
    """Without the right to write nothing gets better by trying."""
    brokers, script = light(1)
    (create,) = script.deliver(SessionStarted(SESSION))
    script.complete(create, OperationRefused("no right"))
    assert script.deliver(Tick()) == []
    assert brokers.refused == {0: "no right"}
    assert script.logged == ["light broker 0 is refused: no right"]


def test_a_watch_is_told_once_to_each_who_set_it() -> None:
    """Data and children apart; a deletion ends both; what found nothing has left no watch."""
    watches: WatchRegistry[str] = WatchRegistry()
    read = GetData("/a", watch=True)
    for seat in ("x", "y", "x"):
        watches.add(seat, read, GetDataResult(b"", STAT))
    watches.add("z", read, NoNode())
    watches.add("z", GetData("/a"), GetDataResult(b"", STAT))
    assert watches.fire("/a", WatchKind.CHILDREN) == []
    assert watches.fire("/a", WatchKind.CHANGED) == ["x", "y"]
    assert watches.fire("/a", WatchKind.CHANGED) == []
    watches.add("z", Exists("/b", watch=True), NoNode())
    assert watches.fire("/b", WatchKind.CREATED) == ["z"]
    watches.add("x", GetChildren("/c", watch=True), GetChildrenResult(()))
    watches.add("y", GetData("/c", watch=True), GetDataResult(b"", STAT))
    watches.add("z", GetChildren("/d", watch=True), NoNode())
    assert sorted(watches.fire("/c", WatchKind.DELETED)) == ["x", "y"]
    assert watches.fire("/d", WatchKind.DELETED) == []
