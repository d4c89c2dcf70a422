"""Compares the histories of our voter with those of Kafka's."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.conformance.feature_control.kafka import ControllerHarness
from tests.conformance.raft.histories import History, history


@dataclass
class Comparison:
    """What was compared, and the first difference of each history that has one."""

    histories: int = 0
    steps: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def compare(kafka: ControllerHarness, release: str, seeds: range) -> Comparison:
    """Gives the histories of these seeds to both."""
    found = Comparison()
    written = ((seed, history(seed, release)) for seed in seeds)
    for seed, one in written:
        (answer,) = kafka.responses([one.question])
        found.histories += 1
        difference = _difference(one, answer["steps"], found)
        if difference:
            found.differences.append(f"Kafka {release}, seed {seed}, {difference}")
    return found


def _difference(one: History, steps: list[dict[str, Any]], found: Comparison) -> str:
    for at, (ours, answered) in enumerate(zip(one.seen, steps, strict=False)):
        found.steps += 1
        kafka = one.voter.read_kafka(one.voter._kinds.__getitem__, answered)
        found.kinds[f"{one.question['steps'][at][2]} -> {kafka.get('state', 'fatal')}"] += 1
        wrong = [
            f"{name}: Kafka {kafka.get(name)}, we {ours.get(name)}"
            for name in sorted({*ours, *kafka} - {"high_watermark"})
            if ours.get(name) != kafka.get(name)
        ]
        if wrong:
            before = one.seen[at - 1] if at else None
            return f"step {at}: {_event(one, at)}\n  before {before}\n  " + "\n  ".join(wrong)
        if "fatal" in kafka:
            return ""
    return ""


def _event(one: History, at: int) -> str:
    return str(one.question["steps"][at])
