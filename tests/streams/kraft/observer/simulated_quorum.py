"""A small Raft quorum without time or network, to answer an observer as real controllers would.

It keeps what matters to an observer: three logs of batches, an epoch a node knows, elections that
only an up-to-date node wins, a high watermark that moves when a majority holds a record of the
present epoch, snapshots that take the place of the beginning of a log.
"""

from dataclasses import dataclass, field, replace
from types import MappingProxyType

from featurewatch.kafka.address import Address
from featurewatch.streams.kraft.observer import requests
from featurewatch.streams.types import LOG_START, LeaderAndEpoch, OffsetAndEpoch
from tests.streams.kraft.log_bytes import log

Entry = tuple[int, int, int]
"""First offset, last offset, leader epoch of a batch."""

SNAPSHOT_BYTES = 30


@dataclass
class Node:
    """A controller."""

    id: int
    epoch: int = 0
    leader: int = -1
    log: list[Entry] = field(default_factory=list)
    snapshot: OffsetAndEpoch | None = None
    start: int = 0

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(f"node{self.id}", 9093)

    @property
    def end(self) -> OffsetAndEpoch:
        """The place after its last record."""
        if self.log:
            return OffsetAndEpoch(self.log[-1][1] + 1, self.log[-1][2])
        return self.snapshot or LOG_START

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The end of the newest epoch that is not above ``epoch`` (endOffsetForEpoch)."""
        below = [entry for entry in self.log if entry[2] <= epoch]
        if below:
            return OffsetAndEpoch(below[-1][1] + 1, below[-1][2])
        return self.snapshot or LOG_START


class Quorum:
    """Three controllers; ``committed`` is the truth, batch by batch, from offset 0 on."""

    def __init__(self) -> None:
        self.nodes = [Node(number) for number in range(3)]
        self.committed: list[Entry] = []
        self.watermark = 0
        self.leader = self.nodes[0]
        self.elect(0)

    def elect(self, wish: int) -> None:
        """The wished node leads a new epoch, if a majority is not ahead of it."""
        candidate = self.nodes[wish % 3]
        key = (candidate.end.epoch, candidate.end.offset)
        behind = [n for n in self.nodes if (n.end.epoch, n.end.offset) <= key]
        if len(behind) < 2:
            return
        epoch = max(node.epoch for node in self.nodes) + 1
        for node in behind:
            node.epoch, node.leader = epoch, candidate.id
        self.leader = candidate
        self.append(1)

    def append(self, count: int) -> None:
        """The leader writes a batch."""
        first = self.leader.end.offset
        self.leader.log.append((first, first + count - 1, self.leader.epoch))

    def append_apart(self, number: int) -> None:
        """A node that still leads an older epoch writes what will never be committed."""
        node = self.nodes[number % 3]
        if node.leader == node.id and node is not self.leader:
            first = node.end.offset
            node.log.append((first, first + number % 3, node.epoch))

    def replicate(self, to: int) -> None:
        """A node fetches everything from the leader; the watermark follows."""
        node, leader = self.nodes[to % 3], self.leader
        if node is leader:
            return
        node.epoch, node.leader = leader.epoch, leader.id
        node.log, node.start, node.snapshot = list(leader.log), leader.start, leader.snapshot
        newly = [entry for entry in leader.log if entry[1] >= self.watermark]
        self.committed += newly
        self.watermark = leader.end.offset

    def trim(self, number: int) -> None:
        """A node makes a snapshot of what is committed and drops the log before it."""
        node = self.nodes[number % 3]
        below = [e for e in node.log if e in self.committed and e[1] < self.watermark]
        if below:
            last = below[-1]
            node.snapshot = OffsetAndEpoch(last[1] + 1, last[2])
            node.start = node.snapshot.offset
            node.log = [entry for entry in node.log if entry[0] >= node.start]

    def respond(
        self, ask: requests.ObserverRequest, version: int, chaos: int
    ) -> requests.ObserverResponse | None:
        """The response of the asked node; None: nobody is there."""
        node = next((n for n in self.nodes if n.address == ask.to), None)
        if node is None:
            return None
        leader = LeaderAndEpoch(node.leader, node.epoch)
        homes = {node.leader: Address(f"node{node.leader}", 9093)}
        endpoints = MappingProxyType(homes if version >= 17 and node.leader >= 0 else {})
        error = self._refusal(node, ask)
        if isinstance(ask, requests.FetchSnapshotRequest):
            if error or ask.snapshot != node.snapshot:
                return requests.FetchSnapshotResponse(requests.UNKNOWN_SERVER_ERROR)
            data = bytes(min(1 + chaos % 20, SNAPSHOT_BYTES - ask.position))
            return requests.FetchSnapshotResponse(
                0, leader, endpoints, ask.snapshot, SNAPSHOT_BYTES, ask.position, data
            )
        if error:
            return requests.FetchResponse(error, version, leader, endpoints)
        return self._content(node, ask, leader, version, chaos)

    def _refusal(self, node: Node, ask: requests.ObserverRequest) -> int:
        if ask.epoch < node.epoch:
            return requests.FENCED_LEADER_EPOCH
        if ask.epoch > node.epoch:
            return requests.UNKNOWN_LEADER_EPOCH
        return 0 if node.leader == node.id else requests.NOT_LEADER_OR_FOLLOWER

    def _content(
        self,
        node: Node,
        ask: requests.FetchRequest,
        leader: LeaderAndEpoch,
        version: int,
        chaos: int,
    ) -> requests.FetchResponse:
        # A leader says no watermark before it has committed something of its own epoch.
        own = [entry[1] + 1 for entry in self.committed if entry[2] == node.epoch]
        watermark = own[-1] if own else -1
        place, snapshot = ask.position, node.snapshot
        answer = requests.FetchResponse(
            0, version, leader, high_watermark=watermark, log_start=node.start
        )
        lost = snapshot is not None and (
            place.offset < node.start
            or (place.offset == node.start and place.epoch != snapshot.epoch)
            or place.epoch < snapshot.epoch
        )
        if lost:
            return replace(answer, snapshot=snapshot)
        end = node.end_of_epoch(place.epoch)
        if place.offset > 0 and (end.epoch != place.epoch or end.offset < place.offset):
            return replace(answer, diverging=end)
        following = [e for e in node.log if e[1] >= place.offset]
        text = " ".join(f"{first}-{last}@{epoch}" for first, last, epoch in following[:4])
        records = log(text)
        # A slice of the log: at least one batch, then cut anywhere.
        whole = len(log(text.split()[0])) if text else 0
        cut = records[: max(whole, len(records) - chaos % 90)]
        return replace(answer, records=cut)
