"""The model against Kafka: the same questions to both, and where they differ."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from featurewatch.controller.kraft.conformance.cases import question
from featurewatch.controller.kraft.conformance.questions import (
    RequestInState,
    model_response,
    request_json,
)

Json = dict[str, Any]
Model = Callable[[str, RequestInState], Json]


class Controller(Protocol):
    """Kafka's controller classes; ``java`` is the version of Java that they run on."""

    java: int

    def responses(self, questions: Iterable[Json]) -> Iterator[Json]:
        """An answer for each question, in order."""


class ChangedClassesError(Exception):
    """The release has other classes than those that can be asked; the text says which."""


class Case(NamedTuple):
    """A question, and what Kafka said to it."""

    release: str
    seed: int
    question: RequestInState
    answer: Json


def cases(kafka: Controller, release: str, seeds: Iterable[int]) -> list[Case]:
    """Asks Kafka the questions with these seeds.

    Raises:
        ChangedClassesError: if the release's classes differ from those that can be asked.
    """
    compared = []
    for seed in seeds:
        request = question(release, seed)
        request = replace(request, state=replace(request.state, java=kafka.java))
        (answer,) = kafka.responses([request_json(request)])
        if "linkage" in answer:
            raise ChangedClassesError(answer["linkage"])
        compared.append(Case(release, seed, request, answer))
    return compared


def differences(compared: Iterable[Case], model: Model = model_response) -> list[str]:
    """Each case to which the model says something else, with all that is needed to look at it."""
    different = []
    for case in compared:
        ours = json.loads(json.dumps(model(case.release, case.question)))
        if ours != case.answer:
            different.append(
                f"seed {case.seed} of {case.release}:\n"
                f"  asked {json.dumps(request_json(case.question))}\n"
                f"  Kafka {json.dumps(case.answer)}\n"
                f"  model {json.dumps(ours)}"
            )
    return different


RAISED_ALL_THE_SAME = "refused, and kraft.version raised all the same"


def kinds(compared: Iterable[Case]) -> Counter[str]:
    """How often Kafka said what, leaving out what is particular to a case."""
    return Counter(kind for case in compared for kind in _kinds(case.answer))


def _kinds(answer: Json) -> list[str]:
    if "replay" in answer:
        return [_general(answer["replay"])]
    answers = [answer["answer"], *(result for _, result in answer.get("results", ()))]
    texts = {_general(text) if text else "accepted" for _, text in answers}
    if answer.get("kraft_version") is not None and answer["answer"][0]:
        texts.add(RAISED_ALL_THE_SAME)
    return sorted(texts)


_PARTICULAR = (
    (r"feature \S*\. ", "feature F. "),
    (r"'.*?'", "'F'"),
    (r"directory \S+", "directory D"),
    (r"(?<= of )\S*\. The", "F. The"),
    (r"^\S* could|(?<=\. )\S* could", "F could"),
    (r"feature:\S*", "feature:F"),
    (r"Feature \S* not", "Feature F not"),
    (r"-?\d+(-\d+|\+)?", "n"),
)


def _general(text: str) -> str:
    for pattern, general in _PARTICULAR:
        text = re.sub(pattern, general, text)
    return text
