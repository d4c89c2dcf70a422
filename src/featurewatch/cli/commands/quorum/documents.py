"""JSON output of the commands of ``quorum``."""

from collections.abc import Iterable
from typing import Any

from featurewatch.admin.quorum.checks import Check, verdict_of
from featurewatch.cli.kafka_tools.quorum import lag_time_ms
from featurewatch.streams.quorum import (
    QuorumDescription,
    QuorumReplica,
    VoterEndpoint,
    directory_text,
)


def quorum_document(quorum: QuorumDescription) -> dict[str, Any]:
    """The quorum, each replica, and what the quorum can lose.

    Times are milliseconds since 1970 by the leader's clock; what is not known is null.
    """
    leader, tolerance = quorum.leader, quorum.tolerance
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset, default=None)
    kinds = {True: "dynamic", False: "static", None: "unknown"}
    return {
        "cluster_id": quorum.cluster_id,
        "active_controller": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_follower_lag": None if slowest is None else quorum.lag(slowest),
        "max_follower_lag_ms": None
        if leader is None or slowest is None
        else lag_time_ms(leader, slowest),
        "kraft_version": quorum.kraft_version,
        "voters_are": kinds[quorum.is_dynamic],
        "majority": tolerance.majority,
        "fetching_voters": tolerance.fetching if quorum.has_times else None,
        "may_fail": tolerance.may_fail if quorum.has_times else None,
        "voters": [_replica(quorum, voter) for voter in quorum.voters],
        "observers": [_replica(quorum, observer) for observer in quorum.observers],
    }


def change_document(
    action: str,
    node_id: int,
    directory: str,
    endpoints: Iterable[VoterEndpoint],
    checks: Iterable[Check],
    *,
    is_sent: bool,
) -> dict[str, Any]:
    """A change of the voters: the checks before it, and whether it was sent."""
    checks = tuple(checks)
    return {
        "action": action,
        "controller": {
            "id": node_id,
            "directory_id": directory,
            "endpoints": list(map(str, endpoints)),
        },
        "verdict": str(verdict_of(checks)),
        "checks": [
            {"name": check.name, "verdict": str(check.verdict), "text": check.text}
            for check in checks
        ],
        "sent": is_sent,
    }


def _replica(quorum: QuorumDescription, replica: QuorumReplica) -> dict[str, Any]:
    has_directory = replica.directory_id is not None
    return {
        "id": replica.node_id,
        "directory_id": directory_text(replica.directory_id) if has_directory else None,
        "endpoints": list(map(str, quorum.endpoints.get(replica.node_id, ()))),
        "is_active": replica.node_id == quorum.leader_id,
        "is_fetching": quorum.is_fetching(replica) if quorum.has_times else None,
        "log_end_offset": replica.log_end_offset,
        "lag": quorum.lag(replica),
        "last_fetch_ms": replica.last_fetch_ms,
        "last_caught_up_ms": replica.last_caught_up_ms,
    }
