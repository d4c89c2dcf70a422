"""Rules about single znodes: none is missed or unreadable, and no epoch goes backwards."""

from collections.abc import Iterable
from typing import Final

from featurewatch.monitor.rules.rule import (
    BY_ACKNOWLEDGEMENT,
    EITHER_SEVERITY,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
)
from featurewatch.streams.outputs import Severity
from featurewatch.tables.image.provenance import ZnodeProvenance
from featurewatch.tables.image.zookeeper import FEATURES_PATHS, ZnodeIssue


def _issue(context: RuleContext, subject: Subject) -> ZnodeIssue | None:
    return context.image.zookeeper.issues.get(str(subject.key))


def _missed(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """Ends with the next change that is read without a gap, the znode's deletion, or a resync.

    Missed versions can never be recovered, so the warning does not last.
    """
    issue = _issue(context, subject)
    if issue is not None and issue.missed:
        versions = "1 version" if issue.missed == 1 else f"{issue.missed} versions"
        summary = (
            f"The source missed {versions} of {subject.key} before version {issue.version}, "
            "because it changed faster than it could be read, or while no session was open. Ask "
            "whoever changed it which levels it held in between."
        )
        evidence = {"missed": issue.missed, "version": issue.version}
        yield Finding(summary, Severity.WARNING, evidence)


def _unreadable(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    issue = _issue(context, subject)
    if issue is None or not issue.unreadable:
        return
    if subject.key in FEATURES_PATHS:
        severity = Severity.CRITICAL
        advice = (
            "Until the controller writes it again, brokers of released Kafka have no finalized "
            "levels, and the levels shown are the last that could be read."
        )
    else:
        severity = Severity.WARNING
        advice = "Its bytes are in the dead letters: find out who wrote them."
    summary = f"{subject.key} cannot be read: {issue.unreadable}. {advice}"
    yield Finding(summary, severity, {"reason": issue.unreadable})


def _regression(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """Ends when the version has reached the highest one again."""
    image = context.image
    for znode, peak in image.zookeeper.regressed():
        if znode.path != subject.key:
            continue
        # The current version is left out: each step up to the peak would be another alert.
        provenance = image.features.provenance
        is_kept = (
            isinstance(provenance, ZnodeProvenance)
            and (provenance.path, provenance.czxid) == (znode.path, znode.czxid)
            and provenance.version > znode.version
        )
        what = (
            "ZooKeeper was restored to an earlier state, and the levels shown are those of the "
            "higher epoch"
            if is_kept
            else "it was deleted and recreated"
        )
        summary = (
            f"The epoch of {znode.path} went backwards: it had been {peak}, and {what}. Clients "
            "that have the higher epoch reject a lower one, and brokers exit because of it: "
            "restart those that were running."
        )
        yield Finding(summary, Severity.CRITICAL, {"previous_max": peak})


def _disabled(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """Only if that removed levels: features that were never on are normal in old clusters."""
    zookeeper = context.image.zookeeper
    znode, deleted = zookeeper.disabled, zookeeper.deleted
    if znode is not None and deleted and znode.path == subject.key:
        levels = ", ".join(f"{name} {level}" for name, level in sorted(deleted.items()))
        summary = (
            f"{znode.path} was disabled, which removed {levels}: some controller runs with "
            "inter.broker.protocol.version below 2.7. Raise it, and finalize the levels again; "
            "they are not restored automatically."
        )
        yield Finding(summary, Severity.WARNING, {"erased": dict(sorted(deleted.items()))})


_VERSION_READ: Final = (
    "with the next complete read, or when the version has reached the old one" + BY_ACKNOWLEDGEMENT
)

ZNODE_RULES: Final = (
    Rule(
        "znode-missed",
        "some versions of a znode were never read",
        SubjectKind.ZNODE,
        _missed,
        ends=_VERSION_READ,
    ),
    Rule(
        "znode-unreadable",
        "a znode cannot be read",
        SubjectKind.ZNODE,
        _unreadable,
        severities=EITHER_SEVERITY,
    ),
    Rule(
        "znode-regression",
        "the epoch of the features znode went backwards",
        SubjectKind.ZNODE,
        _regression,
        severities=(Severity.CRITICAL,),
        ends=_VERSION_READ,
    ),
    Rule(
        "features-disabled",
        "the features znode was disabled and lost its levels",
        SubjectKind.ZNODE,
        _disabled,
    ),
)
