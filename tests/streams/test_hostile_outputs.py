"""Outputs that somebody else wrote: they are refused, or whoever reads them can show them."""

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
    encode_output,
)
from featurewatch.streams.outputs import Alert, FeatureChange, Operation
from tests.forging import forge
from tests.simulation.engine import simulated_outputs
from tests.streams.encoded import DECODERS

SAMPLES: dict[type[Output], list[dict[str, Any]]] = {shape: [] for shape in DECODERS}
for _output in simulated_outputs(range(6)):
    SAMPLES[type(_output)].append(orjson.loads(encode_output(_output).value or b""))


@st.composite
def _forged(draw: st.DrawFn) -> tuple[type[Output], bytes]:
    """A real output with one value, at any depth, replaced by any JSON."""
    shape = draw(st.sampled_from(list(DECODERS)))
    document = orjson.loads(orjson.dumps(draw(st.sampled_from(SAMPLES[shape]))))
    forge(draw, document)
    return shape, orjson.dumps(document)


def _show(output: Output) -> None:
    """As the commands do."""
    if isinstance(output, Alert):
        rendering.alert_line(output)
    elif isinstance(output, FeatureChange):
        rendering.change_line(output)
    elif isinstance(output, Operation):
        rendering.operation_line(output)
    encode_output(output)
    hash(output.id)


@pytest.mark.fuzz
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


@pytest.mark.fuzz
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
