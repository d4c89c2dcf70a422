"""Changes of the voters, one at a time, by the leader (KIP-853).

``AddVoterHandler``, ``RemoveVoterHandler`` and ``UpdateVoterHandler``. Voters count from the moment
when their record is in the log, committed or not, so two sets that follow each other must have a
majority in common: they differ in one voter, and the next change waits until the last is committed.
"""

from dataclasses import dataclass

from featurewatch.reference.kraft.machines.batches import KRAFT_VOTERS
from featurewatch.reference.kraft.machines.leadership import Leadership
from featurewatch.reference.kraft.machines.protocol import Reply
from featurewatch.reference.kraft.machines.replica import Replica
from featurewatch.reference.kraft.machines.replicas import VoterNode, VoterSet
from featurewatch.reference.kraft.machines.requests import (
    DUPLICATE_VOTER,
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
    VOTER_NOT_FOUND,
    AddVoter,
    AskVersions,
    RemoveVoter,
    UpdateVoter,
    VersionsAnswer,
    VoterAnswer,
)
from featurewatch.streams.types import SupportedRange

_CAUGHT_UP_MS = 3_600_000
"""A new voter must have fetched this recently (``LeaderState.isReplicaCaughtUp``)."""


@dataclass(slots=True)
class _Change:
    """A change under way: ``offset`` is that of its record, -1 until it is appended."""

    request_id: int
    request: AddVoter | RemoveVoter
    until_ms: int
    offset: int = -1


