"""The model against Kafka's own ``FeatureControlManager`` and its checks of registrations.

Both get the same questions by chance and must agree on everything: error codes, texts, records and
their order. ``python -m tests.conformance.feature_control`` compares more of them.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.controller.kraft.map_order import hash_map_order
from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.state import ControllerState
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
)
from tests.conformance.feature_control.compare import Case, Json, Model, cases, differences, kinds
from tests.conformance.feature_control.kafka import RELEASES, ControllerHarness, controller_harness
from tests.conformance.feature_control.questions import RequestInState, model_response, request_json
from tests.plugins.nightly import case_count, case_seeds

pytestmark = pytest.mark.stack

CASES = case_count(10_000)
"""For each release: some seconds."""

TEXTS = {"3.9.1": 24, "4.3.0": 27, "4.4.0": 27}
"""At least this many different texts must have come from Kafka, or the questions are too tame."""


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A release that is compared."""
    return str(request.param)


@pytest.fixture(scope="module")
def kafka(
    release: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """Kafka's classes of that release, ready to be asked."""
    directory: Path = tmp_path_factory.mktemp("harness")
    with controller_harness(release, stack_cache, directory) as running:
        yield running


@pytest.fixture(scope="module")
def compared(kafka: ControllerHarness, release: str) -> list[Case]:
    """Kafka's answers to the questions of this run."""
    return cases(kafka, release, case_seeds(10_000))


def test_model_answers_as_kafka_does(compared: list[Case], release: str) -> None:
    """Updates, registrations and replays are answered alike, texts and records included."""
    first = compared[0].seed
    different = differences(compared)
    assert not different, (
        f"Kafka {release}, first seed {first}: {len(different)} differ\n{different[0]}"
    )


def test_questions_reach_every_check(compared: list[Case], release: str) -> None:
    """The questions are varied enough that Kafka gives nearly each of its answers."""
    texts = kinds(compared)
    assert len(texts) >= TEXTS[release], sorted(texts)
    assert texts["accepted"] > CASES // 10


def test_a_refused_request_may_have_raised_kraft_version(
    kafka: ControllerHarness, release: str
) -> None:
    """From 4.1 on raft raises kraft.version although another feature of the request is refused."""
    ranges = release_of(release).ranges()
    state = ControllerState(NodeId(1), ranges, {METADATA_VERSION: FeatureLevel(21)})
    after = FeatureName("share.version")
    assert hash_map_order([after, KRAFT_VERSION]) == [KRAFT_VERSION, after]
    updates = (LevelUpdate(KRAFT_VERSION, FeatureLevel(1)), LevelUpdate(after, FeatureLevel(7)))
    question = RequestInState(state, UpdateRequest(updates))
    (response,) = kafka.responses([request_json(question)])
    assert response == json.loads(json.dumps(model_response(release, question)))
    assert response["kraft_version"] == (None if release == "3.9.1" else 1)


def _only_unfenced(release: str, question: RequestInState) -> Json:
    brokers = tuple(broker for broker in question.state.brokers if not broker.fenced)
    return model_response(
        release, replace(question, state=replace(question.state, brokers=brokers))
    )


def _without_controllers(release: str, question: RequestInState) -> Json:
    return model_response(release, replace(question, state=replace(question.state, controllers=())))


def _as_the_other_release(release: str, question: RequestInState) -> Json:
    other = next(one for one in RELEASES if one != release)
    return model_response(other, question)


def _without_a_comma(release: str, question: RequestInState) -> Json:
    document = model_response(release, question)
    code, text = document.get("answer", (0, None))
    return {**document, "answer": [code, text.replace(",", "")]} if text else document


def _dry(release: str, question: RequestInState) -> Json:
    document = model_response(release, question)
    return {**document, "records": []} if "records" in document else document


@pytest.mark.parametrize(
    "planted", [_only_unfenced, _without_controllers, _as_the_other_release, _without_a_comma, _dry]
)
def test_a_planted_difference_is_detected(planted: Model, compared: list[Case]) -> None:
    """A model that is wrong in one respect does not pass the comparison."""
    assert differences(compared, planted)
