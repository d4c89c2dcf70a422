"""Responses are read as kio writes them; newer ones and hostile ones do no harm."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.api_versions import v4 as api_versions_4
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from featurewatch.kafka.decode import DecodeError, read_entity, skip_tags
from tests.kafka.kio_messages import RESPONSES, instances, name_of, written


@pytest.mark.parametrize("kind", RESPONSES, ids=name_of)
@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_a_response_is_read_as_it_was_written(kind, data):
    """Every field of every response that a source reads comes back, tagged ones too."""
    message = data.draw(instances(kind))
    content = written(message)
    assert read_entity(kind, memoryview(content)) == (message, len(content))


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", RESPONSES, ids=name_of)
@given(data=st.data())
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_a_response_that_was_cut_off_is_refused(kind, data):
    """Wherever it ends early: an error, and neither a wrong message nor anything worse."""
    content = written(data.draw(instances(kind)))
    end = data.draw(st.integers(0, max(0, len(content) - 1)))
    with pytest.raises(DecodeError):
        read_entity(kind, content[:end])


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", RESPONSES, ids=name_of)
@given(st.binary(max_size=200))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_no_bytes_do_harm(kind, content):
    """Anything is a message or an `DecodeError`: a length is no reason to take memory."""
    for hostile in (content, content + b"\xff\xff\xff\xff\x0f" * 4, b"\x7f" * 4 + content):
        try:
            read_entity(kind, hostile)
        except DecodeError:
            continue


def test_what_a_newer_kafka_adds_is_passed_over():
    """A tagged field that is not known is skipped (KIP-482)."""
    kind = api_versions_4.response.ApiVersionsResponse
    message = kind(
        error_code=ErrorCode.none, api_keys=(), throttle_time=i32Timedelta.parse(timedelta())
    )
    content = written(message)
    assert content[-1:] == b"\0"
    newer = content[:-1] + b"\x01" + b"\x63" + b"\x03" + b"abc"
    assert read_entity(kind, newer) == (message, len(newer))
    assert skip_tags(b"\x01\x63\x03abc!", 0) == 6
