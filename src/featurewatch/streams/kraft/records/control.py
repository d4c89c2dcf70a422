"""Raft's own records in the metadata log: who leads, and the quorum's version and voters.

A control record has a key, int16 version and int16 type (``ControlRecordType``), and a value that
begins with the version of its message. The JSON is that of Kafka's message converters.
"""

from typing import Any

from featurewatch.kafka.releases import from_releases
from featurewatch.streams.kraft.errors import RecordDecodeError, UnknownRecordError
from featurewatch.streams.kraft.records.compiler import Decoder, compiled
from featurewatch.streams.kraft.records.frames import RecordFrame
from featurewatch.streams.kraft.records.schema import record_table


@from_releases
def _decoder(control_type: int, version: int) -> Decoder:
    schema = record_table().controls[control_type]
    if not 0 <= version <= schema.newest:
        raise UnknownRecordError(
            f"{schema.type}-v{version}", f"version {version} of {schema.type} is not known"
        )
    return compiled(schema, version)


def control_type(buffer: bytes, frame: RecordFrame) -> int:
    """The type in the key of a control record; raises `RecordDecodeError` if it is not a known
    type."""
    key = buffer[frame.key_start : frame.key_end] if frame.key_start >= 0 else b""
    if len(key) != 4:
        raise RecordDecodeError("a control record must have a key of four bytes")
    number = int.from_bytes(key[2:], "big")
    if number not in record_table().controls:
        raise UnknownRecordError(
            f"CONTROL_TYPE_{number}", f"control record type {number} is not known"
        )
    return number


def decode_control(buffer: bytes, frame: RecordFrame, number: int, offset: int) -> dict[str, Any]:
    """A control record of type ``number`` as JSON; raises one of `frames.FAILURES`."""
    version = int.from_bytes(buffer[frame.start : frame.start + 2], "big", signed=True)
    return _decoder(number, version)(buffer, frame.start, frame.end, offset)
