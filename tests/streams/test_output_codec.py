"""Outputs to messages and back."""

import orjson
import pytest

from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import (
    Output,
    decode_alert,
    decode_change,
    decode_snapshot,
    encode_output,
    topic_of,
)
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES
from tests.simulation.engine import simulated_outputs

DECODERS = {FeatureChange: decode_change, Alert: decode_alert, Snapshot: decode_snapshot}


def test_outputs_survive_encoding_and_decoding() -> None:
    """Every output of many histories is the same after its message."""
    for output in simulated_outputs(range(40)):
        assert DECODERS[type(output)](encode_output(output).value) == output


def test_topics_and_keys() -> None:
    """An alert's key is its id, so that compaction keeps its newest word; others' the cluster."""
    kinds = set()
    for output in simulated_outputs(range(5)):
        topic, message = topic_of(output), encode_output(output)
        expected = output.id if isinstance(output, Alert) else output.cluster
        assert message.key == expected.encode()
        headers = dict(message.headers)
        assert headers["ce_type"].decode().startswith(f"featurewatch.{topic.short_name}.")
        assert headers["ce_source"].decode() == f"/clusters/{output.cluster}/{topic.short_name}"
        kinds.add(topic.short_name)
    assert kinds == {topic.short_name for topic in (FEATURE_CHANGES, ALERTS, EPOCHS)}


def test_unknown_fields_are_passed_over() -> None:
    """A newer worker and an older reader go together."""
    for output in simulated_outputs(range(2)):
        content = orjson.loads(encode_output(output).value or b"")
        assert DECODERS[type(output)](orjson.dumps({**content, "later": 1})) == output


@pytest.mark.parametrize("value", [None, b"", b"x", b"[]", b"{}", b'{"kind": 5}'])
@pytest.mark.parametrize("shape", DECODERS)
def test_what_is_no_output_is_refused(shape: type[Output], value: bytes | None) -> None:
    """With one clear line, and no other error."""
    with pytest.raises(MalformedEventError):
        DECODERS[shape](value)


@pytest.mark.parametrize(
    ("shape", "field", "bad"),
    [
        (FeatureChange, "kind", "exploded"),
        (Alert, "state", "maybe"),
        (Alert, "severity", None),
        (Snapshot, "classes", [{}]),
        (Snapshot, "classes", 7),
        (Snapshot, "incompatible", [{"role": "x"}]),
    ],
)
def test_what_a_field_may_not_hold(shape: type[Output], field: str, bad: object) -> None:
    """It is refused as malformed."""
    output = next(output for output in simulated_outputs(range(3)) if type(output) is shape)
    content = orjson.loads(encode_output(output).value or b"")
    with pytest.raises(MalformedEventError):
        DECODERS[shape](orjson.dumps({**content, field: bad}))
