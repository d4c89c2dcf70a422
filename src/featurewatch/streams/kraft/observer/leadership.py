"""Finds the leader of the quorum by the responses of its controllers. Pure.

Of each response this decides whether it is the leader's own (Kafka:
``KafkaRaftClient.maybeHandleCommonResponse``), and keeps the reason if the log cannot be read.
"""

from collections.abc import Sequence

from featurewatch.kafka.address import Address
from featurewatch.streams.kraft.observer import requests
from featurewatch.streams.kraft.observer.controllers import LeaderLocator
from featurewatch.streams.kraft.observer.failures import FailureRank, QuorumFailures
from featurewatch.streams.kraft.observer.requests import (
    FetchSnapshotResponse,
    ObserverRequest,
    ObserverResponse,
)
from featurewatch.streams.kraft.observer.states import ResponseKind
from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import LeaderAndEpoch


class Leadership:
    """The leader as far as it is known, the address of the next request, and the failures.

    ``cluster`` is for messages. ``rebuilt_after_ms``: the cluster was recreated if all controllers
    had only an older epoch for this many milliseconds.
    """

    def __init__(
        self, bootstrap: Sequence[Address], epoch: int, cluster: str, rebuilt_after_ms: int
    ) -> None:
        self._controllers = LeaderLocator(bootstrap, epoch)
        self._failures = QuorumFailures()
        self._cluster = cluster
        self._rebuilt_after_ms = rebuilt_after_ms
        self._stale_since_ms: int | None = None

    @property
    def leader(self) -> LeaderAndEpoch:
        """The leader of the newest known epoch."""
        return self._controllers.leader

    @property
    def stall_reason(self) -> StallReason | None:
        """Why nothing can be read now."""
        return self._failures.worst

    def next_address(self) -> Address | None:
        """The address of the next request; None: all were tried, and a new round is due."""
        return self._controllers.next_address()

    def learn(self, addresses: Sequence[Address]) -> None:
        """Use these addresses beside the configured ones."""
        self._controllers.learn(addresses)

    def new_round(self) -> None:
        """Every address may be tried again."""
        self._controllers.new_round()

    def on_failure(
        self, address: Address, reason: str, now_ms: int, rank: FailureRank = FailureRank.ANSWERED
    ) -> None:
        """There was no usable response from an address."""
        self._controllers.failed(address)
        self._failures.record(address, reason, now_ms, rank)

    def locate(self, address: Address) -> None:
        """The leader responded from this address."""
        self._controllers.confirm_leader(address)

    def confirm(self, address: Address) -> None:
        """The leader's response could be used: all failures are over."""
        self.locate(address)
        self._failures.clear()

    def on_response(
        self, request: ObserverRequest, response: ObserverResponse, now_ms: int
    ) -> ResponseKind | None:
        """The outcome of the response for leadership; None: the leader itself responded."""
        self._controllers.update_endpoints(response.endpoints)
        error = response.error
        is_snapshot_gone = isinstance(response, FetchSnapshotResponse) and error in (
            requests.UNKNOWN_SERVER_ERROR,
            requests.SNAPSHOT_NOT_FOUND,
            requests.POSITION_OUT_OF_RANGE,
        )
        # Released controllers fail on every error of FetchSnapshot and respond with -1 and no
        # leader: the response to the next Fetch has the cause.
        if is_snapshot_gone:
            message = f"{request.to} no longer has the snapshot that it named"
            self._failures.record(request.to, message, now_ms)
            return ResponseKind.SNAPSHOT_NOT_FOUND
        if error in requests.ADVICE:
            self._controllers.mark_tried(request.to)
            advice = requests.ADVICE[error].format(cluster=self._cluster)
            self._failures.record(
                request.to, f"{request.to} {advice}", now_ms, FailureRank.PERMANENT
            )
            return ResponseKind.REFUSED
        named = response.leader
        # FetchSnapshot omits the leader where it is (0, 0), and epochs begin at 1.
        is_given = named.epoch > 0
        is_older = is_given and named.epoch < request.epoch
        if error == requests.UNKNOWN_LEADER_EPOCH or is_older:
            self._controllers.mark_behind(request.to)
            message = f"{request.to} is behind: it knows no epoch {request.epoch}"
            self._failures.record(request.to, message, now_ms, FailureRank.BEHIND)
            if self._stale_since_ms is None:
                self._stale_since_ms = now_ms
            return ResponseKind.BEHIND
        self._stale_since_ms = None
        is_new = is_given and self._controllers.update_leader(named)
        if is_new:
            self._failures.new_epoch()
        if is_new and (error or named.epoch != request.epoch):
            if named.id < 0:
                self._failures.record(request.to, self._not_leading, now_ms)
            return ResponseKind.NEW_LEADER
        if error == requests.NONE and is_given and named.id != self.leader.id:
            self._controllers.mark_tried(request.to)
            message = (
                f"{request.to} names {named.id} as leader of epoch {named.epoch}, others "
                f"{self.leader.id}: two clusters under one id?"
            )
            self._failures.record(request.to, message, now_ms, FailureRank.PERMANENT)
            return ResponseKind.REFUSED
        if error == requests.NONE:
            return None
        self._controllers.not_leader(request.to)
        if error in (requests.NOT_LEADER_OR_FOLLOWER, requests.FENCED_LEADER_EPOCH):
            self._failures.record(request.to, self._not_leading, now_ms)
        else:
            self._failures.record(request.to, f"{request.to} answered with error {error}", now_ms)
        return ResponseKind.NOT_LEADER

    def has_log_restarted(self, now_ms: int) -> bool:
        """Whether no controller knows our epoch any more; the next leader may have any epoch."""
        if self._stale_since_ms is None or not self._controllers.all_behind:
            return False
        if now_ms - self._stale_since_ms < self._rebuilt_after_ms:
            return False
        self._controllers = self._controllers.reset()
        self._stale_since_ms = None
        return True

    @property
    def _not_leading(self) -> str:
        """Why no leader responds: a controller names another one as leader, or none."""
        if self.leader.id < 0:
            # Without the epoch: a controller that is alone may start a new one every second.
            return "no leader is elected: are most controllers up?"
        address = self._controllers.leader_address
        at = f" {address}" if address else ""
        # From Kafka 4.0 on controllers name a dead leader for as long as there is no majority.
        return (
            f"controller {self.leader.id} is named as leader but cannot be reached at its "
            f"address{at}: can it be reached from here, and are most controllers up?"
        )
