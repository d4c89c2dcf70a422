"""What a replica sends to others: Fetches, votes, and the begin and the end of its epoch.

The polls of ``KafkaRaftClient``; `elections` has the transitions between states.
"""

from featurewatch.reference.kraft.machines.leadership import Leadership
from featurewatch.reference.kraft.machines.replica import Replica
from featurewatch.reference.kraft.machines.replicas import Endpoint
from featurewatch.reference.kraft.machines.requests import (
    BeginQuorumEpoch,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RaftRequest,
    UpdateVoter,
    Vote,
)
from featurewatch.reference.kraft.machines.states import State


class RequestingReplica(Replica):
    """A replica that sends requests."""

    def _fetch(self) -> None:
        """Sends the leader, or who may know it, the next request of a follower.

        ``pollFollowerAsVoter`` and ``maybeSendFetchToBestNode``.
        """
        if self.is_voter and self._now_ms >= self._update_ms:
            is_done = self._update()
            if is_done:
                return
        if self._is_waiting(self.leader_id):
            self._look_for_leader()
        elif not self._busy:
            self.send(self.leader_id, self._leader_endpoints, self._next_request())

    def _next_request(self) -> RaftRequest:
        if self._download is None:
            return self._fetch_request()
        snapshot, data = self._download
        return FetchSnapshot(
            self.settings.cluster_id,
            self.me,
            self.epoch,
            snapshot,
            len(data),
            self.settings.max_fetch_bytes,
        )

    def _update_request(self) -> UpdateVoter:
        return UpdateVoter(
            self.settings.cluster_id,
            self.epoch,
            self.me,
            self.settings.endpoints,
            self.settings.kraft_versions,
        )

    def _update(self) -> bool:
        """Tells the leader about this voter if it must; True if there is nothing else to do now.

        It is time for that once in a while (``updateVoterSetPeriodTimer``).
        """
        next_ms = self._next_update_ms
        asks = self.settings.rules.asks_leader_each_period
        needs_update = self._needs_update()
        if needs_update or asks:
            request = self._update_request() if needs_update else self._next_request()
            if self.send(self.leader_id, self._leader_endpoints, request) or asks:
                self._update_ms = next_ms
            return True
        self._update_ms = next_ms
        return False

    @property
    def _next_update_ms(self) -> int:
        periods = self.settings.rules.update_period
        return self._now_ms + periods * self.settings.fetch_timeout_ms

    def _needs_update(self) -> bool:
        """Whether the leader has other listeners or versions of this voter (KIP-853)."""
        if self.log.kraft_version == 0:
            return self.settings.rules.updates_at_level_0 and not self._has_updated
        return self.log.voters.get(self.me.id) != self.description

    def _fetch_request(self) -> Fetch:
        return Fetch(
            self.settings.cluster_id,
            self.me,
            self.epoch,
            self.log.end,
            self.log.last_epoch,
            self._known_high_watermark,
            self.settings.fetch_wait_ms,
            self.settings.max_fetch_bytes,
        )

    def _look_for_leader(self) -> None:
        """Asks a replica, whose answer names the leader if it knows one.

        One of the bootstrap servers, else any other voter (``findReadyBootstrapServer``).
        """
        if self._busy:
            return
        known: list[tuple[int, tuple[Endpoint, ...]]] = [
            (-2 - at, (endpoint,)) for at, endpoint in enumerate(self.settings.bootstrap)
        ]
        known = known or [(node.key.id, node.endpoints) for node in self._peers()]
        if known:
            first = self._random.randrange(len(known))
            for node_id, endpoints in known[first:] + known[:first]:
                if not self._is_waiting(node_id):
                    self.send(node_id, endpoints, self._fetch_request())
                    return

    def _is_refused(self) -> bool:
        """Whether those that did not refuse are no majority any more."""
        voters = self.log.voters
        refused = len(self._refused.intersection(voters.ids))
        return refused > len(voters.nodes) - voters.majority

    def _ask_for_votes(self) -> None:
        if self._is_refused() or self._backoff_until_ms is not None:
            return
        for node in self._peers():
            if node.key.id not in self._granted | self._refused:
                self.send(
                    node.key.id,
                    node.endpoints,
                    Vote(
                        self.settings.cluster_id,
                        node.key,
                        self.epoch,
                        self.me,
                        self.log.last_epoch,
                        self.log.end,
                        self.state is State.PROSPECTIVE,
                    ),
                )

    def _send_begin_of_epoch(self, leadership: Leadership) -> None:
        """Tells the voters that do not fetch who leads, or each voter (``LeaderState``)."""
        progress = leadership.voter_progress(self.log.voters)
        silent_ms = self._now_ms - self.settings.fetch_timeout_ms // 2
        for node in self._peers():
            is_silent = progress[node.key.id].fetched_ms <= silent_ms
            if is_silent or not self.settings.rules.begins_with_silent_only:
                self.send(
                    node.key.id,
                    node.endpoints,
                    BeginQuorumEpoch(
                        self.settings.cluster_id,
                        node.key,
                        self.me.id,
                        self.epoch,
                        self.settings.endpoints,
                    ),
                )

    def _send_end_of_epoch(self) -> None:
        for node in self._peers():
            if node.key.id not in self._acknowledged:
                self.send(
                    node.key.id,
                    node.endpoints,
                    EndQuorumEpoch(
                        self.settings.cluster_id,
                        self.me.id,
                        self.epoch,
                        self._successors,
                        (),
                    ),
                )
