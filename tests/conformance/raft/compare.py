"""Compares the histories of our voter with those of Kafka's."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final

from featurewatch.reference.kraft.machines.batches import control_records, read_batches
from featurewatch.reference.kraft.machines.requests import FetchAnswer
from tests.conformance.feature_control.kafka import ControllerHarness
from tests.conformance.raft.differences import (
    BELOW_A_SNAPSHOT,
    ENDS_THE_PROCESS,
    FALLING_HIGH_WATERMARK,
    RESIGNED_LEADER,
    SKIPPED_VOTERS,
    ending_of,
    removal_of,
    without_resigned_leader,
)
from tests.conformance.raft.histories import History, history

Seen = dict[str, Any]
_ANY_NUMBER: Final = 1 << 62
_OF_OURS: Final = {"high_watermark", "voters_at", "is_removed"}
"""What only one of the two tells."""
_DURABLE: Final = ("stored", "end", "epochs")


@dataclass
class Comparison:
    """What was compared, and the first difference of each history that has one."""

    histories: int = 0
    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """What happened, and the state after it."""
    deliberate: Counter[str] = field(default_factory=Counter)
    """How often each row of `differences` was met."""
    differences: list[str] = field(default_factory=list)


def compare(
    kafka: ControllerHarness, release: str, seeds: range, most_differences: int = _ANY_NUMBER
) -> Comparison:
    """Gives the histories of these seeds to both, up to this many differences."""
    found = Comparison()
    for seed in seeds:
        one = history(seed, release)
        (answer,) = kafka.responses([one.question])
        found.histories += 1
        difference = _difference(one, answer["steps"], found)
        if difference:
            found.differences.append(f"Kafka {release}, seed {seed}, {difference}")
        if len(found.differences) >= most_differences:
            break
    return found


def _difference(one: History, steps: list[Seen], found: Comparison) -> str:
    """The first step after which the two differ; empty if there is none."""
    before: Seen = {}
    committed = furthest = 0
    for at, (ours, answered) in enumerate(zip(one.seen, steps, strict=False)):
        event = one.question["steps"][at]
        found.steps += 1
        found.kinds[f"{one.names[at]} -> {answered.get('state', 'end')}"] += 1
        if "fatal" in answered:
            lines = [f"Kafka ended: {answered['fatal']}", f"we: {ours}"]
            is_known = _is_known(answered["fatal"], before, ours, found)
            return "" if is_known else _text(at, event, before, lines)
        if "halted" in ours and before["snapshots"]:
            found.deliberate[BELOW_A_SNAPSHOT] += 1
            return ""
        kafka = one.voter.read_kafka(answered)
        if removal := removal_of(ours, kafka):
            found.deliberate[removal] += 1
            return ""
        committed = (
            kafka["committed"] if event[2] == "start" else max(committed, kafka["committed"])
        )
        if committed > kafka["committed"]:
            found.deliberate[FALLING_HIGH_WATERMARK] += 1
            kafka["committed"] = committed
        if kafka["state"] == "resigned":
            hidden = without_resigned_leader(kafka["replies"], ours["replies"])
            found.deliberate[RESIGNED_LEADER] += hidden != kafka["replies"]
            kafka["replies"] = hidden
        wrong = [
            f"{name}: Kafka {kafka.get(name)}\n    we {ours.get(name)}"
            for name in sorted({*ours, *kafka} - _OF_OURS)
            if _comparable(ours.get(name)) != _comparable(kafka.get(name))
        ]
        if wrong:
            return _text(at, event, before, wrong)
        if event[2] == "start":
            furthest = ours["end"]
        elif before["voters_at"] < ours["voters_at"] < furthest:
            found.deliberate[SKIPPED_VOTERS] += 1
            return ""
        furthest = max(furthest, ours["end"])
        before = ours
    return ""


def _is_known(fatal: str, before: Seen, ours: Seen, found: Comparison) -> bool:
    """Whether an end of Kafka's is one of the table, and our voter changed nothing by it."""
    name = ending_of(fatal)
    is_kept = "halted" in ours or all(ours[part] == before.get(part) for part in _DURABLE)
    if name and (is_kept or ENDS_THE_PROCESS[name].continues):
        found.deliberate[name] += 1
        return True
    return False


def _text(at: int, event: list[Any], before: Seen, lines: list[str]) -> str:
    return f"step {at}: {event}\n  before {before}\n  " + "\n  ".join(lines)


def _comparable(value: Any) -> Any:
    """A value whose records are compared without the order in which votes are listed."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [_comparable(one) for one in value]
    if isinstance(value, FetchAnswer):
        return replace(value, records=b""), _records(value.records)
    return value


def _records(data: bytes) -> list[Any]:
    found: list[Any] = []
    for batch in read_batches(data):
        content: Any = batch.data
        if batch.is_control:
            content = control_records([batch])
            for record in content:
                for name in {"grantingVoters", "voters"} & {*record["data"]}:
                    record["data"][name].sort(key=str)
        found.append((batch.base, batch.last, batch.epoch, content))
    return found
