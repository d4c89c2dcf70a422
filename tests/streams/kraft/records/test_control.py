"""Raft's own records."""

import hashlib
import struct
from typing import Any

import pytest

from featurewatch.streams.events import UNREADABLE
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import FIRST_OF_KIND, RecordDecoder
from featurewatch.streams.kraft.records.selection import ALL_RECORDS, count_types
from tests.streams.kraft.encoding import batch_of, control_framed, framed

VOTER = {
    "voterId": 3000,
    "voterDirectoryId": "GHlH5OERRkutVAcVWWoDyA",
    "endpoints": [{"name": "CONTROLLER", "host": "host", "port": 9093}],
    "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
}
V1_VOTER = {"voterId": 1, "voterDirectoryId": "GHlH5OERRkutVAcVWWoDyA"}

CONTENTS: list[tuple[int, str, dict[str, Any]]] = [
    (2, "LEADER_CHANGE", {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}]}),
    (2, "LEADER_CHANGE", {"version": 1, "leaderId": 1, "voters": [V1_VOTER]}),
    (3, "SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 1_700_000_000_000}),
    (4, "SNAPSHOT_FOOTER", {"version": 0}),
    (5, "KRAFT_VERSION", {"version": 0, "kRaftVersion": 1}),
    (6, "KRAFT_VOTERS", {"version": 0, "voters": [VOTER]}),
]


def decoded(record: bytes, wanted: frozenset[str] = ALL_RECORDS) -> Any:
    """The decoded control batch with one record."""
    (batch,) = scan_batches(batch_of([record], base_offset=9, control=True)).batches
    return RecordDecoder(wanted).decode(batch)


@pytest.mark.parametrize(("kind", "name", "content"), CONTENTS)
def test_control_record_decodes(kind: int, name: str, content: dict[str, Any]) -> None:
    """Each control record comes out with its type, the version that it says, and its fields."""
    data = {**content, "grantingVoters": []} if kind == 2 else content
    assert decoded(control_framed(kind, data, 0)).records == [
        {"offset": 9, "type": name, "version": data["version"], "data": data}
    ]


def test_unwanted_control_record_is_counted() -> None:
    """A control record that nobody asked for is skipped and counted by its type."""
    record = control_framed(5, {"version": 0, "kRaftVersion": 1}, 0)
    result = decoded(record, frozenset({"LEADER_CHANGE"}))
    assert (result.records, count_types(result.skipped)) == ([], {"KRAFT_VERSION": 1})


KEY = b"\x00\x00\x00\x05"
LEVEL_1 = b"\x00\x00\x00\x01\x00"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, LEVEL_1, "a control record must have a key of four bytes"),
        (b"\x00\x00\x05", LEVEL_1, "a control record must have a key of four bytes"),
        (b"\x00\x00\x00\x01", LEVEL_1, "control record type 1 is not known"),
        (KEY, b"\x00\x01" + LEVEL_1[2:], "version 1 of KRAFT_VERSION is not known"),
        (
            b"\x00\x00\x00\x05",
            b"\xff\xff" + LEVEL_1[2:],
            "version -1 of KRAFT_VERSION is not known",
        ),
        (KEY, LEVEL_1 + b"\x00", "1 bytes are left after its last field"),
        (KEY, LEVEL_1[:-1], "it is cut off"),
        (KEY, b"", "it is cut off"),
    ],
)
def test_unreadable_control_record_says_why(key: bytes | None, value: bytes, reason: str) -> None:
    """A control record that cannot be read keeps its place with a reason, its bytes apart."""
    result = decoded(framed(value, 0, key=key))
    assert result.records[0]["type"] == UNREADABLE
    assert result.records[0]["data"]["reason"].endswith(reason)
    is_type_known = key is not None and key[-1:] == b"\x05" and len(key) == 4
    shown = f" ({len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()})"
    first = FIRST_OF_KIND if "unknown" in result.records[0]["data"] else ""
    assert result.undecoded[0].reason.endswith(reason + ("" if is_type_known else shown) + first)
    assert result.undecoded[0].payload == (value if is_type_known else b"")


def test_version_is_the_newest_of_the_key() -> None:
    """The key's own version does not matter, as in Kafka (``ControlRecordType.parse``)."""
    record = framed(LEVEL_1, 0, key=struct.pack(">hh", 1, 5))
    assert decoded(record).records[0]["data"] == {"version": 0, "kRaftVersion": 1}
