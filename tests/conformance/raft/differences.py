"""Where our voter differs from Kafka's on purpose: all of it, with the reasons.

Where Kafka ends the process, a history ends too; our voter must have changed nothing that is
durable, or have halted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from featurewatch.reference.kraft.machines.requests import NO_LEADER, LeaderView


@dataclass(frozen=True, slots=True)
class Ending:
    """Where Kafka ends the process: what it says, as a pattern, and why our voter does not."""

    text: str
    reason: str
    continues: bool = False
    """Whether our voter does what Kafka meant to do."""


ENDS_THE_PROCESS: Final[Mapping[str, Ending]] = MappingProxyType(
    {
        "another leader": Ending(
            r"IllegalStateException: Received request or response with leader .* inconsistent",
            "a claim that contradicts what is known of an epoch is refused, with a line in the log:"
            " one wrong message should not end a process",
        ),
        "lost records": Ending(
            r"KafkaException: The leader requested truncation to offset"
            r"|IllegalArgumentException: Attempt to truncate to offset",
            "both end, with different texts",
        ),
        "no leader": Ending(
            r"IllegalStateException: Expected to be Follower, but the current state is",
            "an answer to a Fetch with the epoch and without an error, which names no leader or"
            " one whose address is unknown, is ignored: a leader always names itself",
        ),
        "a leader without an address": Ending(
            r"IllegalArgumentException: Unknown leader endpoints",
            "a leader that is no voter, in a version that does not tell where it listens: ours"
            " takes over the epoch and looks for the leader",
            continues=True,
        ),
        "another part of a snapshot": Ending(
            r"IllegalStateException: Received (unexpected )?fetch snapshot response",
            "ours gives the download up, and asks again",
        ),
        "a snapshot that is not newer": Ending(
            r"IllegalStateException: Full log truncation expected but didn't happen"
            r"|IllegalArgumentException: Non-monotonic update of high watermark",
            "ours ignores a snapshot of what it has",
        ),
        "a snapshot beyond the log": Ending(
            r"IllegalStateException: Log doesn't have a last fetch epoch and there is a snapshot",
            "both end where a log is cut off below a snapshot, with different texts",
        ),
        "an answer of a removed voter": Ending(
            r"IllegalArgumentException: Unexpected acknowledgement from non-voter",
            "it is of no use to the leader, and ours ignores it",
        ),
        "records that are there": Ending(
            r"IllegalStateException: Unexpected offset in append",
            "a follower of 3.9 may have one Fetch at the leader and one at another replica, and"
            " ends when the second answer has records again; ours ignores what is about another"
            " position",
        ),
        "the only voter starts again": Ending(
            r"IllegalStateException: Cannot transition to Candidate since .* already a Leader",
            "Kafka 3.9 cannot start as the only voter if it has voted for itself and not led yet;"
            " 4.3 can",
            continues=True,
        ),
    }
)


def ending_of(fatal: str) -> str:
    """The name of the row that has an error of Kafka's; empty if none has."""
    rows = ENDS_THE_PROCESS.items()
    return next((name for name, row in rows if re.match(row.text, fatal)), "")


RESIGNED_LEADER: Final = "a resigned leader"
"""It tells nobody that it still leads its epoch: Kafka names it until the epoch ends, which sends
replicas back to it (``QuorumState.leaderIdOrSentinel`` of ``ResignedState``)."""


FALLING_HIGH_WATERMARK: Final = "a falling high watermark"
"""A leader that resigned and follows takes over a high watermark below its own
(``QuorumState.transitionToResigned`` forgets it). Ours never falls: what is committed stays so."""


BELOW_A_SNAPSHOT: Final = "cut off below a snapshot"
"""A leader wants a log cut off below a snapshot of it, which is of committed records: a majority
has lost them. Kafka remembers no high watermark over a restart, and cuts them off; ours ends."""


REMOVED_LEADER: Final = "a removed leader resigns later"
"""Kafka's leader that was removed resigns only if that is committed within the request timeout, and
leads on if it takes longer (``RemoveVoterHandler.highWatermarkUpdated``); ours resigns then."""


REMOVED_CANDIDATE: Final = "a removed voter asks for votes"
"""A voter whose removal is not committed asks for votes, lest the quorum get stuck where every
other voter is behind it (section 4.2.2 of Ongaro's thesis on Raft); Kafka's only watches."""


SKIPPED_VOTERS: Final = "voters below the end before a truncation"
"""Where a log is cut off, Kafka continues to read control records where it was
(``KRaftControlRecordStateMachine.nextOffset``), so until a restart it misses voters that are
appended below that. Ours has them; what follows is not compared."""


def removal_of(ours: Mapping[str, Any], kafka: Mapping[str, Any]) -> str:
    """The name of the difference that a removed voter makes after a step; empty if none does."""
    if not ours["is_removed"]:
        return ""
    match kafka["state"], ours["state"]:
        case ("leader", "resigned"):
            return REMOVED_LEADER
        case ("unattached" | "follower" | "resigned", "prospective" | "candidate"):
            return REMOVED_CANDIDATE
    return ""


Replies = list[tuple[int, Any]]
"""The numbers of requests, and their answers as they are compared."""


def without_resigned_leader(kafka: Replies, ours: Replies) -> Replies:
    """The replies of Kafka's voter that has resigned, without the leader where ours names none."""
    silent = {number for number, answer in ours if _leader_of(answer) == NO_LEADER}
    return [(number, _without(answer) if number in silent else answer) for number, answer in kafka]


def _leader_of(answer: Any) -> int | None:
    view: LeaderView | None = getattr(answer, "view", None)
    return None if view is None else view.leader_id


def _without(answer: Any) -> Any:
    if not hasattr(answer, "view"):
        return answer
    return replace(answer, view=LeaderView(NO_LEADER, answer.view.epoch))
