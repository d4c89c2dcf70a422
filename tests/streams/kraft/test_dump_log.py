"""The text of kafka-dump-log as batches; what the tool really prints is in tests/conformance."""

import io
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import UNREADABLE, DeadLetter, LogCommit, SnapshotChunk
from featurewatch.streams.kraft import dump_log
from featurewatch.streams.kraft.dump_log import (
    DumpLogAssembler,
    DumpLogDecoder,
    DumpLogSnapshotReader,
    is_dump_log,
    scan_text,
    sections,
)
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES
from featurewatch.streams.topics import DEAD_LETTERS, METADATA_LOG
from featurewatch.streams.types import ClusterId, OffsetAndEpoch
from tests.forging import JSON
from tests.streams.kraft.dump_text import LEVEL, NOOP, PRINTED_LOG, batch, payload

CLUSTER = ClusterId("cluster")


def decoded(text: str) -> list[tuple[int, str]]:
    """Offset and type of what is wanted of a text."""
    scan = scan_text(text.encode(), whole=True)
    decoder = DumpLogDecoder(DEFAULT_RECORD_TYPES)
    return [
        (record["offset"], record["type"])
        for text_batch in scan.batches
        for record in decoder.decode(text_batch).records
    ]


def test_wanted_records_are_read_and_others_counted() -> None:
    """Of a printed log the wanted records come out, with their offsets and what else there is."""
    assembler = DumpLogAssembler(CLUSTER)
    events = [
        event
        for text_batch in scan_text(PRINTED_LOG.encode(), whole=True).batches
        for event in assembler.add(text_batch, 5)
    ]
    (commit,) = events
    assert isinstance(commit, LogCommit)
    assert (commit.first_offset, commit.last_offset, commit.leader_epoch) == (1, 3, 4)
    assert commit.append_ms == 1700
    assert commit.skipped == {"NO_OP_RECORD": 1, "TOPIC_RECORD": 1}
    assert commit.records == [
        {
            "offset": 3,
            "type": "FEATURE_LEVEL_RECORD",
            "version": 0,
            "data": {"name": "a", "featureLevel": 3},
        }
    ]


def test_records_without_their_numbers_are_counted_up() -> None:
    """With --skip-record-metadata a line has no offset: it follows from the batch."""
    head = batch(7, *payload(NOOP, LEVEL)).split("\n")[0]
    text = f"{head}\n| payload: {NOOP}\n| payload: {LEVEL}\n"
    assert decoded(text) == [(8, "FEATURE_LEVEL_RECORD")]


def test_a_text_in_pieces_gives_the_batches_of_the_whole() -> None:
    """Wherever a read ends, a batch whose lines are not all in it is left for the next."""
    content = PRINTED_LOG.encode()
    for cut in range(len(content) + 1):
        first = scan_text(content[:cut], whole=False)
        rest = scan_text(content[first.consumed :], whole=True)
        offsets = [text_batch.base_offset for text_batch in (*first.batches, *rest.batches)]
        assert offsets == [0, 1, 4]
        assert not any(text_batch.error for text_batch in (*first.batches, *rest.batches))


def test_a_text_that_is_cut_off_has_a_batch_that_is_damaged() -> None:
    """A batch of which records are missing is not read, and neither is one of a bad checksum."""
    torn = PRINTED_LOG[: PRINTED_LOG.rindex("| offset")]
    *_, last = scan_text(torn.encode(), whole=True).batches
    assert last.error == "0 of the 1 records of the record batch are printed"
    (bad,) = scan_text(batch(0, *payload(NOOP), valid=False).encode(), whole=True).batches
    assert "checksum" in bad.error


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("payload: Error at offset 3, skipping. Unknown key", "could not print"),
        (
            'payload: {"type":"NEWER_RECORD","version":0,"data":{}}',
            "NEWER_RECORD is not known",
        ),
        ('payload: {"type":"FEATURE_LEVEL_RECORD","version":0,"da', "cut off or not JSON"),
        ('payload: {"type":"FEATURE_LEVEL_RECORD","version":0}', "without a version and data"),
    ],
)
def test_a_line_without_content_is_unreadable(line: str, reason: str) -> None:
    """A record that the tool could not print keeps its place with a reason; the rest is read."""
    (text_batch,) = scan_text(batch(0, line, *payload(LEVEL)).encode(), whole=True).batches
    decoded = DumpLogDecoder(DEFAULT_RECORD_TYPES).decode(text_batch)
    assert [record["type"] for record in decoded.records] == [UNREADABLE, "FEATURE_LEVEL_RECORD"]
    assert reason in decoded.undecoded[0].reason
    assert decoded.undecoded[0].payload == b""


