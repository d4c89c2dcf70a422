"""Where our voter differs from Kafka's on purpose: all of it, with the reasons.

Where Kafka ends the process, a history ends too; our voter must have changed nothing that is
durable, or have halted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from featurewatch.reference.kraft.machines.requests import (
    NO_LEADER,
    LeaderView,
    RaftAnswer,
    VersionsAnswer,
)


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


SKIPPED_VOTERS: Final = "voters below the end before a truncation"
"""Where a log is cut off, Kafka continues to read control records where it was
(``KRaftControlRecordStateMachine.nextOffset``), so until a restart it misses voters that are
appended below that. Ours has them; what follows is not compared."""


def without_resigned_leader(
    kafka: list[tuple[int, RaftAnswer | None]], ours: list[tuple[int, RaftAnswer | None]]
) -> list[tuple[int, RaftAnswer | None]]:
    """The replies of Kafka's voter that has resigned, without the leader where ours names none."""
    silent = {number for number, answer in ours if _leader_of(answer) == NO_LEADER}
    return [(number, _without(answer) if number in silent else answer) for number, answer in kafka]


def _leader_of(answer: RaftAnswer | None) -> int | None:
    if answer is None or isinstance(answer, VersionsAnswer):
        return None
    return answer.view.leader_id


def _without(answer: RaftAnswer | None) -> RaftAnswer | None:
    if answer is None or isinstance(answer, VersionsAnswer):
        return answer
    return replace(answer, view=LeaderView(NO_LEADER, answer.view.epoch))
