"""Judges a change of the quorum's voters before it is sent: what the leader does not look at; pure.

The leader refuses some changes itself (``AddVoterHandler``, ``RemoveVoterHandler``). It accepts a
new voter that listens and was caught up once, if it fetched within the last hour, and it does not
look which voters are down: either can leave a quorum that commits nothing any more, not even the
way back.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from featurewatch.controller.kraft.releases import (
    can_unregister_controllers,
    controller_unregistration,
)
from featurewatch.streams.quorum import (
    FETCH_LIMIT_MS,
    QuorumDescription,
    QuorumReplica,
    Tolerance,
    VoterEndpoint,
    directory_text,
)
from featurewatch.streams.types import METADATA_VERSION, ClusterId, NodeId

STATIC_VOTERS: Final = (
    "its configuration sets controller.quorum.voters: replace that by "
    "controller.quorum.bootstrap.servers before its next restart"
)
"""What to do after the change; the leader's log has the voters, so it does not forbid it."""


class Verdict(StrEnum):
    """Whether a change may be sent."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Check(NamedTuple):
    """One precondition: whether it holds, and why, in one line.

    ``by_leader``: the leader of the quorum looks at it too, and refuses in its own words.
    """

    name: str
    verdict: Verdict
    text: str
    by_leader: bool = False

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A controller that is to vote, by its configuration file and its ``meta.properties``.

    ``meta_node_id`` and ``cluster_id`` are those of ``meta.properties``, None if it has none.
    ``has_static_voters``: the configuration sets ``controller.quorum.voters``.
    """

    node_id: NodeId
    directory_id: UUID
    endpoints: tuple[VoterEndpoint, ...]
    meta_node_id: NodeId | None = None
    cluster_id: ClusterId | None = None
    has_static_voters: bool = False


def verdict_of(checks: Iterable[Check]) -> Verdict:
    """No if one check says no, else unknown if one is unknown."""
    found = {check.verdict for check in checks}
    return next((one for one in (Verdict.NO, Verdict.UNKNOWN) if one in found), Verdict.YES)


def checks_of_addition(quorum: QuorumDescription, candidate: Candidate) -> tuple[Check, ...]:
    """The preconditions of a new voter. ``quorum`` may be without its cluster's id."""
    first = _dynamic(quorum), _not_a_voter(quorum, candidate), *_formatted(quorum, candidate)
    if quorum.voter(candidate.node_id) is not None:
        return first
    return (
        *first,
        _listener(quorum, candidate),
        *_observer(quorum, candidate),
        _majority_with(quorum, candidate),
        _configuration(candidate),
    )


def checks_of_removal(
    quorum: QuorumDescription, node_id: int, directory_id: UUID | None
) -> tuple[Check, ...]:
    """The preconditions of the removal of a voter."""
    voter = quorum.voter(node_id)
    if voter is None or voter.directory_id != directory_id:
        return _dynamic(quorum), _no_such_voter(quorum, node_id, directory_id)
    rest = tuple(one for one in quorum.voters if one is not voter)
    return (
        _dynamic(quorum),
        Check("voter", Verdict.YES, f"{voter} votes", by_leader=True),
        _majority_without(quorum, voter, rest),
        _stopped(quorum, voter, rest),
    )


def _dynamic(quorum: QuorumDescription) -> Check:
    level = quorum.kraft_version
    if quorum.is_dynamic:
        return Check("kraft.version", Verdict.YES, "the voters are dynamic", by_leader=True)
    if quorum.is_dynamic is None:
        return Check("kraft.version", Verdict.UNKNOWN, "kraft.version is unknown", by_leader=True)
    return Check(
        "kraft.version",
        Verdict.NO,
        f"kraft.version is {level}, so the voters are those of controller.quorum.voters: finalize "
        "kraft.version 1 first",
        by_leader=True,
    )


def _not_a_voter(quorum: QuorumDescription, candidate: Candidate) -> Check:
    voter = quorum.voter(candidate.node_id)
    if voter is None:
        text = f"controller {candidate.node_id} does not vote yet"
        return Check("voter", Verdict.YES, text, by_leader=True)
    if voter.directory_id == candidate.directory_id:
        text = f"controller {candidate.node_id} is a voter already"
    else:
        text = (
            f"controller {candidate.node_id} votes with directory id "
            f"{directory_text(voter.directory_id)}: if that directory is lost, remove this voter "
            "first"
        )
    return Check("voter", Verdict.NO, text, by_leader=True)


