"""Outputs that somebody else wrote: they are refused, or whoever reads them can show them."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from featurewatch.cli.output import rendering
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import (
    Output,
    decode_alert,
    decode_change,
    decode_snapshot,
    encode_output,
)
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from tests.simulation.engine import simulated_outputs

DECODERS: dict[type[Output], Callable[[bytes | None], Output]] = {
    FeatureChange: decode_change,
    Alert: decode_alert,
    Snapshot: decode_snapshot,
}
SAMPLES: dict[type[Output], list[dict[str, Any]]] = {shape: [] for shape in DECODERS}
for _output in simulated_outputs(range(6)):
    SAMPLES[type(_output)].append(orjson.loads(encode_output(_output).value or b""))

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def _paths(value: Any) -> list[tuple[Any, ...]]:
    """The way to each value in a document."""
    items = value.items() if type(value) is dict else enumerate(value)
    paths: list[tuple[Any, ...]] = []
    for key, item in items:
        paths.append((key,))
        if type(item) in (dict, list):
            paths.extend((key, *rest) for rest in _paths(item))
    return paths


@st.composite
def _forged(draw: st.DrawFn) -> tuple[type[Output], bytes]:
    """A real output with one value, at any depth, replaced by any JSON."""
    shape = draw(st.sampled_from(list(DECODERS)))
    document = orjson.loads(orjson.dumps(draw(st.sampled_from(SAMPLES[shape]))))
    *way, last = draw(st.sampled_from(_paths(document)))
    inner = document
    for key in way:
        inner = inner[key]
    inner[last] = draw(JSON)
    return shape, orjson.dumps(document)


def _show(output: Output) -> None:
    """As the commands do."""
    if isinstance(output, Alert):
        rendering.alert_line(output)
    elif isinstance(output, FeatureChange):
        rendering.change_line(output)
    encode_output(output)
    hash(output.id)


@given(_forged())
def test_a_forged_output_is_refused_or_can_be_shown(forged: tuple[type[Output], bytes]) -> None:
    """One line says what is wrong with it, or it has all that its readers rely on."""
    shape, value = forged
    try:
        output = DECODERS[shape](value)
    except MalformedEventError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 500
        return
    _show(output)


@given(st.binary(max_size=200), st.sampled_from(list(DECODERS)))
@example(b"[" * 100_000, Alert)
@example(b'{"id":' * 1000 + b"1" + b"}" * 1000, Alert)
def test_any_bytes_are_refused(value: bytes, shape: type[Output]) -> None:
    """Bytes that are no output raise `MalformedEventError` and nothing else."""
    with pytest.raises(MalformedEventError):
        DECODERS[shape](value)


def test_an_alert_is_cut_before_it_is_published() -> None:
    """Summary and evidence quote foreign text: both are bounded, with length and digest."""
    sample = decode_alert(orjson.dumps(SAMPLES[Alert][0] | {"evidence": {"x": "y" * 1_000_000}}))
    long = Alert(
        **{name: getattr(sample, name) for name in Alert.__slots__ if name != "summary"},
        summary="s" * 1_000_000,
    )
    message = encode_output(long)
    assert len(message.value or b"") < 10_000
    alert = decode_alert(message.value)
    assert alert.evidence["omitted_bytes"] > 1_000_000
    assert "1000000 characters" in alert.summary
