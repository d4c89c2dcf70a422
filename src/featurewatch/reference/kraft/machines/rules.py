"""Where the voters of Kafka's releases differ (``KafkaRaftClient``, ``QuorumState``).

Every difference was found by giving the same histories to our voter and to that of each release
(``tests/conformance/raft``); a release that is not in the table was not compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class RaftRules:
    """What a voter of a release line does; the defaults are those of 4.3 and 4.4."""

    has_pre_votes: bool = True
    """It asks for pre-votes before an election (KIP-996).

    Without them a candidate that lost backs off before it tries the next epoch, and a leader that
    resigned becomes a candidate when its timer expires, where others leave the epoch.
    """
    remembers_votes: bool = True
    """A follower still stores for whom it voted in its epoch."""
    begins_with_silent_only: bool = True
    """BeginQuorumEpoch goes to voters that do not fetch, else to every voter."""
    announces_commits: bool = True
    """A Fetch that waits is answered when the high watermark rises (KIP-1166)."""
    updates_at_level_0: bool = True
    """A follower tells the leader its listeners even before kraft.version 1 (KIP-1170)."""
    reads_update_answers: bool = True
    """The leader's answer to an update shows that it is alive, and an error makes it wait."""
    updates_show_life: bool = True
    """A voter's update counts as a Fetch for the check of the leader's quorum."""
    update_period: int = 1
    """Fetch timeouts after which a follower looks whether the leader knows its listeners."""
    asks_leader_each_period: bool = False
    """When it is time to look whether the leader knows it, a follower asks the leader even while
    another replica has its Fetch, and tells its listeners at most once."""
    observers_time_out: bool = False
    """An observer whose leader does not answer for a fetch timeout looks for another one."""


NEWEST: Final = RaftRules()
"""The rules of 4.3 and 4.4."""

_RULES: Final[Mapping[tuple[int, int], RaftRules]] = MappingProxyType(
    {
        (3, 9): RaftRules(
            has_pre_votes=False,
            remembers_votes=False,
            begins_with_silent_only=False,
            announces_commits=False,
            updates_at_level_0=False,
            reads_update_answers=False,
            updates_show_life=False,
            update_period=3,
            asks_leader_each_period=True,
            observers_time_out=True,
        ),
        (4, 3): NEWEST,
        (4, 4): NEWEST,
    }
)


def rules_of(line: tuple[int, int]) -> RaftRules:
    """The rules of a release line, such as ``(4, 3)``.

    Raises:
        KeyError: if its voter was not compared.
    """
    return _RULES[line]
