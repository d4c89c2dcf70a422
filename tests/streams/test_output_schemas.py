"""The JSON Schemas of the outputs say what the code says."""

from dataclasses import fields
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from featurewatch.monitor.rules import RULES
from featurewatch.streams.codec.outputs import TOPICS, Output, encode_output
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    IncompatibleNode,
    Operation,
    OperationKind,
    OperationPhase,
    Severity,
    Snapshot,
)
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import DEAD_LETTERS, EPOCHS, STATE, WORKER_OUTPUTS
from tests.simulation.engine import simulated_outputs

OPTIONAL = {"name"}
"""Fields that messages of older workers lack, and that a reader does without."""


def schema(shape: type[Output]) -> Any:
    """The schema of an output."""
    return schema_of(TOPICS[shape])


def test_alerts_have_the_severities_of_their_rules() -> None:
    """In simulated histories no rule has a finding of a severity that it does not name."""
    severities = {rule.name: rule.severities for rule in RULES}
    alerts = [output for output in simulated_outputs(range(60)) if isinstance(output, Alert)]
    assert alerts
    wrong = {(alert.rule, str(alert.severity)) for alert in alerts} - {
        (rule, str(severity)) for rule, named in severities.items() for severity in named
    }
    assert wrong == set()


def test_each_topic_has_an_output() -> None:
    """Every topic but that of unreadable input holds an output, and the state is that of epochs."""
    assert {topic.short_name for topic in (*TOPICS.values(), STATE, DEAD_LETTERS)} == {
        topic.short_name for topic in WORKER_OUTPUTS
    }


def test_the_newest_state_has_the_form_of_an_epoch() -> None:
    """The two schemas differ in what they are called, and in nothing else."""
    epochs, state = schema_of(EPOCHS), schema_of(STATE)
    assert state["title"] == STATE.name()
    assert {**state, **{name: epochs[name] for name in ("$id", "title", "description")}} == epochs


@pytest.mark.parametrize("shape", TOPICS)
def test_each_property_is_a_field(shape: type[Output]) -> None:
    """All fields are there, none besides, and required but for `OPTIONAL`; the file is a schema."""
    content = schema(shape)
    Draft202012Validator.check_schema(content)
    assert content["title"] == TOPICS[shape].name()
    declared = {field.name for field in fields(shape)}
    assert content["properties"].keys() == declared
    assert set(content["required"]) == declared - OPTIONAL


@pytest.mark.parametrize(
    ("name", "shape"), [("class", CapabilityClass), ("incompatible", IncompatibleNode)]
)
def test_each_property_of_a_part_is_a_field(name: str, shape: type) -> None:
    """Classes and incompatible nodes have the fields of their code."""
    content = schema(Snapshot)["$defs"][name]
    declared = {field.name for field in fields(shape)}
    assert content["properties"].keys() == declared
    assert set(content["required"]) == declared


@pytest.mark.parametrize(
    ("shape", "name", "enum"),
    [
        (FeatureChange, "kind", ChangeKind),
        (Alert, "state", AlertState),
        (Alert, "severity", Severity),
        (Operation, "kind", OperationKind),
        (Operation, "phase", OperationPhase),
    ],
)
def test_each_choice_is_a_member(shape: type[Output], name: str, enum: Any) -> None:
    """The words that a schema allows are those that the code has."""
    assert schema(shape)["properties"][name]["enum"] == [str(member) for member in enum]


def test_every_simulated_output_is_valid() -> None:
    """Every output of many histories is accepted, and each kind of rule was heard."""
    validators = {shape: Draft202012Validator(schema(shape)) for shape in TOPICS}
    fired = set()
    for output in simulated_outputs(range(60)):
        validators[type(output)].validate(orjson.loads(encode_output(output).value or b""))
        fired |= {output.rule} if isinstance(output, Alert) else set()
    # The histories are of clusters, and no bus is in them: tests/controller has these.
    of_the_bus = {"messages-lost", "outputs-lost", "clock-ahead"}
    assert fired == {rule.name for rule in RULES if rule.timer is None} - of_the_bus


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
