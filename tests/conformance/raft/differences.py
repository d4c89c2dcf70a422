"""Where our voter differs from Kafka's on purpose: all of it, with the reasons.

Where Kafka ends the process, a history ends too; our voter must have changed nothing that is
durable, or have halted.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from featurewatch.reference.kraft.machines.requests import (
    NO_LEADER,
    LeaderView,
    RaftAnswer,
    VersionsAnswer,
)

ENDS_THE_PROCESS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "another leader": (
            r"IllegalStateException: Received request or response with leader .* inconsistent",
            "a claim that contradicts what is known of an epoch is refused, with a line in the log:"
            " one wrong message should not end a process",
        ),
        "no leader": (
            r"IllegalStateException: Expected to be Follower, but the current state is",
            "an answer to a Fetch with the epoch and without an error, which names no leader or"
            " one whose address is unknown, is ignored: a leader always names itself",
        ),
    }
)
"""By name: what Kafka says when it ends, and why our voter continues."""


def ending_of(fatal: str) -> str:
    """The name of the row that has an error of Kafka's; empty if none has."""
    rows = ENDS_THE_PROCESS.items()
    return next((name for name, (text, _) in rows if re.match(text, fatal)), "")


RESIGNED_LEADER: Final = "a resigned leader"
"""It tells nobody that it still leads its epoch: Kafka names it until the epoch ends, which sends
replicas back to it (``QuorumState.leaderIdOrSentinel`` of ``ResignedState``)."""


FALLING_HIGH_WATERMARK: Final = "a falling high watermark"
"""A leader that resigned and follows takes over a high watermark below its own
(``QuorumState.transitionToResigned`` forgets it). Ours never falls: what is committed stays so."""


def without_resigned_leader(
    replies: list[tuple[int, RaftAnswer | None]], me: int
) -> list[tuple[int, RaftAnswer | None]]:
    """The replies of Kafka's voter that has resigned, as ours gives them."""
    return [(number, _without(answer, me)) for number, answer in replies]


def _without(answer: RaftAnswer | None, me: int) -> RaftAnswer | None:
    if answer is None or isinstance(answer, VersionsAnswer) or answer.view.leader_id != me:
        return answer
    return replace(answer, view=LeaderView(NO_LEADER, answer.view.epoch))
