"""A metadata controller whose log is a list: what it proposes is appended, and committed at once.

With ``commits`` off, what is appended waits for `Driven.commit`; with ``holds`` on, what is
proposed waits for `Driven.release`, as behind a slow disk.
"""

from random import Random
from typing import Any

from featurewatch.reference.kraft.machines.batches import (
    LEADER_CHANGE,
    Batch,
    control_batch,
    data_batch,
)
from featurewatch.reference.kraft.machines.controller.controller import (
    ControllerSettings,
    MetadataController,
)
from featurewatch.reference.kraft.machines.controller.protocol import (
    Answer,
    Applied,
    BecameLeader,
    ControllerEffect,
    ControllerEvent,
    LostLeadership,
    Propose,
    Proposed,
    RequestReceived,
    SnapshotTaken,
    Tick,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerRegistration,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopics,
)
from featurewatch.reference.kraft.machines.metadata.records import Record, record_bytes, records_of
from featurewatch.reference.kraft.machines.metadata.state import Feature, Listener, Partition
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName

CLUSTER = "cluster-of-a-test-0000"
RANGES = (Feature("metadata.version", 7, 30), Feature("kraft.version", 0, 1))


def uuid(number: int) -> str:
    """Kafka's text of a UUID."""
    from uuid import UUID

    from featurewatch.reference.kraft.machines.replicas import text_of

    return text_of(UUID(int=(number + 1) << 64))


def settings_of(level: int | None = 30, **other: Any) -> ControllerSettings:
    """The settings of controller 1, the only voter; ``level`` is the first one."""
    levels = {} if level is None else {FeatureName("metadata.version"): FeatureLevel(level)}
    given: dict[str, Any] = {
        "node_id": 1,
        "cluster_id": CLUSTER,
        "incarnation_id": uuid(1001),
        "listeners": (Listener("CONTROLLER", "localhost", 9093),),
        "quorum": (1,),
        "bootstrap": levels,
    }
    return ControllerSettings(**{**given, **other})


