"""Tracks what changes of the metadata quorum between two descriptions of it. Pure.

The active controller is asked every few seconds, and each answer has other offsets and times. What
is published is who votes and who observes, and how each of them follows; exact lags and times are
published with a change, and once a minute while a replica is behind.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from featurewatch.common.text import quoted
from featurewatch.streams.events import QuorumStatus, ReplicaState, ReplicaStatus
from featurewatch.streams.fields import INT64_MAX
from featurewatch.streams.quorum import (
    QuorumDescription,
    QuorumReplica,
    VoterEndpoint,
    directory_text,
)
from featurewatch.streams.types import LATEST_MS, ClusterId

CAUGHT_UP_LIMIT_MS: Final = 10_000
"""A replica that fetches is behind if it has not had the whole log for this long."""

REFRESH_MS: Final = 60_000
"""Between two messages that differ in lags only."""

FAILURES_BEFORE_UNKNOWN: Final = 2
"""One failure is normal while another controller is elected."""

MAX_REPLICAS: Final = 200
"""Voters, and observers, that are published; more than any real quorum has."""

_MAX_ENDPOINTS: Final = 16


@dataclass(slots=True)
class QuorumTracker:
    """The quorum of one cluster; `on_description` and `on_failure` return what to publish."""

    cluster: ClusterId
    _last: QuorumStatus | None = None
    _failures: int = 0

    def on_description(
        self,
        described: QuorumDescription,
        brokers: Collection[int],
        controllers: Collection[int],
        now_ms: int,
    ) -> list[QuorumStatus]:
        """Takes a description; ``brokers`` and ``controllers`` are the ids of those known.

        A broker observes the quorum for itself. One that is known to be a controller too may be
        meant to vote, so it is published.
        """
        count = len(described.voters)
        if count > MAX_REPLICAS:
            detail = f"it has {count} voters, more than the {MAX_REPLICAS} that are followed"
            return self.on_failure(detail, now_ms)
        is_known = {*controllers}.__contains__
        observers = [
            one
            for one in described.observers
            if is_known(one.node_id) or one.node_id not in brokers
        ]
        if len(observers) > MAX_REPLICAS:
            observers = [one for one in observers if is_known(one.node_id)][:MAX_REPLICAS]
        self._failures = 0
        status = QuorumStatus(
            cluster=self.cluster,
            leader_id=described.leader_id,
            leader_epoch=described.leader_epoch,
            voters=_replicas(described, described.voters),
            observers=_replicas(described, observers),
            detail="",
            seen_ms=now_ms,
        )
        if self._last is not None and not _differs(self._last, status):
            return []
        self._last = status
        return [status]

    def on_failure(self, detail: str, now_ms: int) -> list[QuorumStatus]:
        """Takes the reason why there is no description, in one line.

        Nothing is published of a quorum that was never described.
        """
        self._failures += 1
        last = self._last
        if last is None or last.detail or self._failures < FAILURES_BEFORE_UNKNOWN:
            return []
        self._last = replace(last, detail=detail, seen_ms=now_ms)
        return [self._last]

    def republish(self, now_ms: int) -> list[QuorumStatus]:
        """Returns the newest description again, if there is one."""
        if self._last is None:
            return []
        self._last = replace(self._last, seen_ms=now_ms)
        return [self._last]

    def withdraw(self, detail: str, now_ms: int) -> list[QuorumStatus]:
        """Drops the description; ``detail`` is why it does not hold."""
        if self._last is None:
            return []
        self._last = None
        return [QuorumStatus(self.cluster, -1, -1, (), (), detail, now_ms)]


def _differs(before: QuorumStatus, after: QuorumStatus) -> bool:
    if _lasting(before) != _lasting(after):
        return True
    replicas = (*after.voters, *after.observers)
    is_behind = any(one.state is ReplicaState.BEHIND for one in replicas)
    is_due = after.seen_ms - before.seen_ms >= REFRESH_MS
    return is_behind and is_due and replicas != (*before.voters, *before.observers)


def _lasting(status: QuorumStatus) -> QuorumStatus:
    """A description without what each answer has another of."""
    voters, observers = (
        tuple(replace(one, lag=-1, since_ms=-1) for one in replicas)
        for replicas in (status.voters, status.observers)
    )
    return replace(status, voters=voters, observers=observers, seen_ms=0)


def _replicas(
    described: QuorumDescription, replicas: Iterable[QuorumReplica]
) -> tuple[ReplicaStatus, ...]:
    found = [_replica(described, one) for one in replicas if one.node_id >= 0]
    return tuple(sorted(found, key=lambda one: (one.node_id, one.directory_id)))


def _replica(described: QuorumDescription, replica: QuorumReplica) -> ReplicaStatus:
    state, since_ms = _state(described, replica)
    lag = described.lag(replica)
    if state is ReplicaState.FOLLOWING:
        lag = 0
    endpoints = described.endpoints.get(replica.node_id, ())
    is_voter = replica in described.voters
    return ReplicaStatus(
        node_id=replica.node_id,
        directory_id=directory_text(replica.directory_id) if replica.directory_id else "",
        state=state,
        lag=-1 if lag is None else min(max(lag, 0), INT64_MAX),
        since_ms=since_ms if since_ms is not None and 0 <= since_ms <= LATEST_MS else -1,
        endpoints=tuple(map(_endpoint, endpoints[:_MAX_ENDPOINTS])) if is_voter else (),
    )


def _state(described: QuorumDescription, replica: QuorumReplica) -> tuple[ReplicaState, int | None]:
    """How a replica follows, and since when it does not."""
    if replica.node_id == described.leader_id and replica in described.voters:
        return ReplicaState.FOLLOWING, None
    if not described.has_times:
        return ReplicaState.UNKNOWN, None
    if not described.is_fetching(replica):
        return ReplicaState.SILENT, replica.last_fetch_ms
    behind_ms = described.behind_ms(replica)
    if behind_ms is None or behind_ms > CAUGHT_UP_LIMIT_MS:
        return ReplicaState.BEHIND, replica.last_caught_up_ms
    return ReplicaState.FOLLOWING, None


def _endpoint(endpoint: VoterEndpoint) -> str:
    return quoted(str(endpoint))
