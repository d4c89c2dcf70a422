"""Outputs to messages and back."""

from dataclasses import replace

import orjson
import pytest

from featurewatch.streams.codec.events import MalformedEventError, encode
from featurewatch.streams.codec.outputs import (
    TOPICS,
    Output,
    encode_output,
    encode_state,
    topic_of,
)
from featurewatch.streams.events import DeadLetter
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import (
    DEAD_LETTERS,
    STATE,
)
from tests.simulation.engine import simulated_outputs
from tests.streams.dead_letters import decode_dead_letter
from tests.streams.encoded import DECODERS


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
    assert kinds == {topic.short_name for topic in TOPICS.values()}


@pytest.mark.parametrize("seed", range(20))
def test_no_id_has_two_contents(seed: int) -> None:
    """A consumer may drop a message whose id it has seen; on state each snapshot has its own."""
    contents: dict[tuple[bytes, bytes], bytes | None] = {}
    *outputs, state = simulated_outputs(range(seed, seed + 1))
    for output in (*outputs, state):
        messages = [(topic_of(output), encode_output(output))] if output is not state else []
        if isinstance(output, Snapshot):
            later = [replace(output, at_ms=output.at_ms + after_ms) for after_ms in (0, 500)]
            messages += [(STATE, encode_state(snapshot)) for snapshot in later]
        for topic, message in messages:
            headers = dict(message.headers)
            key = (headers["ce_source"], headers["ce_id"])
            assert contents.setdefault(key, message.value) == message.value
            assert headers["ce_type"].decode().startswith(f"featurewatch.{topic.short_name}.")


def test_dead_letters_of_one_place_have_different_ids() -> None:
    """The id follows from payload and reason too, and is the same after the message."""
    letters = [
        DeadLetter("c", "answer of broker-1", reason, payload, 1)
        for payload, reason in ((b"a", "x"), (b"b", "x"), (b"", "x"), (b"", "y"))
    ]
    messages = [encode(DEAD_LETTERS, letter) for letter in letters]
    assert len({dict(message.headers)["ce_id"] for message in messages}) == len(letters)
    for letter, message in zip(letters, messages, strict=True):
        assert decode_dead_letter(message.value).id == letter.id


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