def _formatted(quorum: QuorumDescription, candidate: Candidate) -> Iterator[Check]:
    """Whether ``meta.properties`` belongs to this controller of this cluster."""
    meta = candidate.meta_node_id
    if meta is not None and meta != candidate.node_id:
        text = f"meta.properties is of node {meta}, the configuration of node {candidate.node_id}"
        yield Check("meta.properties", Verdict.NO, text)
    own, cluster = candidate.cluster_id, quorum.cluster_id
    if own is not None and cluster is not None and own != cluster:
        yield Check(
            "cluster", Verdict.NO, f"meta.properties is of cluster {own}, this is {cluster}"
        )


def _listener(quorum: QuorumDescription, candidate: Candidate) -> Check:
    """Whether other voters can reach it: the leader asks it by the name of its own listener."""
    own = {endpoint.listener for endpoint in candidate.endpoints}
    theirs = [endpoint.listener for endpoint in quorum.endpoints.get(quorum.leader_id, ())]
    if not theirs:
        return Check("listener", Verdict.UNKNOWN, "the leader's listeners are unknown")
    if own.isdisjoint(theirs):
        return Check(
            "listener",
            Verdict.NO,
            f"it listens as {', '.join(sorted(own))}, the leader as {', '.join(theirs)}",
        )
    return Check("listener", Verdict.YES, f"it listens as {', '.join(sorted(own))}")


def _observer(quorum: QuorumDescription, candidate: Candidate) -> Iterator[Check]:
    """Whether it runs with this directory, and how far it is behind."""
    replicas = [one for one in quorum.observers if one.node_id == candidate.node_id]
    found = next((one for one in replicas if one.directory_id == candidate.directory_id), None)
    if found is None:
        # Of an observer without directory id nothing is known but that its release is old.
        others = ", ".join(directory_text(one.directory_id) for one in replicas)
        if others:
            text = (
                f"the controller {candidate.node_id} that fetches has directory id {others}, "
                f"meta.properties here has {directory_text(candidate.directory_id)}"
            )
        else:
            text = (
                f"controller {candidate.node_id} does not fetch from the leader: start it first, "
                "with controller.quorum.bootstrap.servers"
            )
        yield Check("observer", Verdict.NO, text, by_leader=not others)
        return
    if not quorum.has_times:
        yield Check("observer", Verdict.UNKNOWN, "the leader does not report when it fetched")
        return
    silence_ms, behind_ms = quorum.silence_ms(found), quorum.behind_ms(found)
    if silence_ms is None or silence_ms > FETCH_LIMIT_MS:
        last = "never" if silence_ms is None else f"{_seconds(silence_ms)} ago"
        text = (
            f"controller {found.node_id} last fetched {last}: it is stopped or cut off, and as a "
            "voter it would count"
        )
        yield Check("observer", Verdict.NO, text)
        return
    yield Check("observer", Verdict.YES, f"controller {found.node_id} fetches from the leader")
    lag = quorum.lag(found)
    if lag and (behind_ms is None or behind_ms > FETCH_LIMIT_MS):
        last = "never" if behind_ms is None else f"{_seconds(behind_ms)} ago"
        text = (
            f"it is {lag} records behind, and was last caught up {last}: wait until it has caught "
            "up"
        )
        yield Check("lag", Verdict.NO, text, by_leader=behind_ms is None)
    else:
        yield Check("lag", Verdict.YES, f"it is {lag} records behind")


def _majority_with(quorum: QuorumDescription, candidate: Candidate) -> Check:
    """Whether a majority of the voters fetches once the candidate is one."""
    if not quorum.has_times:
        return Check("majority", Verdict.UNKNOWN, "the leader does not report who fetches")
    observer = next(
        (
            one
            for one in quorum.observers
            if (one.node_id, one.directory_id) == (candidate.node_id, candidate.directory_id)
        ),
        QuorumReplica(candidate.node_id, candidate.directory_id, -1, None, None),
    )
    others = (one for one in quorum.voters if one.node_id != candidate.node_id)
    return _majority(quorum.tolerance, quorum.tolerance_of((*others, observer)))


