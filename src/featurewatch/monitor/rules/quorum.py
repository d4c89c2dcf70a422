"""Rules about the metadata quorum: who votes, and what it can lose (KIP-853)."""

from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.common.text import enumeration
from featurewatch.monitor.quorum.report import FETCHING, quorum_report
from featurewatch.monitor.quorum.timers import QuorumCondition, QuorumSince, overdue
from featurewatch.monitor.rules.rule import (
    BY_ACKNOWLEDGEMENT,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
)
from featurewatch.streams.outputs import Severity
from featurewatch.streams.types import NodeId

_NAMED: Final = 10

_AFTER_AN_HOUR: Final = (
    f"after an hour, or when the controller is removed from the voters{BY_ACKNOWLEDGEMENT}"
)
_DELAYED: Final = " for longer than `readiness.quorum_after_s`"


def _since(
    context: RuleContext, condition: QuorumCondition, limit_ms: int
) -> Mapping[NodeId, QuorumSince]:
    return overdue(context.times.quorum, condition, context.now_ms, limit_ms)


def _controllers(ids: Iterable[int]) -> str:
    listed = sorted(ids)
    shown = enumeration(map(str, listed[:_NAMED]))
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return f"controller{'' if len(listed) == 1 else 's'} {shown}{more}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _waits(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    found = _since(context, QuorumCondition.WAITS, context.limits.quorum_ms)
    if not found:
        return
    is_static = quorum_report(context.image).voters_are == "static"
    remedy = (
        "the voters are static, so finalize kraft.version 1 first, or name it in "
        "controller.quorum.voters of every controller"
        if is_static
        else "add it with `featurewatch quorum add-controller`, or stop it"
    )
    verb = "follows" if len(found) == 1 else "follow"
    does = "does" if len(found) == 1 else "do"
    summary = (
        f"{_capital(_controllers(found))} {verb} the metadata log and {does} not vote: {remedy}."
    )
    yield Finding(summary, Severity.WARNING, {"controllers": sorted(found)})


def _rejoined(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    found = _since(context, QuorumCondition.REJOINED, 0)
    if not found:
        return
    verb = "was" if len(found) == 1 else "were"
    votes = "votes" if len(found) == 1 else "vote"
    summary = (
        f"{_capital(_controllers(found))} {verb} removed from the voters within the last hour and "
        f"{votes} again. A controller with controller.quorum.auto.join.enable that still runs adds "
        "itself: if this was not intended, shut it down before it is removed."
    )
    yield Finding(summary, Severity.WARNING, _directories(found))


def _directory(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    waiting = _since(context, QuorumCondition.OTHER_DIRECTORY, context.limits.quorum_ms)
    replaced = _since(context, QuorumCondition.REPLACED, 0)
    if not waiting and not replaced:
        return
    parts = []
    if waiting:
        verb = "fetches" if len(waiting) == 1 else "fetch"
        parts.append(
            f"{_capital(_controllers(waiting))} {verb} with another directory id than the voter "
            "with this id has, so that voter does not return: remove it with the old directory id, "
            "and add the controller with the new one."
        )
    if replaced:
        verb = "votes" if len(replaced) == 1 else "vote"
        parts.append(
            f"{_capital(_controllers(replaced))} {verb} with another directory id than before: its "
            "metadata log began again from nothing. If nobody replaced the disk or formatted it, "
            "find out why the old log is lost."
        )
    evidence = {
        "fetching": _directories(waiting)["directories"],
        "before": _directories(replaced)["directories"],
    }
    yield Finding(" ".join(parts), Severity.WARNING, evidence)


def _at_risk(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    if not _since(context, QuorumCondition.AT_RISK, context.limits.quorum_ms):
        return
    report = quorum_report(context.image)
    if report.fetching is None:
        summary = (
            "When the quorum was described last, a voter did not fetch and no other could fail "
            f"without its loss. It cannot be described now: {report.detail or 'a voter is new'}."
        )
        yield Finding(summary, Severity.CRITICAL)
        return
    absent = [voter.node_id for voter in report.voters if voter.state not in FETCHING]
    summary = (
        f"{report.fetching} of {len(report.voters)} voters fetch and {report.majority} are needed: "
        f"if one more fails, nothing can be committed. Start {_controllers(absent)} again."
    )
    evidence = {
        "voters": [voter.node_id for voter in report.voters],
        "silent": absent,
        "majority": report.majority,
    }
    yield Finding(summary, Severity.CRITICAL, evidence)


def _directories(found: Mapping[NodeId, QuorumSince]) -> dict[str, dict[str, str]]:
    return {"directories": {str(node_id): since.directory_id for node_id, since in found.items()}}


_READS: Final = ("log.quorum", "answers.quorum")


QUORUM_RULES: Final = (
    Rule(
        "observer-waits",
        "a controller follows the metadata log and does not vote" + _DELAYED,
        SubjectKind.QUORUM,
        _waits,
        needs_whole_log=True,
        reads=_READS,
    ),
    Rule(
        "voter-rejoined",
        "a controller that was removed from the voters votes again",
        SubjectKind.QUORUM,
        _rejoined,
        ends=_AFTER_AN_HOUR,
        needs_whole_log=True,
        reads=_READS,
    ),
    Rule(
        "voter-directory-changed",
        "a voter has another directory id than before, or a controller has another one than the "
        "voter with its id" + _DELAYED,
        SubjectKind.QUORUM,
        _directory,
        ends="when the controller fetches as the voter; of a voter that changed, after an hour"
        + BY_ACKNOWLEDGEMENT,
        needs_whole_log=True,
        reads=_READS,
    ),
    Rule(
        "quorum-at-risk",
        "a voter does not fetch and no other may fail without the loss of the quorum" + _DELAYED,
        SubjectKind.QUORUM,
        _at_risk,
        severities=(Severity.CRITICAL,),
        needs_whole_log=True,
        reads=_READS,
    ),
)
