"""A quorum over a faulty network, disk and clock, driven by a seed.

Time is simulated. Each effect of a replica takes a while and may be the last of its process; what
it had not flushed may be lost. Messages take milliseconds or seconds or get lost, links break in
one direction or in both, clocks run at different rates.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from uuid import UUID

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    ControlRecord,
    control_batch,
)
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Append,
    BecameLeader,
    Committed,
    Effect,
    Event,
    Flush,
    Flushed,
    Halt,
    InstallSnapshot,
    Persist,
    Propose,
    Reply,
    RequestReceived,
    Resign,
    Send,
    SnapshotTaken,
    Tick,
    Truncate,
    WriteSnapshot,
)
from featurewatch.reference.kraft.machines.replicas import ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import (
    NONE,
    AddVoter,
    RaftAnswer,
    RemoveVoter,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import OffsetAndEpoch
from tests.simulation.kraft.auditor import Auditor
from tests.simulation.kraft.disk import Disk
from tests.simulation.kraft.process import (
    CLUSTER,
    Process,
    committed_voters,
    endpoint_of,
    formatted_voters,
    voters_of,
)

TICK_MS = 40
REQUEST_TIMEOUT_MS = 2000
DURATION_MS = 20_000
REST_MS = 120_000
"""Until then a quorum without faults must have a leader that commits."""


class World:
    """One quorum."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.auditor = Auditor()
        self.now_ms = 0.0
        self.ids = range(1, self.random.choice((2, 4, 4, 4, 6)))
        self.changes_voters = self.random.random() < 0.4
        self.first = voters_of(self.ids)
        if self.changes_voters:
            # The voters are in the format's snapshot, by directory, and others may join them.
            self.first = formatted_voters(self.ids[: self.random.choice((1, 3, 3, 5))])
            self.ids = range(1, self.ids[-1] + 2)
        self.disks = {node_id: Disk() for node_id in self.ids}
        self.processes: dict[int, Process] = {}
        self.is_faulty = True
        self.changes = 0
        """How many changes of the voters were reported as done."""
        self._broken: set[tuple[int, int]] = set()
        self.pace = self.random.choice((0.1, 0.3, 1.0))
        """All timeouts are this much of the default: with short ones, elections collide."""
        self._fault_ms = self.random.choice((300, 1000, 3000)) * self.pace
        self._slowness = self.random.choice((1, 1, 5)) * self.pace
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._tokens = count()
        self._incarnations = count(1)
        self._requests: dict[int, Callable[[RaftAnswer], None]] = {}
        self._votes: dict[int, Vote] = {}
        for node_id in self.ids:
            self.start(node_id)
        self._after(0, self._disturb)
        self._after(0, self._propose)

    # -- time --------------------------------------------------------------------------------------

    def _after(self, delay_ms: float, action: Callable[[], None]) -> None:
        heappush(self._heap, (self.now_ms + delay_ms, next(self._order), action))

    def run(self, duration_ms: float) -> None:
        """Lets time pass."""
        until = self.now_ms + duration_ms
        while self._heap and self._heap[0][0] <= until:
            self.now_ms, _, action = heappop(self._heap)
            action()
        self.now_ms = until

    def play(self) -> None:
        """Runs with faults, then without, and checks that the quorum serves and agrees."""
        self.run(DURATION_MS * self.pace)
        self.is_faulty = False
        self._broken.clear()
        for node_id in self.ids:
            if node_id not in self.processes:
                self.start(node_id)
        before = self.auditor.committed_end
        until = self.now_ms + REST_MS * self.pace
        while self.now_ms < until and not self._agrees(before):
            self.run(500 * self.pace)
        assert self._agrees(before), "the quorum does not come to an agreement"

    def _agrees(self, before: int) -> bool:
        logs = [process.voter.log for process in self.processes.values()]
        leaders = [p for p in self.processes.values() if p.voter.state is State.LEADER]
        watermarks = {log.high_watermark for log in logs}
        return (
            len(leaders) == 1
            and self.auditor.committed_end > before + 3
            and max(watermarks) - min(watermarks) < 10
            and min(watermarks) > before
        )

    # -- processes ---------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        """Starts a replica from its disk."""
        process = Process(
            self.key_of(node_id),
            self.disks[node_id],
            self.first,
            next(self._incarnations),
            self.random,
            self.now_ms,
            self.pace,
            bootstrap=self.ids if self.changes_voters else (),
        )
        self.processes[node_id] = process
        self._tick(process)

    def key_of(self, node_id: int) -> ReplicaKey:
        """A replica; its directory is known where voters are in the log."""
        return ReplicaKey(node_id, UUID(int=node_id) if self.changes_voters else None)

    def crash(self, node_id: int) -> None:
        """Ends a process between two effects."""
        process = self.processes.pop(node_id, None)
        if process is not None:
            process.disk.crash(self.random)

    def _restart(self, process: Process) -> None:
        if self._is_alive(process):
            self.crash(process.node_id)
            self.start(process.node_id)

    def _is_alive(self, process: Process) -> bool:
        return self.processes.get(process.node_id) is process

    def _tick(self, process: Process) -> None:
        if self._is_alive(process):
            self._give(process, Tick())
            self._after(
                self.random.uniform(0.5, 1.5) * TICK_MS * self.pace, lambda: self._tick(process)
            )

    def _give(self, process: Process, event: Event) -> None:
        if not self._is_alive(process):
            return
        for effect in process.receive(event, self.now_ms):
            if isinstance(effect, Committed):
                self.auditor.on_committed(process, effect.offset, self.disks)
        if not process.is_busy:
            self._perform_next(process)

    def _perform_next(self, process: Process) -> None:
        """Performs the queued effects one by one; a slow one lets others act in between."""
        process.is_busy = True
        while process.queue and self._is_alive(process):
            effect = process.queue.popleft()
            takes_ms = self._duration_ms(effect)
            if takes_ms:
                self._after(takes_ms, partial(self._finish, process, effect))
                return
            self._perform(process, effect)
        process.is_busy = False

    def _finish(self, process: Process, effect: Effect) -> None:
        if self._is_alive(process):
            self._perform(process, effect)
            self._perform_next(process)

    def _duration_ms(self, effect: Effect) -> float:
        match effect:
            case Persist() | Flush() | WriteSnapshot() | InstallSnapshot():
                return self.random.uniform(0.1, 8) * self._slowness
            case Append() | Truncate() | Reply() | Send():
                return self.random.choice((0.0, 0.0, 0.05, 0.5))
            case _:
                return 0.0

    def _perform(self, process: Process, effect: Effect) -> None:
        match effect:
            case Persist(state):
                process.disk.state = state
            case Append(batches):
                self.auditor.on_append(process, batches)
                process.disk.change(effect)
            case Truncate():
                process.disk.change(effect)
            case Flush(offset, epoch):
                process.disk.flush()
                self._give(process, Flushed(offset, epoch))
            case WriteSnapshot():
                process.disk.write_snapshot(effect)
            case InstallSnapshot():
                process.disk.install(effect)
            case Send():
                self._send(process, effect)
            case Reply(request_id, answer):
                self._reply(process, request_id, answer)
            case BecameLeader(epoch):
                self.auditor.on_leader(process, epoch)
            case Halt(reason):
                raise AssertionError(f"{process.node_id} halts: {reason}")
            case _:
                pass

    # -- network -----------------------------------------------------------------------------------

    def _delay_ms(self) -> float:
        if self.is_faulty and self.random.random() < 0.02:
            return self.random.uniform(10, 4000 * self.pace)
        return self.random.uniform(0.2, 15)

    def _is_lost(self, source: int, target: int) -> bool:
        return (source, target) in self._broken or (self.is_faulty and self.random.random() < 0.005)

    def _send(self, process: Process, effect: Send) -> None:
        target = effect.endpoint.port
        is_answered = False

        def answer(content: RaftAnswer | None) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self._give(process, AnswerReceived(effect.number, content))

        def arrive() -> None:
            receiver = self.processes.get(target)
            if receiver is None:
                if (target, process.node_id) not in self._broken:
                    answer(None)  # nobody listens there
                return
            request_id = next(self._tokens)

            def on_reply(content: RaftAnswer) -> None:
                if not self._is_lost(target, process.node_id):
                    self._after(self._delay_ms(), lambda: answer(content))

            self._requests[request_id] = on_reply
            if isinstance(effect.request, Vote):
                self._votes[request_id] = effect.request
            self._give(receiver, RequestReceived(request_id, effect.request))

        if not self._is_lost(process.node_id, target):
            self._after(self._delay_ms(), arrive)
        self._after(REQUEST_TIMEOUT_MS * self.pace, lambda: answer(None))

    def _reply(self, process: Process, request_id: int, answer: RaftAnswer) -> None:
        vote = self._votes.pop(request_id, None)
        is_granted = isinstance(answer, VoteAnswer) and answer.is_granted
        if vote is not None and is_granted and not vote.is_pre_vote:
            self.auditor.on_vote(process, vote.epoch, vote.candidate)
            if self.is_faulty and self.random.random() < 0.1:
                # The moment at which forgetting does the most harm.
                self._after(self.random.uniform(0, 5), partial(self._restart, process))
        self._requests.pop(request_id)(answer)

    # -- what happens to it ------------------------------------------------------------------------

    def _propose(self) -> None:
        """Appends to every replica that believes that it leads, and sometimes takes a snapshot."""
        for process in [*self.processes.values()]:
            if process.voter.state is State.LEADER:
                values = (f"record {next(self._tokens)}".encode(),) * self.random.randint(1, 3)
                self._give(process, Propose(next(self._tokens), values))
            if self.random.random() < 0.01:
                self._snapshot(process)
            if self.changes_voters and self.random.random() < 0.1:
                self._change_voters(process)
        self._after(self.random.uniform(1, 300) * self.pace, self._propose)

    def _snapshot(self, process: Process) -> None:
        log = process.voter.log
        ends = [batch for batch in log.batches if batch.last < log.high_watermark]
        if ends:
            last = self.random.choice(ends[-5:])
            at = OffsetAndEpoch(last.last + 1, last.epoch)
            voters = committed_voters(log) if self.changes_voters else None
            data = snapshot_of(at, voters)
            self._give(process, SnapshotTaken(at, data, trims=self.random.random() < 0.7))

    def _change_voters(self, process: Process) -> None:
        """Asks a replica to add or remove a voter, whether it may or not."""
        key = self.key_of(self.random.choice(self.ids))
        request_id = next(self._tokens)
        self._requests[request_id] = self._on_changed
        request: AddVoter | RemoveVoter = RemoveVoter(CLUSTER, key)
        if process.voter.log.voters.get(key.id) is None:
            request = AddVoter(CLUSTER, key, (endpoint_of(key.id),), 2000)
        self._give(process, RequestReceived(request_id, request))

    def _on_changed(self, answer: RaftAnswer) -> None:
        self.changes += answer.error == NONE

    def _disturb(self) -> None:
        if not self.is_faulty:
            return
        node_id, chance = self.random.choice(self.ids), self.random.random()
        if chance < 0.45:
            self.crash(node_id)
            if self.random.random() < 0.5:
                self.start(node_id)
        elif chance < 0.6:
            self._partition(node_id)
        elif chance < 0.85:
            self._broken.clear()
        elif chance < 0.9:
            for dead in [one for one in self.ids if one not in self.processes]:
                self.start(dead)
        elif node_id in self.processes:
            self._give(self.processes[node_id], Resign())
        self._after(self.random.expovariate(1 / self._fault_ms), self._disturb)

    def _partition(self, node_id: int) -> None:
        """Breaks a link, or all of a node's, in one direction or in both."""
        others = [one for one in self.ids if one != node_id]
        if others and self.random.random() < 0.5:
            others = [self.random.choice(others)]
        both = self.random.random() < 0.6
        for other in others:
            self._broken.add((node_id, other))
            if both:
                self._broken.add((other, node_id))


def snapshot_of(at: OffsetAndEpoch, voters: VoterSet | None = None) -> bytes:
    """A snapshot without state, apart from the voters."""
    header: ControlRecord = (SNAPSHOT_HEADER, {"version": 0, "lastContainedLogTimestamp": 0})
    records = [header]
    if voters is not None:
        records.append((KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}))
        records.append((KRAFT_VOTERS, voters.to_record()))
    head = control_batch(0, at.epoch, 0, records)
    footer: ControlRecord = (SNAPSHOT_FOOTER, {"version": 0})
    return head.data + control_batch(len(records), at.epoch, 0, [footer]).data