def test_sections_are_the_files_in_the_text() -> None:
    """Each file's lines are a section with its name, wherever they are."""
    text = (
        f"Dumping /a/1.log\nLog starting offset: 0\n{PRINTED_LOG}Dumping /b/2.log\n{PRINTED_LOG}"
    ).encode()
    assert is_dump_log(text)
    first, second = sections(io.BytesIO(text))
    assert (first.name, second.name) == ("/a/1.log", "/b/2.log")
    for section in (first, second):
        scan = scan_text(text[section.start : section.end], whole=True)
        assert [batch.base_offset for batch in scan.batches] == [0, 1, 4]
    (only,) = sections(io.BytesIO(PRINTED_LOG.encode()))
    assert (only.name, only.start, only.end) == ("", 0, len(PRINTED_LOG))


def test_text_before_the_first_file_name_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor's mark, blank lines and a logger's are left out, batches are not; wherever a read
    ends."""
    named = f"Dumping /a/1.log\n{PRINTED_LOG}".encode()
    for before in (
        b"\n",
        b"\xef\xbb\xbf",
        b"SLF4J: No binding\n\nlog4j:WARN x\n",
        PRINTED_LOG.encode(),
    ):
        assert is_dump_log(before + named)
        for size in (1, 5, 17, 4 << 20):
            monkeypatch.setattr(dump_log, "_PIECE_BYTES", size)
            *nameless, section = sections(io.BytesIO(before + named))
            assert section == ("/a/1.log", len(before), len(before + named))
            assert nameless == ([("", 0, len(before))] if before == PRINTED_LOG.encode() else [])


def test_other_texts_and_bytes_are_none_of_the_tool() -> None:
    """Lines that speak of dumps, and a log that holds the tool's words as a value."""
    assert not is_dump_log(b"INFO starting\nDumping the heap\n")
    assert not is_dump_log(b"\0\0\0\7\nbaseOffset: 1 lastOffset: 2 count: 2\n")
    assert not is_dump_log(b"")


def test_a_printed_snapshot_without_its_footer_is_refused() -> None:
    """The last chunk of a snapshot comes from a whole text alone."""
    header = batch(0, 'SnapshotHeader {"version":0,"lastContainedLogTimestamp":9}', control=True)
    footer = batch(2, 'SnapshotFooter {"version":0}', control=True)
    body = batch(1, *payload(LEVEL))
    reader = DumpLogSnapshotReader(CLUSTER, OffsetAndEpoch(50, 3))
    out = reader.feed((header + body + footer).encode(), 1) + reader.end_of_text(1)
    chunk = reader.finish(1)
    assert out == []
    assert isinstance(chunk, SnapshotChunk)
    assert (chunk.append_ms, len(chunk.records), chunk.last) == (9, 1, True)
    torn = DumpLogSnapshotReader(CLUSTER, OffsetAndEpoch(50, 3))
    torn.feed((header + body).encode(), 1)
    torn.end_of_text(1)
    with pytest.raises(CorruptSnapshotError, match="cut off before its footer"):
        torn.finish(1)