class Membership:
    """The changes of the voters of one leader; it does nothing while another node leads."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._change: _Change | None = None
        self.must_resign = False
        """Whether the leader was removed, and the removal is committed."""

    def on_request(self, request_id: int, request: AddVoter | RemoveVoter | UpdateVoter) -> None:
        """Begins a change, or refuses it."""
        refusal = self._refusal(request)
        if refusal is None:
            match request:
                case AddVoter():
                    refusal = self._begin_adding(request_id, request)
                case RemoveVoter():
                    refusal = self._begin_removing(request_id, request)
                case UpdateVoter():
                    refusal = self._update(request)
        if refusal is not None:
            self._replica.emit(Reply(request_id, refusal))

    def _refusal(self, request: AddVoter | RemoveVoter | UpdateVoter) -> VoterAnswer | None:
        """Why a change cannot begin, in the order in which Kafka looks."""
        replica, log = self._replica, self._replica.log
        if request.cluster_id not in (None, replica.settings.cluster_id):
            return self._answer(INCONSISTENT_CLUSTER_ID)
        if isinstance(request, UpdateVoter) and request.epoch != replica.epoch:
            is_old = request.epoch < replica.epoch
            return self._answer(FENCED_LEADER_EPOCH if is_old else UNKNOWN_LEADER_EPOCH)
        if replica.leadership is None:
            return self._answer(NOT_LEADER_OR_FOLLOWER)
        if request.voter.id < 0 or request.voter.directory is None:
            return self._answer(INVALID_REQUEST, "the voter has no id or no directory id")
        if not isinstance(request, RemoveVoter):
            names = {endpoint.name for endpoint in request.endpoints}
            name = replica.settings.endpoints[0].name
            if name not in names:
                return self._answer(INVALID_REQUEST, f"the voter has no listener {name}")
        self.on_tick()
        if self._change is not None:
            return self._answer(REQUEST_TIMED_OUT, "another change of the voters is under way")
        if replica.exposed_high_watermark < 0:
            return self._answer(REQUEST_TIMED_OUT, "the epoch is not committed yet")
        if log.kraft_version < 1:
            if isinstance(request, UpdateVoter) and replica.settings.rules.updates_at_level_0:
                return None
            return self._answer(
                UNSUPPORTED_VERSION,
                f"voters can be changed from kraft.version 1 on, not at {log.kraft_version}",
            )
        if log.voters_offset >= log.high_watermark:
            return self._answer(
                REQUEST_TIMED_OUT, "the last change of the voters is not committed yet"
            )
        return None

    def _begin_adding(self, request_id: int, request: AddVoter) -> VoterAnswer | None:
        if self._replica.log.voters.get(request.voter.id) is not None:
            return self._answer(
                DUPLICATE_VOTER, f"a voter with id {request.voter.id} is one already"
            )
        name = self._replica.settings.endpoints[0].name
        usual = tuple(one for one in request.endpoints if one.name == name)
        if not self._replica.send(request.voter.id, usual, AskVersions()):
            return self._answer(REQUEST_TIMED_OUT, f"{request.voter} has a request already")
        self._change = _Change(request_id, request, self._until_ms)
        return None

    @property
    def _until_ms(self) -> int:
        """When a change that begins now has failed: the timeout in its request is of no effect."""
        return self._replica.now_ms + self._replica.settings.request_timeout_ms

    def on_versions(self, node_id: int, answer: VersionsAnswer | None) -> bool:
        """Adds a voter whose supported kraft.version is known, if it has caught up.

        False if the replica did not answer, or with an error.
        """
        change, replica = self._change, self._replica
        leadership = replica.leadership
        if change is None or leadership is None:
            return True
        request = change.request
        is_expected = change.offset < 0 and request.voter.id == node_id
        if not isinstance(request, AddVoter) or not is_expected:
            return True
        if answer is None or answer.error:
            self._end(REQUEST_TIMED_OUT, f"the voter {request.voter} did not tell its versions")
            return False
        self._add(change, request, leadership, answer.kraft_versions)
        return True

    def _add(
        self,
        change: _Change,
        request: AddVoter,
        leadership: Leadership,
        versions: SupportedRange,
    ) -> None:
        replica = self._replica
        level = replica.log.kraft_version
        if not versions.includes(level):
            self._end(INVALID_REQUEST, f"the voter supports kraft.version {versions}, not {level}")
            return
        progress = leadership.replicas.get(request.voter)
        is_caught_up = (
            progress is not None
            and progress.caught_up_ms >= 0
            and progress.fetched_ms > replica.now_ms - _CAUGHT_UP_MS
        )
        if not is_caught_up:
            self._end(REQUEST_TIMED_OUT, f"the voter {request.voter} has not caught up")
            return
        node = VoterNode(request.voter, request.endpoints, versions)
        change.offset = self._append(replica.log.voters.with_node(node))
        if not request.waits_for_commit:
            self._end(NONE)

    def _begin_removing(self, request_id: int, request: RemoveVoter) -> VoterAnswer | None:
        voters = self._replica.log.voters
        node = voters.get(request.voter.id)
        if node is None or node.key != request.voter:
            return self._answer(VOTER_NOT_FOUND, f"{request.voter} is no voter")
        if len(voters.nodes) == 1:
            return self._answer(VOTER_NOT_FOUND, f"{request.voter} is the last voter")
        self._change = _Change(request_id, request, self._until_ms)
        self._change.offset = self._append(voters.without(request.voter.id))
        return None

    def _update(self, request: UpdateVoter) -> VoterAnswer:
        log = self._replica.log
        if not request.kraft_versions.includes(log.kraft_version):
            return self._answer(
                INVALID_REQUEST,
                f"the voter supports kraft.version {request.kraft_versions},"
                f" not {log.kraft_version}",
            )
        # Before kraft.version 1 no directory is known, and updates are kept nowhere (KIP-1170).
        known = log.voters.get(request.voter.id)
        if known is None or (log.kraft_version > 0 and not known.key.is_matched_by(request.voter)):
            return self._answer(VOTER_NOT_FOUND, f"{request.voter} is no voter")
        if log.kraft_version > 0:
            node = VoterNode(request.voter, request.endpoints, request.kraft_versions)
            self._append(log.voters.with_node(node))
        shows_life = self._replica.settings.rules.updates_show_life
        is_other = request.voter.id != self._replica.me.id
        if self._replica.leadership is not None and is_other and shows_life:
            self._replica.leadership.on_alive(request.voter, log.voters, self._replica.now_ms)
        return self._answer(NONE)

    def _append(self, voters: VoterSet) -> int:
        return self._replica.append_control([(KRAFT_VOTERS, voters.to_record())])

    def on_progress(self) -> None:
        """Answers a change that is committed; a leader that was removed resigns then."""
        replica, change = self._replica, self._change
        if change is not None and 0 <= change.offset < replica.log.high_watermark:
            self._end(NONE)
        voters_offset = replica.log.voters_offset
        if not replica.is_voter and 0 <= voters_offset < replica.log.high_watermark:
            self.must_resign = True

    def on_tick(self) -> None:
        """Ends a change that takes too long; its record, if it is appended, stays."""
        if self._change is not None and self._replica.now_ms >= self._change.until_ms:
            self._end(REQUEST_TIMED_OUT, "the change of the voters was not committed in time")

    def on_lost(self) -> None:
        """Ends the change of a leader that leads no more."""
        self.must_resign = False
        if self._change is not None:
            self._end(NOT_LEADER_OR_FOLLOWER)

    def _end(self, error: int, message: str | None = None) -> None:
        assert self._change is not None  # noqa: S101 - the caller looks
        self._replica.emit(Reply(self._change.request_id, self._answer(error, message)))
        self._change = None

    def _answer(self, error: int, message: str | None = None) -> VoterAnswer:
        return VoterAnswer(error, message, self._replica.view)
