"""The small machines of the shells: the directory, light brokers, and the watch registry."""

from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.directory import CLUSTER_ID, BrokerDirectory
from featurewatch.reference.zookeeper.machines.encoding import (
    BROKER_IDS,
    BrokerIdentity,
    Endpoint,
    broker_path,
    encode_broker,
)
from featurewatch.reference.zookeeper.machines.light_brokers import (
    IN_FLIGHT,
    EndLightBrokers,
    LightBrokerRegistered,
    LightBrokers,
    StartLightBrokers,
)
from featurewatch.reference.zookeeper.machines.protocol import (
    BrokerEffect,
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
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
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
from featurewatch.reference.zookeeper.sessions.watches import WatchRegistry

SESSION = 77
STAT = Stat(0, 1, 1, SESSION)
IDS = GetChildren(BROKER_IDS, watch=True)


class Script:
    """Passes events to a machine and keeps its requests until they are completed."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.open: dict[Operation, int] = {}
        self.log_lines: list[str] = []
        self.broker_effects: list[BrokerEffect] = []

    def send(self, event: Event) -> list[Operation]:
        """Passes an event; returns the operations that the machine requests."""
        operations = []
        for effect in self.machine.receive(event, 0):
            if isinstance(effect, ZookeeperRequest):
                operations.append(effect.operation)
                self.open[effect.operation] = effect.token
            elif isinstance(effect, WriteLog):
                self.log_lines.append(effect.line)
            elif isinstance(effect, BrokerEffect):
                self.broker_effects.append(effect)
        return operations

    def complete(self, operation: Operation, outcome: OperationResult) -> list[Operation]:
        """Completes an operation; returns the operations that the machine requests."""
        return self.send(OperationCompleted(self.open.pop(operation), outcome))


def broker(port: int) -> GetDataResult:
    """The znode of a broker."""
    listeners = {"PLAINTEXT": ("h", port, "PLAINTEXT")}
    return GetDataResult(encode_broker(RELEASED, BrokerIdentity(1, listeners), {}, 0), STAT)


def watched(broker_id: int) -> GetData:
    """The read of a broker's znode."""
    return GetData(broker_path(broker_id), watch=True)


def started() -> tuple[BrokerDirectory, Script]:
    """A directory that has read brokers 1 and 2."""
    directory = BrokerDirectory("new")
    script = Script(directory)
    script.send(SessionStarted(SESSION))
    script.complete(GetData(CLUSTER_ID), GetDataResult(b'{"version":"1","id":"there"}', STAT))
    assert script.complete(IDS, GetChildrenResult(("2", "1", "x"))) == [watched(1), watched(2)]
    script.complete(watched(1), broker(11))
    assert not directory.complete
    script.complete(watched(2), broker(12))
    return directory, script


def test_the_directory_reads_every_broker_once() -> None:
    """It is complete when all listed brokers are read; names that are not ids are ignored."""
    directory, script = started()
    assert directory.complete
    assert directory.cluster_id == "there"
    assert directory.brokers == {1: Endpoint("h", 11), 2: Endpoint("h", 12)}
    script.send(WatchFired(BROKER_IDS, WatchKind.CHILDREN))
    assert not directory.complete
    assert script.send(Tick()) == [IDS]
    assert script.complete(IDS, GetChildrenResult(("1", "2", "3"))) == [watched(3)]
    script.complete(watched(3), NoNode())
    assert directory.complete
    assert sorted(directory.brokers) == [1, 2]


def test_a_broker_that_returns_elsewhere_is_read_again() -> None:
    """A broker that left and returned between two lists has its new address."""
    directory, script = started()
    script.send(WatchFired(broker_path(1), WatchKind.DELETED))
    assert sorted(directory.brokers) == [2]
    script.send(WatchFired(BROKER_IDS, WatchKind.CHILDREN))
    script.send(Tick())
    assert script.complete(IDS, GetChildrenResult(("1", "2"))) == [watched(1)]
    script.complete(watched(1), broker(21))
    assert directory.brokers[1] == Endpoint("h", 21)
    assert script.send(WatchFired(broker_path(2), WatchKind.CHANGED)) == [watched(2)]
    script.complete(watched(2), GetDataResult(b"{", STAT))
    assert sorted(directory.brokers) == [1]


def test_brokers_that_left_while_disconnected_are_removed() -> None:
    """After a lost connection all is read again, and brokers that are no longer listed are
    removed."""
    directory, script = started()
    script.send(Disconnected())
    assert script.send(Reconnected()) == [GetData(CLUSTER_ID), IDS]
    assert script.complete(IDS, GetChildrenResult(("2",))) == [watched(2)]
    script.complete(watched(2), broker(12))
    assert sorted(directory.brokers) == [2]


def test_a_cluster_without_an_id_gets_one() -> None:
    """If two nodes create an id at once, the first one counts."""
    directory = BrokerDirectory("mine")
    script = Script(directory)
    script.send(SessionStarted(SESSION))
    (create,) = script.complete(GetData(CLUSTER_ID), NoNode())
    assert create == Create(CLUSTER_ID, b'{"version":"1","id":"mine"}')
    (read,) = script.complete(create, NodeExists())
    script.complete(read, GetDataResult(b'{"version":"1","id":"theirs"}', STAT))
    assert directory.cluster_id == "theirs"


def creation(broker_id: int) -> Create:
    """The request that registers a light broker."""
    return Create(broker_path(broker_id), b"%d" % broker_id, ephemeral=True)


def light(count: int) -> tuple[LightBrokers, Script]:
    """Light brokers that are not registered yet."""
    brokers = LightBrokers({broker_id: b"%d" % broker_id for broker_id in range(count)})
    return brokers, Script(brokers)


def test_light_brokers_register_a_window_at_a_time() -> None:
    """Each result lets the next registration start."""
    count = IN_FLIGHT + 2
    brokers, script = light(count)
    assert len(script.send(SessionStarted(SESSION))) == IN_FLIGHT
    assert script.complete(creation(0), OperationDone((STAT,))) == [creation(IN_FLIGHT)]
    for broker_id in range(1, count - 1):
        script.complete(creation(broker_id), OperationDone((STAT,)))
    assert not brokers.complete
    script.complete(creation(count - 1), OperationDone((STAT,)))
    assert brokers.complete


def test_a_registration_whose_result_was_lost_is_recognized() -> None:
    """The znode already exists and belongs to this session."""
    brokers, script = light(1)
    script.send(SessionStarted(SESSION))
    script.complete(creation(0), OutcomeUnknown())
    script.send(Disconnected())
    script.send(Tick())
    (repeated,) = script.send(Reconnected())
    (check,) = script.complete(repeated, NodeExists())
    assert check == Exists(broker_path(0))
    script.complete(check, OperationDone((STAT,)))
    assert brokers.complete


def test_a_znode_of_an_old_session_is_waited_for() -> None:
    """The znode of an earlier process expires with its session; then the id is free."""
    brokers, script = light(1)
    (first,) = script.send(SessionStarted(SESSION))
    (look,) = script.complete(first, NodeExists())
    assert script.complete(look, OperationDone((Stat(0, 1, 1, SESSION - 1),))) == []
    (repeated,) = script.send(Tick())
    script.complete(repeated, OperationDone((STAT,)))
    assert brokers.complete


def test_after_an_expired_session_all_register_again() -> None:
    """Ephemeral znodes expire with their session."""
    brokers, script = light(2)
    script.send(SessionStarted(SESSION))
    for broker_id in (0, 1):
        script.complete(creation(broker_id), OperationDone((STAT,)))
    script.send(Disconnected())
    script.send(SessionLost())
    assert script.send(SessionStarted(SESSION + 1)) == [creation(0), creation(1)]
    assert not brokers.complete


def test_a_rejection_is_logged_and_not_repeated() -> None:
    """Without permission to write, retrying does not help."""
    brokers, script = light(1)
    (create,) = script.send(SessionStarted(SESSION))
    script.complete(create, OperationRefused("no right"))
    assert script.send(Tick()) == []
    assert brokers.rejected == {0: "no right"}
    assert script.log_lines == ["light broker 0 is rejected: no right"]


def registered(brokers: LightBrokers, script: Script) -> None:
    """Completes the registration of broker 0."""
    (create,) = script.send(SessionStarted(SESSION))
    script.complete(create, OperationDone((STAT,)))
    assert brokers.registered == {0}


def test_light_brokers_end_and_start_by_order() -> None:
    """The znode is deleted and created again, with the epoch of each registration."""
    brokers, script = light(1)
    registered(brokers, script)
    (delete,) = script.send(EndLightBrokers(frozenset({0, 7})))
    assert delete == Delete(broker_path(0))
    assert script.send(StartLightBrokers(frozenset({0}))) == []
    (again,) = script.complete(delete, OperationDone())
    assert again == creation(0)
    effects = script.complete(again, OperationDone((Stat(0, 9, 9, SESSION),)))
    assert effects == []
    assert script.broker_effects[-1] == LightBrokerRegistered(0, 9)
    assert brokers.complete
    (delete,) = script.send(EndLightBrokers(frozenset({0})))
    script.complete(delete, NoNode())
    assert brokers.complete
    assert brokers.registered == set()
    assert script.send(SessionStarted(SESSION + 1)) == []


def test_a_light_broker_that_was_ended_before_it_registered_goes_too() -> None:
    """Whatever became of the request that was in flight."""
    for outcome in (OperationDone((STAT,)), OutcomeUnknown()):
        brokers, script = light(1)
        (create,) = script.send(SessionStarted(SESSION))
        assert script.send(EndLightBrokers(frozenset({0}))) == []
        deletions = [*script.complete(create, outcome), *script.send(Tick())]
        assert deletions == [Delete(broker_path(0))]
        assert script.broker_effects == []
        script.complete(deletions[0], OutcomeUnknown())
        (repeated,) = script.send(Tick())
        script.complete(repeated, OperationDone())
        assert brokers.complete


def test_a_watch_fires_once_for_each_slot_that_set_it() -> None:
    """Data and children are separate; a deletion fires both; a failed read sets no watch."""
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
