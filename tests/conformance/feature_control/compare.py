"""The model against Kafka: the same questions to both, and where they differ."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.conformance.feature_control.cases import question
from tests.conformance.feature_control.kafka import Kafka
from tests.conformance.feature_control.questions import Question, answered, asked

Model = Callable[[str, Question], dict[str, Any]]


@dataclass
class Comparison:
    """How many were compared, which kinds of answers came, and every difference."""

    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def compare(
    kafka: Kafka, release: str, seeds: Iterable[int], model: Model = answered
) -> Comparison:
    """Asks Kafka and the model the questions with these seeds."""
    found = Comparison()
    for seed in seeds:
        one = question(release, seed)
        one = replace(one, state=replace(one.state, java=kafka.java))
        (theirs,) = kafka.answers([asked(one)])
        ours = json.loads(json.dumps(model(release, one)))
        found.cases += 1
        found.kinds.update(_kinds(theirs))
        if ours != theirs:
            found.differences.append(
                f"seed {seed} of {release}:\n  asked {json.dumps(asked(one))}\n"
                f"  Kafka {json.dumps(theirs)}\n  model {json.dumps(ours)}"
            )
    return found


def _kinds(answer: dict[str, Any]) -> list[str]:
    """The texts of an answer without what is particular to the case."""
    if "replay" in answer:
        return [_general(answer["replay"])]
    answers = [answer["answer"], *(one for _, one in answer.get("results", ()))]
    texts = {_general(text) if text else "accepted" for _, text in answers}
    if answer.get("kraft_version") is not None and answer["answer"][0]:
        texts.add("refused, and kraft.version raised all the same")
    return sorted(texts)


def _general(text: str) -> str:
    text = re.sub(r"feature \S*\. ", "feature F. ", text)
    text = re.sub(r"'.*?'", "'F'", text)
    text = re.sub(r"directory \S+", "directory D", text)
    text = re.sub(r"(?<= of )\S+\. The", "F. The", text)
    text = re.sub(r"^\S* could|(?<=\. )\S* could", "F could", text)
    text = re.sub(r"feature:\S*", "feature:F", text)
    text = re.sub(r"Feature \S* not", "Feature F not", text)
    return re.sub(r"-?\d+(-\d+|\+)?", "n", text)
