"""The texts of ``kafka-metadata-quorum`` (``MetadataQuorumCommand``) of 3.9 and of 4.3; pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.streams.quorum import (
    QuorumDescription,
    QuorumReplica,
    VoterEndpoint,
    directory_text,
)

BOTH_VIEWS: Final = (
    "Only one of --status or --replication should be specified with describe sub-command"
)
NO_VIEW: Final = "One of --status or --replication must be specified with describe sub-command"
HUMAN_STATUS: Final = "The option --human-readable is only supported along with --replication"

_COLUMNS: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


def status_lines(quorum: QuorumDescription, compat: Compat) -> Iterator[str]:
    """The lines of ``describe --status``; raises `KafkaToolError`."""
    leader = _leader(quorum)
    slowest = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    values = {
        "ClusterId": quorum.cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": lag_time_ms(leader, slowest),
        "CurrentVoters": _replicas(quorum, quorum.voters, compat),
        "CurrentObservers": _replicas(quorum, quorum.observers, compat),
    }
    return (f"{name + ':':<24}{value}" for name, value in values.items())


def lag_time_ms(leader: QuorumReplica, slowest: QuorumReplica) -> int:
    """How long the voter with the shortest log is behind, -1 where that is not known."""
    if slowest is leader:
        return 0
    if leader.last_caught_up_ms is None or slowest.last_caught_up_ms is None:
        return -1
    return leader.last_caught_up_ms - slowest.last_caught_up_ms


def replication_lines(quorum: QuorumDescription, now_s: float | None = None) -> Iterator[str]:
    """The lines of ``describe --replication``, with ``--human-readable`` of ``now_s``.

    ``now_s`` are seconds since 1970 by this machine's clock, from which times are shown as ages.

    Raises:
        KafkaToolError: The leader is not a voter, or a time is later than ``now_s``.
    """
    leader = _leader(quorum)
    followers = (voter for voter in quorum.voters if voter.node_id != quorum.leader_id)
    rows = [
        _COLUMNS,
        _row(leader, leader, "Leader", now_s),
        *(_row(leader, follower, "Follower", now_s) for follower in followers),
        *(_row(leader, observer, "Observer", now_s) for observer in quorum.observers),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "".join(f"{value:<{width}}\t" for value, width in zip(row, widths, strict=True))


def added(
    node_id: int, directory: str, endpoints: Iterable[VoterEndpoint], *, dry_run: bool
) -> str:
    """The line after a voter was added, or would have been."""
    done = "DRY RUN of adding" if dry_run else "Added"
    listed = ", ".join(map(str, endpoints))
    return f"{done} controller {node_id} with directory id {directory} and endpoints: {listed}"


def removed(node_id: int, directory: str, *, dry_run: bool) -> str:
    """The line after a voter was removed, or would have been; the tool prints two spaces."""
    done = "DRY RUN of removing" if dry_run else "Removed"
    return f"{done}  KRaft controller {node_id} with directory id {directory}"


def _leader(quorum: QuorumDescription) -> QuorumReplica:
    leader = quorum.leader
    if leader is None:
        raise KafkaToolError(
            "No value present",
            advice=f"the active controller {quorum.leader_id} is not a voter: another is elected "
            "soon",
        )
    return leader


def _row(
    leader: QuorumReplica, replica: QuorumReplica, status: str, now_s: float | None
) -> tuple[str, ...]:
    return (
        str(replica.node_id),
        directory_text(replica.directory_id),
        str(replica.log_end_offset),
        str(leader.log_end_offset - replica.log_end_offset),
        _time(replica.last_fetch_ms, now_s, "last fetch"),
        _time(replica.last_caught_up_ms, now_s, "last caught up"),
        status,
    )


def _time(time_ms: int | None, now_s: float | None, name: str) -> str:
    if time_ms is None:
        return "-1"
    if now_s is None:
        return str(time_ms)
    now_ms = int(now_s * 1000)
    if not 0 < time_ms <= now_ms:
        raise KafkaToolError(
            "Error while computing relative time, possible drift in system clock.\n"
            f"Current timestamp is {now_ms}, {name} timestamp is {time_ms}"
        )
    return f"{now_ms - time_ms} ms ago"


def _replicas(quorum: QuorumDescription, replicas: Iterable[QuorumReplica], compat: Compat) -> str:
    return f"[{', '.join(_replica(quorum, replica, compat) for replica in replicas)}]"


def _replica(quorum: QuorumDescription, replica: QuorumReplica, compat: Compat) -> str:
    parts = [f'"id": {replica.node_id}']
    if replica.directory_id is not None:
        parts.append(f'"directoryId": "{directory_text(replica.directory_id)}"')
    elif compat is Compat.V3_9:
        parts.append('"directoryId": null')
    if endpoints := quorum.endpoints.get(replica.node_id):
        listed = ", ".join(f'"{endpoint}"' for endpoint in endpoints)
        parts.append(f'"endpoints": [{listed}]')
    return f"{{{', '.join(parts)}}}"
