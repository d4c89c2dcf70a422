"""The JSON Schemas of the outputs say what the code says."""

from functools import cache
from typing import Any

import orjson
import pytest
from jsonschema_rs import Draft202012Validator, meta, validator_cls_for

from featurewatch.monitor.rules import RULES
from featurewatch.streams.codec.outputs import TOPICS, Output, encode_output
from featurewatch.streams.outputs import (
    Alert,
)
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import DEAD_LETTERS, STATE, WORKER_OUTPUTS, Topic
from tests.simulation.engine import simulated_outputs

OPTIONAL = {"name"}
"""Fields that messages of older workers lack, and that a reader does without."""


def schema(shape: type[Output]) -> Any:
    """The schema of an output."""
    return schema_of(TOPICS[shape])


@cache
def outputs() -> list[Output]:
    """The outputs of many histories."""
    return simulated_outputs(range(60))


def test_alerts_have_the_severities_of_their_rules() -> None:
    """In simulated histories no rule has a finding of a severity that it does not name."""
    severities = {rule.name: rule.severities for rule in RULES}
    alerts = [output for output in outputs() if isinstance(output, Alert)]
    assert alerts
    wrong = {(alert.rule, str(alert.severity)) for alert in alerts} - {
        (rule, str(severity)) for rule, named in severities.items() for severity in named
    }
    assert wrong == set()


def test_each_topic_has_an_output() -> None:
    """Every topic but that of unreadable input holds an output, and the state is that of epochs."""
    held = {topic.short_name for topic in (*TOPICS.values(), STATE, DEAD_LETTERS)}
    assert held == {topic.short_name for topic in WORKER_OUTPUTS}, (
        "TOPICS in streams/codec/outputs.py and the outputs in streams/topics.py differ"
    )


@pytest.mark.parametrize("topic", [*TOPICS.values(), STATE], ids=lambda topic: topic.short_name)
def test_schemas_are_schemas(topic: Topic) -> None:
    """Each file is a valid JSON Schema of draft 2020-12, named after its topic."""
    content = schema_of(topic)
    assert validator_cls_for(content) is Draft202012Validator
    meta.validate(content)
    assert (content["title"], content["type"]) == (topic.name(), "object")


def test_every_simulated_output_is_valid() -> None:
    """Every output of many histories is accepted, and each kind of rule was heard."""
    validators = {shape: Draft202012Validator(schema(shape)) for shape in TOPICS}
    fired = set()
    for output in outputs():
        validators[type(output)].validate(orjson.loads(encode_output(output).value or b""))
        fired |= {output.rule} if isinstance(output, Alert) else set()
    # The histories are of clusters, and no bus is in them: tests/controller has these.
    of_the_bus = {"messages-lost", "outputs-lost", "clock-ahead", "source-rivals"}
    of_floods = {"alerts-left-out"}  # tests/monitor/test_left_out.py
    expected = {rule.name for rule in RULES if rule.timer is None} - of_the_bus - of_floods
    assert fired <= expected
    assert expected - fired == set(), (
        "no history makes these rules fire: either tests/simulation/world.py, ensemble.py and "
        "records.py never have their condition, or nothing evaluates their subjects after an event "
        "(monitor/touched.py)"
    )


@pytest.mark.parametrize("shape", TOPICS)
def test_no_field_may_be_missing_or_null(shape: type[Output]) -> None:
    """The schema refuses what a reader could not use."""
    validator = Draft202012Validator(schema(shape))
    output = next(output for output in simulated_outputs(range(3)) if type(output) is shape)
    content = orjson.loads(encode_output(output).value or b"")
    for name in content:
        assert not validator.is_valid({**content, name: None}), name
        rest = {k: v for k, v in content.items() if k != name}
        assert validator.is_valid(rest) == (name in OPTIONAL), name