HEADER = 'SnapshotHeader {"version":0,"lastContainedLogTimestamp":9}'
FOOTER = 'SnapshotFooter {"version":0}'
PRINTED_SNAPSHOT = (
    batch(0, HEADER, control=True) + batch(1, *payload(LEVEL)) + batch(2, FOOTER, control=True)
)
CONTROL = st.builds(
    "{} {}".format,
    st.sampled_from(["SnapshotHeader", "SnapshotFooter", "KRaftVersion", "LeaderChange", "x"]),
    st.dictionaries(
        st.sampled_from(["version", "lastContainedLogTimestamp", "leaderId", "voters"]), JSON
    ).map(lambda data: orjson.dumps(data).decode()),
)
DATA = st.builds(
    'payload: {{"type":"{}","version":{},"data":{}}}'.format,
    st.sampled_from(["FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "x"]),
    st.sampled_from(["0", "-1", "1.5", "9" * 30, "null"]),
    JSON.map(lambda data: orjson.dumps(data).decode()) | st.just("[" * 500 + "]" * 500),
)
DEEP = f'{{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{{"name":{"[" * 400}{"]" * 400}}}}}'
NUMBERS = st.sampled_from([0, 1, 2**63 - 1, 2**63, 10**30])
BATCHES = st.builds(
    lambda base, lines, is_control: batch(base, *lines, control=is_control),
    NUMBERS,
    st.lists(CONTROL | DATA | st.just(HEADER) | st.just(FOOTER), min_size=1, max_size=3),
    st.booleans(),
)
LINES = (
    *(line + "\n" for line in PRINTED_SNAPSHOT.splitlines()),
    *("Dumping /x/00000000000000000000.log\n", "\ufeff", "9" * 5_000, "\n", " "),
    "baseOffset: 0 lastOffset: 0 count: 0 partitionLeaderEpoch: 9 isControl: true "
    f"CreateTime: {'9' * 5_000} isvalid: true\n",
)
TEXTS = st.lists(BATCHES | st.sampled_from(LINES) | st.text(max_size=20), max_size=6).map("".join)


def encode_all(events: Iterable[Any]) -> None:
    """Each as the message that replay ingests."""
    for event in events:
        encode(DEAD_LETTERS if isinstance(event, DeadLetter) else METADATA_LOG, event)


@pytest.mark.fuzz
@settings(max_examples=200)
@example(batch(0, "SnapshotHeader {}", control=True), 0, 0, "")
@example(batch(10**30, *payload(NOOP)), 0, 0, "")
@example(LINES[-1], 0, 0, "")
@example(batch(0, *payload(DEEP)), 0, 0, "")
@example("baseOffset: 0 lastOffset: 0 count: 0 " + "partitionLeaderEpoch: 1 " * 9_000, 0, 0, "")
@example(batch(0, "key: " * 200_000), 0, 0, "")
@given(texts=TEXTS, at=st.integers(0, 3_000), size=st.integers(0, 40), patch=st.text(max_size=20))
def test_any_text_is_batches_with_records_or_with_an_error(
    texts: str, at: int, size: int, patch: str
) -> None:
    """Random lines, and a printed log that was written over: nothing is raised but what a damaged
    snapshot raises."""
    written_over = PRINTED_SNAPSHOT[:at] + patch + PRINTED_SNAPSHOT[at + size :]
    for text in (texts, written_over):
        content = text.encode()
        is_dump_log(content)
        assert all(section.end <= len(content) for section in sections(io.BytesIO(content)))
        assembler = DumpLogAssembler(CLUSTER)
        for scanned in scan_text(content, whole=True).batches:
            if not scanned.error:
                encode_all(assembler.add(scanned, 5))
        reader = DumpLogSnapshotReader(CLUSTER, OffsetAndEpoch(9, 4))
        with suppress(CorruptSnapshotError):
            encode_all([*reader.feed(content, 5), *reader.end_of_text(5), reader.finish(5)])
