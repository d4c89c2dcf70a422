"""Drives one voter of three by hand: its peers are 1 and 2, it is 3."""

from dataclasses import replace
from random import Random
from uuid import UUID

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    control_batch,
)
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Effect,
    Flush,
    Flushed,
    QuorumState,
    Reply,
    RequestReceived,
    Resign,
    Send,
    Tick,
)
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
)
from featurewatch.reference.kraft.machines.requests import (
    BeginQuorumEpoch,
    Fetch,
    LeaderView,
    RaftAnswer,
    RaftRequest,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.machines.states import State
from featurewatch.reference.kraft.machines.voter import Voter, VoterSettings

ME = ReplicaKey(3)
CLUSTER = "a-cluster"
LONG_MS = 10_000
"""Longer than any timeout."""


def endpoint(node_id: int) -> Endpoint:
    """The listener of a voter."""
    return Endpoint("CONTROLLER", "localhost", 9000 + node_id)


VOTERS = VoterSet.of(VoterNode(ReplicaKey(one), (endpoint(one),)) for one in (1, 2, 3))


class Driven:
    """A voter, the effects of its last event, and everything that it has sent."""

    def __init__(
        self,
        log: Log | None = None,
        remembered: QuorumState | None = None,
        voters: VoterSet = VOTERS,
        me: ReplicaKey = ME,
    ) -> None:
        settings = VoterSettings(me, CLUSTER, (endpoint(me.id),))
        self.now_ms = 1_000_000
        self.voter = Voter(
            settings, log or Log(voters), remembered or QuorumState(), Random(0), self.now_ms
        )
        self.effects: list[Effect] = []
        self.sent: list[Send] = []
        self._request_id = 0
        self.tick()

    def receive(self, event: object) -> list[Effect]:
        """Gives it an event, and tells it that it has flushed."""
        effects = self.voter.receive(event, self.now_ms)  # type: ignore[arg-type]
        for effect in [*effects]:
            if isinstance(effect, Flush):
                effects += self.voter.receive(Flushed(effect.offset, effect.epoch), self.now_ms)
        self.sent += [effect for effect in effects if isinstance(effect, Send)]
        self.effects = effects
        return effects

    def tick(self, later_ms: int = 0) -> list[Effect]:
        """Lets time pass."""
        self.now_ms += later_ms
        return self.receive(Tick())

    def ask(self, request: RaftRequest) -> RaftAnswer | None:
        """Sends it a request; None if it holds its answer back."""
        self._request_id += 1
        effects = self.receive(RequestReceived(self._request_id, request))
        answers = [
            effect.answer
            for effect in effects
            if isinstance(effect, Reply) and effect.request_id == self._request_id
        ]
        assert len(answers) <= 1
        return answers[0] if answers else None

    def last_to(self, node_id: int) -> Send:
        """The last request that it sent to a node."""
        return next(send for send in reversed(self.sent) if send.node_id == node_id)

    def answer(self, node_id: int, answer: RaftAnswer | None) -> list[Effect]:
        """Answers the last request that it sent to a node."""
        return self.receive(AnswerReceived(self.last_to(node_id).number, answer))

    def state(self) -> State:
        """Its state; a call, because a type checker takes an attribute for unchanged."""
        return self.voter.state

    def of_kind(self, kind: type) -> list[object]:
        """The effects of its last event that are of a kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def grant(self, node_id: int) -> None:
        """Grants the vote that it has asked a node for."""
        view = LeaderView(-1, self.voter.epoch)
        self.answer(node_id, VoteAnswer(0, view, is_granted=True))


def in_state(state: State) -> Driven:
    """A voter in a state; in epoch 1, or 0 where no election has begun."""
    driven = Driven()
    match state:
        case State.UNATTACHED:
            pass
        case State.VOTED:
            driven.ask(vote(epoch=1))
        case State.FOLLOWER:
            driven.ask(begin(epoch=1))
        case _:
            driven.tick(LONG_MS)
            if state is not State.PROSPECTIVE:
                driven.grant(1)
            if state in (State.LEADER, State.RESIGNED):
                driven.grant(1)
            if state is State.RESIGNED:
                driven.receive(Resign())
    assert driven.voter.state is state
    return driven


def vote(
    epoch: int, candidate: int = 1, last_epoch: int = 0, end: int = 0, *, is_pre: bool = False
) -> Vote:
    """A candidate's request."""
    return Vote(CLUSTER, ME, epoch, ReplicaKey(candidate), last_epoch, end, is_pre)


def begin(epoch: int, leader: int = 1) -> BeginQuorumEpoch:
    """A leader's request."""
    return BeginQuorumEpoch(CLUSTER, ME, leader, epoch, (endpoint(leader),))


def fetch(
    replica: int, epoch: int, offset: int, last_epoch: int, high_watermark: int = -1
) -> Fetch:
    """A follower's request."""
    return Fetch(
        CLUSTER, ReplicaKey(replica), epoch, offset, last_epoch, high_watermark, 500, 1 << 20
    )


# -- voters in the log ----------------------------------------------------------------------------


def formatted(*ids: int) -> Log:
    """A log that begins with voters by directory (KIP-853)."""
    nodes = [
        replace(node, key=ReplicaKey(node.key.id, UUID(int=node.key.id)))
        for node in VOTERS.nodes
        if node.key.id in ids
    ]
    log = Log(VoterSet(()))
    records = [
        (KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}),
        (KRAFT_VOTERS, VoterSet.of(nodes).to_record()),
    ]
    log.begin_with(control_batch(0, 0, 0, records).data)
    return log


def leading(*ids: int) -> Driven:
    """A leader of voters in the log, whose epoch is committed."""
    me = ReplicaKey(3, UUID(int=3))
    driven = Driven(formatted(*ids), me=me)
    if len(ids) > 1:
        driven.tick(LONG_MS)
        driven.grant(ids[0])
        driven.grant(ids[0])
        end = driven.voter.log.end
        driven.ask(replace(fetch(ids[0], 1, end, 1), replica=key(ids[0])))
    assert driven.voter.exposed_high_watermark > 0
    return driven


def key(node_id: int) -> ReplicaKey:
    """A voter by its directory."""
    return ReplicaKey(node_id, UUID(int=node_id))
