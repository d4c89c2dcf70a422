"""The rule about alerts that are left out, as one cluster has too many."""

from collections.abc import Iterable
from typing import Final

from featurewatch.monitor.alert_budget import CAPACITY
from featurewatch.monitor.rules.rule import (
    MAX_ALERTS,
    ROOM_AT,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
)
from featurewatch.streams.outputs import Severity


def _left_out(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    if context.leaves_out:
        summary = (
            f"More alerts about the nodes, features and znodes of this cluster are due than it may "
            f"have: {MAX_ALERTS} that fire, and {CAPACITY} that begin or change at once and then "
            "one each second. The others are left out, critical ones too. They are evaluated when "
            f"{ROOM_AT} or fewer fire. `featurewatch state` and `featurewatch readiness` "
            "show all nodes. If the cluster is not that large, find out who answers in its name."
        )
        yield Finding(summary, Severity.CRITICAL, {"limit": MAX_ALERTS})


LEFT_OUT_RULES: Final = (
    Rule(
        "alerts-left-out",
        "a cluster has more alerts than are published",
        SubjectKind.ALERTS,
        _left_out,
        severities=(Severity.CRITICAL,),
        ends="when enough alerts have ended that all others fire",
    ),
)