class Driven:
    """A controller and its log."""

    def __init__(self, settings: ControllerSettings | None = None, *, commits: bool = True) -> None:
        self.settings = settings or settings_of()
        self.controller = MetadataController(self.settings, Random(1))
        self.commits = commits
        self.holds = False
        self.held: list[Propose] = []
        self.now_ms = 1_000
        self.epoch = 0
        self.log: list[Batch] = []
        self.answers: dict[int, Any] = {}
        self.effects: list[ControllerEffect] = []
        self._requests = 0

    @property
    def end(self) -> int:
        """The end of the log."""
        return self.log[-1].last + 1 if self.log else 0

    def lead(self) -> None:
        """Wins the next epoch, with its first record committed."""
        self.epoch += 1
        start = self.end
        self.add_control()
        self.receive(BecameLeader(self.epoch, start))
        self.commit()

    def lose(self, *, cuts: bool = True) -> None:
        """Loses the leadership; with ``cuts`` what was not committed is cut off."""
        self.receive(LostLeadership(self.epoch))
        if cuts:
            position = self.controller.position
            self.log = [batch for batch in self.log if batch.last < position]

    def add_control(self) -> None:
        """Appends a control record, as a voter does on its own."""
        change = {"version": 0, "leaderId": 1, "voters": [], "grantingVoters": []}
        self.log.append(control_batch(self.end, self.epoch, self.now_ms, [(LEADER_CHANGE, change)]))

    def add(self, *records: Record | bytes) -> None:
        """Appends and commits records of another leader, some of them as bytes."""
        values = [one if isinstance(one, bytes) else record_bytes(one) for one in records]
        self.log.append(data_batch(self.end, self.epoch, self.now_ms, values))
        self.commit()

    def commit(self) -> None:
        """Commits everything that is appended."""
        position = self.controller.position
        new = tuple(batch for batch in self.log if batch.base >= position)
        if new:
            self.receive(Applied(self.end, new))

    def receive(self, event: ControllerEvent) -> list[ControllerEffect]:
        """Gives an event, and performs its effects."""
        found = self.controller.receive(event, self.now_ms)
        self.effects += found
        for effect in found:
            if isinstance(effect, Answer):
                assert effect.request_id not in self.answers, "answered twice"
                self.answers[effect.request_id] = effect.response
            if isinstance(effect, Propose) and self.holds:
                self.held.append(effect)
            elif isinstance(effect, Propose):
                self.propose(effect)
        return found

    def propose(self, effect: Propose) -> None:
        """Appends what is proposed, unless it is for another place in the log."""
        last = -1
        if effect.epoch == self.epoch and effect.offset == self.end:
            batch = data_batch(self.end, self.epoch, self.now_ms, effect.values)
            self.log.append(batch)
            last = batch.last
        self.receive(Proposed(effect.token, last, self.end))
        if self.commits:
            self.commit()

    def release(self) -> None:
        """Appends what was held."""
        self.holds = False
        held, self.held = self.held, []
        for effect in held:
            self.propose(effect)

    def send(self, request: Any, version: int = 0) -> int:
        """Sends a request; returns its id."""
        self._requests += 1
        self.receive(RequestReceived(self._requests, request, version))
        return self._requests

    def ask(self, request: Any, version: int = 0) -> Any:
        """Sends a request; returns its answer."""
        return self.answers[self.send(request, version)]

    def wait(self, ms: int) -> None:
        """Lets time pass."""
        until = self.now_ms + ms
        while self.now_ms < until:
            self.now_ms = min(until, self.now_ms + 100)
            self.receive(Tick())

    # -- brokers and topics ------------------------------------------------------------------------

    def register(self, broker_id: int, **other: Any) -> Any:
        """Registers a broker that supports levels 7-30; returns the answer."""
        given: dict[str, Any] = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER,
            "incarnation_id": uuid(broker_id),
            "listeners": (Listener("PLAINTEXT", "localhost", 9000 + broker_id),),
            "features": RANGES,
            "log_dirs": (uuid(500 + broker_id),),
        }
        return self.ask(BrokerRegistration(**{**given, **other}))

    def heartbeat(self, broker_id: int, *, fence: bool = False, stop: bool = False) -> Any:
        """Sends the heartbeat of a broker that has applied everything."""
        epoch = self.controller.committed.brokers[broker_id].epoch
        return self.ask(BrokerHeartbeat(broker_id, epoch, self.end - 1, fence, stop))

    def start(self, *broker_ids: int) -> None:
        """Registers brokers and unfences them."""
        for broker_id in broker_ids:
            assert self.register(broker_id).error_code == 0
            assert not self.heartbeat(broker_id).is_fenced

    def create(self, name: str, *replicas: tuple[int, ...]) -> str:
        """Creates a topic with these replicas; returns its id."""
        assignments = tuple(CreatableReplicaAssignment(at, one) for at, one in enumerate(replicas))
        (result,) = self.ask(CreateTopics((CreatableTopic(name, assignments=assignments),))).topics
        assert result.error_code == 0, result
        found: str = result.topic_id
        return found

    def partition(self, topic_id: str, index: int = 0) -> Partition:
        """A partition as it is committed."""
        return self.controller.committed.partitions[topic_id, index]

    @property
    def records(self) -> list[Record]:
        """All data records of the log."""
        return [
            record for batch in self.log if not batch.is_control for _, record in records_of(batch)
        ]

    @property
    def snapshots(self) -> list[SnapshotTaken]:
        """The snapshots that were taken."""
        return [effect for effect in self.effects if isinstance(effect, SnapshotTaken)]


def level_of(driven: Driven) -> int | None:
    """The committed metadata.version."""
    return driven.controller.committed.levels.get(METADATA_VERSION)


def led(**settings: Any) -> Driven:
    """An active controller."""
    driven = Driven(settings_of(**settings))
    driven.lead()
    return driven