def _majority_without(
    quorum: QuorumDescription, voter: QuorumReplica, rest: tuple[QuorumReplica, ...]
) -> Check:
    if not rest:
        return Check(
            "majority", Verdict.NO, f"{voter} is the only voter: add another first", by_leader=True
        )
    if not quorum.has_times:
        return Check("majority", Verdict.UNKNOWN, "the leader does not report who fetches")
    return _majority(quorum.tolerance, quorum.tolerance_of(rest))


def _majority(before: Tolerance, after: Tolerance) -> Check:
    if after.has_majority:
        change = f"failures that the quorum survives: {before.may_fail} now, {after.may_fail} then"
        return Check("majority", Verdict.YES, f"afterwards {after}; {change}")
    return Check(
        "majority",
        Verdict.NO,
        f"afterwards {after}: nothing could be committed, not even the way back; start the voters "
        "that do not fetch first",
    )


def _stopped(
    quorum: QuorumDescription, voter: QuorumReplica, rest: tuple[QuorumReplica, ...]
) -> Check:
    """Whether the voter is shut down, where the others continue without it.

    A running controller may stand for election until it has read the change, and one with
    ``controller.quorum.auto.join.enable`` joins again (KAFKA-19850). Where the others are no
    majority of the current voters, as of two, it has to run until it is removed.
    """
    alone = sum(map(quorum.is_fetching, rest)) >= quorum.tolerance.majority
    runs = quorum.is_fetching(voter)
    if not quorum.has_times:
        return Check("stopped", Verdict.UNKNOWN, "the leader does not report who fetches")
    if not alone:
        text = (
            f"the others are no majority without {voter}: it has to run until it is removed; shut "
            "it down right after"
        )
        return Check("stopped", Verdict.YES, text)
    if runs:
        role = "is the active controller" if voter.node_id == quorum.leader_id else "runs"
        return Check("stopped", Verdict.NO, f"{voter} {role}: shut it down first")
    return Check("stopped", Verdict.YES, f"{voter} is shut down")


def check_of_unregistration(quorum: QuorumDescription, node_id: int) -> Check:
    """Whether the registration of a removed voter can be removed too (KIP-1312).

    The controller does not look whether it runs: one that does registers again.
    """
    level, first = quorum.metadata_version, controller_unregistration()
    name = "registration"
    if level is None or first is None:
        return Check(name, Verdict.UNKNOWN, f"the finalized {METADATA_VERSION} is not known")
    if not can_unregister_controllers(level):
        text = f"removing it needs {METADATA_VERSION} {first.level} ({first.name}), not {level}"
        return Check(name, Verdict.NO, text)
    voter = quorum.voter(node_id)
    if voter is not None and not quorum.has_times:
        return Check(name, Verdict.UNKNOWN, "the leader does not report who fetches")
    if voter is not None and quorum.is_fetching(voter):
        text = f"{voter} runs and would register again: unregister it when it is shut down"
        return Check(name, Verdict.NO, text)
    return Check(name, Verdict.YES, "it can be removed, and the controller is shut down")


def _no_such_voter(quorum: QuorumDescription, node_id: int, directory_id: UUID | None) -> Check:
    voter = quorum.voter(node_id)
    if voter is not None:
        text = (
            f"controller {node_id} votes with directory id {directory_text(voter.directory_id)}, "
            f"not {directory_text(directory_id)}"
        )
    elif any(one.node_id == node_id for one in quorum.observers):
        text = f"controller {node_id} is an observer and does not vote"
    else:
        votes = ", ".join(str(one.node_id) for one in quorum.voters)
        text = f"controller {node_id} does not vote; the voters are {votes}"
    return Check("voter", Verdict.NO, text, by_leader=True)


def _configuration(candidate: Candidate) -> Check:
    text = STATIC_VOTERS if candidate.has_static_voters else "its configuration names no voters"
    return Check("configuration", Verdict.YES, text)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"
