"""The states of a replica and the permitted transitions (KIP-595, KIP-996; ``QuorumState``)."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """The state of a replica in its epoch.

    Kafka 4.0 and later have no `VOTED`: there it is an unattached replica that has voted.
    """

    UNATTACHED = "unattached"
    """It knows no leader, or cannot reach the one that it knows, and has not voted."""
    VOTED = "voted"
    """It has voted for another replica."""
    PROSPECTIVE = "prospective"
    """It asks whether a majority would vote for it, and changes nothing by that."""
    CANDIDATE = "candidate"
    """It has voted for itself and asks for votes."""
    LEADER = "leader"
    """A majority voted for it."""
    FOLLOWER = "follower"
    """It fetches from the leader."""
    RESIGNED = "resigned"
    """It was the leader of this epoch, so it may neither vote nor lead in it again."""


_U, _V, _P, _C = State.UNATTACHED, State.VOTED, State.PROSPECTIVE, State.CANDIDATE
_L, _F, _R = State.LEADER, State.FOLLOWER, State.RESIGNED

TRANSITIONS: Final[Mapping[State, Mapping[State, str]]] = MappingProxyType(
    {
        _U: {
            _U: "learns of a higher epoch",
            _V: "votes for a candidate",
            _P: "its election timeout expires",
            _C: "its election timeout expires, without pre-votes",
            _F: "learns who leads this epoch or a higher one",
        },
        _V: {
            _U: "learns of a higher epoch",
            _P: "its election timeout expires",
            _C: "its election timeout expires, without pre-votes",
            _F: "learns who leads this epoch or a higher one",
        },
        _P: {
            _U: "learns of a higher epoch, or is refused and knows no leader",
            _C: "a majority would vote for it, or a voter knows no pre-votes",
            _F: "learns who leads, or is refused and knows the leader",
        },
        _C: {
            _U: "learns of a higher epoch",
            _P: "its election timeout expires",
            _C: "it was refused and has waited, without pre-votes",
            _L: "a majority voted for it",
            _F: "learns who leads this epoch or a higher one",
        },
        _L: {
            _U: "learns of a higher epoch",
            _F: "learns who leads a higher epoch",
            _R: "shuts down, or a majority has not fetched for a while",
        },
        _F: {
            _U: "learns of a higher epoch",
            _P: "its fetch timeout expires",
            _C: "its fetch timeout expires, without pre-votes",
            _F: "learns who leads a higher epoch, or more listeners of its leader",
        },
        _R: {
            _U: "learns of a higher epoch, or its election timeout expires",
            _P: "it is the only voter",
            _C: "its election timeout expires, without pre-votes",
            _F: "learns who leads a higher epoch",
        },
    }
)
"""From each state to each that may follow, and why."""
