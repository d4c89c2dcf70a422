"""Compares what was published with the truth. Pure: lists in, a verdict out.

The truth is what Kafka's own tools read; what was published are the messages as they are on the
topics, parsed as JSON and not by featurewatch's codecs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

Level = tuple[str, int]
"""A change of a finalized level: the feature and its new level (0: removed)."""

Value = Mapping[str, Any]
"""The value of a message, parsed."""

_CHANGE: Final = ("feature", "before", "after", "epoch", "revision")
_EPOCH: Final = ("revision", "epoch", "finalized")
_ALERT_ID: Final = ("id", "state", "cause", "since_ms", "at_ms")
_REPEAT_MS: Final = 60_000
_ALERT: Final = ("severity", "summary", "evidence")


@dataclass(frozen=True, slots=True)
class Outputs:
    """Everything that was published for one cluster, in the order in which it was read.

    ``state`` is the last value of the cluster on the topic of states, or None.
    """

    changes: Sequence[Value] = ()
    epochs: Sequence[Value] = ()
    alerts: Sequence[Value] = ()
    state: Value | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one run of a row.

    - ``lost``: changes that are missing, holes in the revisions, or revisions without a snapshot,
      whichever are most;
    - ``doubled``: changes that were published under two ids, or never happened;
    - ``contradicted``: messages with an id that an earlier one has, and other content;
    - ``state_wrong``: 1 if the topic of states ends with other levels than the truth;
    - ``false_alerts``: rules that fired and had no reason to;
    - ``stuck_alerts``: rules that still fire when nothing is wrong any more;
    - ``recovered_s``: from the end of the fault until a new change was published; None: never.
    """

    lost: int = 0
    doubled: int = 0
    contradicted: int = 0
    state_wrong: int = 0
    false_alerts: tuple[str, ...] = ()
    stuck_alerts: tuple[str, ...] = ()
    recovered_s: float | None = 0.0
    limit_s: float = field(default=60.0, compare=False)
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the checks that failed; empty: the row held."""
        names = [check.name for check in fields(self)[:6] if getattr(self, check.name)]
        if self.recovered_s is None or self.recovered_s > self.limit_s:
            names.append("recovered_s")
        return (*names, *(["notes"] if self.notes else []))


def compare(
    truth: Sequence[Level],
    outputs: Outputs,
    *,
    may_fire: Iterable[str] = (),
    must_fire: Iterable[str] = (),
    may_stay: Iterable[str] = (),
    may_lose: bool = False,
    recovered_s: float | None = 0.0,
    limit_s: float = 60.0,
    notes: Sequence[str] = (),
    first_alert: int = 0,
) -> Verdict:
    """The verdict on one run.

    Alerts before number ``first_alert`` were published before the fault.
    ``truth`` are all changes of the cluster in order, ``may_fire`` the rules that have a reason to
    fire during the fault, ``must_fire`` those without which users would not see it (they may fire
    since before it, as that of a source that flaps does after a few rows), ``may_stay``
    those that may still fire at the end, and ``notes`` what failed besides (a process that ended
    for good). With ``may_lose``, changes that are missing do not count as lost if
    ``messages-lost`` fired.
    """
    by_id = {_change_id(change): change for change in outputs.changes}
    published = Counter((str(change["feature"]), int(change["after"])) for change in by_id.values())
    written = Counter(truth)
    alerts = outputs.alerts[first_alert:]
    fired = {str(alert["rule"]) for alert in alerts if alert["state"] == "firing"}
    shown = fired | {
        str(alert["rule"]) for alert in _last(outputs.alerts[:first_alert]) if _fires(alert)
    }
    missing = (written - published).total()
    if may_lose and "messages-lost" in fired:
        missing = 0
    return Verdict(
        lost=max(missing, _holes(by_id.values(), outputs.epochs)),
        doubled=(published - written).total(),
        contradicted=contradictions(outputs),
        state_wrong=int(_state_levels(outputs.state) != _levels(truth)),
        false_alerts=tuple(sorted(fired - set(may_fire))),
        stuck_alerts=tuple(sorted({*firing(outputs.alerts)} - {*may_stay})),
        recovered_s=recovered_s,
        limit_s=limit_s,
        notes=(
            *notes,
            *(f"{rule} did not fire" for rule in must_fire if rule not in shown),
            *(f"{rule} was repeated within a minute" for rule in sorted(repeated(alerts))),
        ),
    )


def firing(alerts: Iterable[Value]) -> Counter[str]:
    """How many alerts of each rule fire at the end.

    Without sources that flap, as rows on one stack make them: that alert ends ten minutes later.
    """
    return Counter(
        str(alert["rule"])
        for alert in _last(alerts)
        if _fires(alert) and alert.get("evidence", {}).get("state") != "flapping"
    )


def _last(alerts: Iterable[Value]) -> Iterable[Value]:
    """The last message about each alert."""
    return {str(alert["id"]): alert for alert in alerts}.values()


def _fires(alert: Value) -> bool:
    return bool(alert["state"] == "firing")


def repeated(alerts: Iterable[Value]) -> set[str]:
    """The rules with an alert of which two messages within a minute differ in text alone.

    A message that is published again with its cause and content is the same one.
    """
    rules: set[str] = set()
    last: dict[str, Value] = {}
    for alert in alerts:
        before = last.setdefault(str(alert["id"]), alert)
        if alert["cause"] == before["cause"] or alert["at_ms"] < before["at_ms"]:
            continue
        last[str(alert["id"])] = alert
        is_same = all(alert[name] == before[name] for name in ("state", "severity"))
        if is_same and alert["at_ms"] - before["at_ms"] < _REPEAT_MS:
            rules.add(str(alert["rule"]))
    return rules


def contradictions(outputs: Outputs) -> int:
    """Messages that differ from the first one with their id."""
    count = 0
    for values, id_of, content in (
        (outputs.changes, _change_id, _CHANGE),
        (outputs.epochs, lambda value: value["revision"], _EPOCH),
        (outputs.alerts, lambda value: tuple(value.get(name) for name in _ALERT_ID), _ALERT),
    ):
        first: dict[Any, list[Any]] = {}
        for value in values:
            said = [value.get(name) for name in content]
            count += first.setdefault(id_of(value), said) != said
    return count


def _change_id(change: Value) -> tuple[Any, ...]:
    return change["cluster"], change["feature"], change["revision"]


def _holes(changes: Iterable[Value], epochs: Iterable[Value]) -> int:
    revisions = {int(change["revision"]) for change in changes}
    snapshots = {int(epoch["revision"]) for epoch in epochs}
    last = max(revisions | snapshots, default=0)
    return max(last - len(revisions), last - len(snapshots))


def _levels(truth: Sequence[Level]) -> dict[str, int]:
    return {feature: level for feature, level in dict(truth).items() if level}


def _state_levels(state: Value | None) -> dict[str, int] | None:
    return None if state is None else dict(state["finalized"])
