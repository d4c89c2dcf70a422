"""Commits out of batches: transactions, what cannot be read, and where to resume."""

import hashlib
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.events import DeadLetter, LogCommit
from featurewatch.streams.kraft.commits import AssemblerEvent, CommitAssembler
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import FIRST_OF_KIND
from featurewatch.streams.kraft.records.selection import ALL_RECORDS, DEFAULT_RECORD_TYPES
from featurewatch.streams.types import ClusterId, LastRecord
from tests.streams.kraft.encoding import batch_of, control_framed, data_batch, record_of

CLUSTER = ClusterId("a-cluster")
SEEN_MS = 1_700_000_000_123

VALUES = {
    "F": record_of("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 21}),
    "T": record_of("TOPIC_RECORD", {"name": "t", "topicId": "A" * 22}),
    "N": record_of("NO_OP_RECORD"),
    "(": record_of("BEGIN_TRANSACTION_RECORD", {"name": "several topics"}),
    ")": record_of("END_TRANSACTION_RECORD"),
    "x": record_of("ABORT_TRANSACTION_RECORD", {"reason": "Controller failover"}),
    "?": b"\x01\x7e\x00 from the future",
}
LEADER = {"version": 0, "leaderId": 1, "voters": [], "grantingVoters": []}
LETTERS = {
    "FEATURE_LEVEL_RECORD": "F",
    "TOPIC_RECORD": "T",
    "LEADER_CHANGE": "L",
    "UNREADABLE": "?",
}


def log_of(batches: Sequence[str]) -> bytes:
    """A log: a letter a record, ``L`` a batch of raft's own, ``!`` before a damaged batch.

    Each leader change begins an epoch.
    """
    out, offset, epoch = bytearray(), 0, 0
    for letters in batches:
        records = letters.removeprefix("!")
        if records == "L":
            epoch += 1
            framed = [control_framed(2, LEADER, 0)]
            batch = bytearray(batch_of(framed, offset, leader_epoch=epoch, control=True))
        else:
            values = [VALUES[letter] for letter in records]
            batch = bytearray(data_batch(values, offset, leader_epoch=epoch))
        if letters.startswith("!"):
            batch[30] ^= 1
        out += batch
        offset += len(records)
    return bytes(out)


def run(log: bytes, assembler: CommitAssembler | None = None) -> list[AssemblerEvent]:
    """Everything that a log gives."""
    assembler = assembler or CommitAssembler(CLUSTER)
    return [event for batch in scan_batches(log).batches for event in assembler.add(batch, SEEN_MS)]


def spelled(events: Sequence[AssemblerEvent]) -> str:
    """Commits as ``kind first-last records``, dead letters as ``dead place``."""
    words = []
    for event in events:
        match event:
            case LogCommit():
                records = "".join(LETTERS[record["type"]] for record in event.records)
                words.append(f"{event.kind} {event.first_offset}-{event.last_offset} {records}")
            case DeadLetter():
                words.append(f"dead {event.location.removeprefix('__cluster_metadata-0 ')}")
    return ", ".join(words)


@pytest.mark.parametrize(
    ("log", "commits"),
    [
        # one commit a batch; none for NoOps and for batches without a wanted record
        ("F", "batch 0-0 F"),
        ("L F FF", "batch 0-0 L, batch 1-1 F, batch 2-3 FF"),
        ("N TT F N", "batch 3-3 F"),
        ("TFTFN", "batch 0-4 FF"),
        # transactions: in one batch, over several, empty, after and before others
        ("(F)", "transaction 0-2 F"),
        ("( F )", "transaction 0-2 F"),
        ("(F TF F)", "transaction 0-5 FFF"),
        ("(FN N )", "transaction 0-4 F"),
        ("()", ""),
        ("(T T)", ""),
        ("F(F)", "batch 0-0 F, transaction 1-3 F"),
        ("(F)F", "transaction 0-2 F, batch 3-3 F"),
        ("F(F F)F(F)", "batch 0-0 F, transaction 1-4 FF, batch 5-5 F, transaction 6-8 F"),
        ("T(F)T", "transaction 1-3 F"),
        ("(F", ""),
        # aborted ones are dropped, and what follows is read
        ("(Fx F", "batch 3-3 F"),
        ("(F F x)", "dead offset 4, batch 4-4 ?"),
        ("F(FxF", "batch 0-0 F, batch 4-4 F"),
        ("(x(F)", "transaction 2-4 F"),
        # a new leader writes its record into an open transaction: it does not go with it
        ("L (F L x F", "batch 0-0 L, transaction 1-4 L, batch 5-5 F"),
        ("(F L F)", "transaction 0-4 FLF"),
        # markers where none can be
        (")F", "dead offset 0, batch 0-0 ?, batch 1-1 F"),
        ("xF", "dead offset 0, batch 0-0 ?, batch 1-1 F"),
        ("(F(F)", "dead offset 2, transaction 0-4 F?F"),
        ("(F) )", "transaction 0-2 F, dead offset 3, batch 3-3 ?"),
        # an unreadable record keeps its place and stops nothing
        ("F?F", "dead offset 1, batch 0-2 F?F"),
        ("? T", "dead offset 0, batch 0-0 ?"),
        ("(F? F)", "dead offset 2, transaction 0-4 F?F"),
        ("(F? x", "dead offset 2"),
        ("F !FFF F", "batch 0-0 F, dead batch at offset 1, batch 1-1 ?, batch 4-4 F"),
        ("(F !F) F", "dead batch at offset 2, batch 0-2 ?, batch 4-4 F"),
        ("(F L !F) F", "dead batch at offset 3, batch 0-3 L?, batch 5-5 F"),
    ],
)
def test_commits_of_a_log(log: str, commits: str) -> None:
    """Records of a transaction come together, and only when it is complete (KIP-868)."""
    assert spelled(run(log_of(log.split()))) == commits


def test_a_commit_has_its_provenance() -> None:
    """A commit has its place, epoch and times, and counts what was skipped."""
    (commit,) = run(log_of(["L", "(TF", "T)"]))[1:]
    assert isinstance(commit, LogCommit)
    assert (commit.cluster, commit.leader_epoch, commit.append_ms, commit.seen_ms) == (
        *(CLUSTER, 1),
        *(1_700_000_000_000, SEEN_MS),
    )
    assert commit.skipped == {
        "TOPIC_RECORD": 2,
        "BEGIN_TRANSACTION_RECORD": 1,
        "END_TRANSACTION_RECORD": 1,
    }
    assert commit.id == "a-cluster/kraft/1-5"
    assert [record["offset"] for record in commit.records] == [3]


def test_dead_letter_has_the_bytes_and_the_reason() -> None:
    """Unreadable records are kept with a reason; of an unknown type, only the digest."""
    log = log_of(["F?", "!FF"])
    first, _, second, _ = run(log)
    assert isinstance(first, DeadLetter)
    digest = hashlib.sha256(VALUES["?"]).hexdigest()
    assert first.payload == b""
    shown = f"(version 0, {len(VALUES['?'])} bytes, SHA-256 {digest})"
    assert first.reason == f"record type 126 is not known {shown}{FIRST_OF_KIND}"
    assert isinstance(second, DeadLetter)
    assert second.reason == "the checksum of the record batch does not match its content"
    assert second.payload == log[scan_batches(log).batches[1].at :]


def test_a_damaged_batch_with_a_secret_keeps_only_its_header() -> None:
    """A credential in a damaged batch gets into no dead letter."""
    secret = b"do-not-tell"
    content = {"name": "u", "mechanism": 1, "iterations": 1}
    keys = dict.fromkeys(["salt", "storedKey", "serverKey"], secret)
    scram = record_of("USER_SCRAM_CREDENTIAL_RECORD", {**content, **keys})
    for at in range(17, 90):
        batch = bytearray(data_batch([VALUES["F"], scram]))
        batch[at] ^= 0x04
        (dead_letter, commit) = run(bytes(batch))
        assert isinstance(dead_letter, DeadLetter)
        assert dead_letter.payload == bytes(batch)[:61]
        assert secret not in repr((dead_letter, commit)).encode()


def test_position_stays_before_an_open_transaction() -> None:
    """A source that resumes at the position reads an open transaction from its beginning."""
    assembler = CommitAssembler(CLUSTER)
    positions = []
    for batch in scan_batches(log_of(["L", "F(F", "F", ")N", "L", "(", "x"])).batches:
        assembler.add(batch, SEEN_MS)
        positions.append(assembler.position[:2])
    assert positions == [(0, 1), (1, 1), (1, 1), (6, 1), (7, 2), (7, 2), (9, 2)]
    assert (assembler.records_read, assembler.records_skipped) == (9, 1)


def test_the_position_has_the_checksum_of_its_batch() -> None:
    """Of the batch that holds it: also before a transaction that is open, and inside a batch."""
    batches = scan_batches(log_of(["L", "F(F", ")N", "(", "x"])).batches
    assembler, seen = CommitAssembler(CLUSTER), []
    for batch in batches:
        events = assembler.add(batch, SEEN_MS)
        checksums = [event.checksum for event in events if isinstance(event, LogCommit)]
        seen.append((checksums, assembler.position.checksum))
    control, mixed, end, _, abort = (batch.checksum for batch in batches)
    assert seen == [
        ([control], control),
        ([mixed], mixed),
        ([end], end),
        ([], end),
        ([], abort),
    ]


def test_restart_forgets_an_open_transaction() -> None:
    """After a snapshot the log continues elsewhere, with nothing open."""
    assembler = CommitAssembler(CLUSTER)
    run(log_of(["(F"]), assembler)
    assembler.reset(LastRecord(99, 7))
    assert assembler.position == LastRecord(99, 7)
    later = data_batch([VALUES["F"]], base_offset=100, leader_epoch=7)
    assert spelled(run(later, assembler)) == "batch 100-100 F"


def test_wanted_may_be_everything_but_no_ops() -> None:
    """With every type wanted, topics come too; NoOps never make a commit."""
    assembler = CommitAssembler(CLUSTER, ALL_RECORDS)
    assert spelled(run(log_of(["N", "TN", "(T)"]), assembler)) == "batch 1-2 T, transaction 3-5 T"


LOGS = st.lists(st.text("FTN()x?", min_size=1, max_size=6) | st.just("L"), max_size=12)


@settings(max_examples=300)
@given(batches=LOGS, data=st.data())
def test_every_split_into_reads_gives_the_same(batches: list[str], data: st.DataObject) -> None:
    """However a log is cut into reads, the commits and the position are the same."""
    log = log_of(batches)
    whole = CommitAssembler(CLUSTER)
    expected = run(log, whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=8)))
    pieced, events, held = CommitAssembler(CLUSTER), [], b""
    for start, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        held += log[start:end]
        events += run(held, pieced)
        held = held[scan_batches(held).consumed :]
    assert events == expected
    assert pieced.position == whole.position


def without_repetitions(events: Iterable[AssemblerEvent]) -> list[AssemblerEvent]:
    """The events without what depends on the unknown records that one process saw before."""
    kept = []
    for event in events:
        if isinstance(event, DeadLetter) and event.reason.endswith(FIRST_OF_KIND):
            continue
        if isinstance(event, LogCommit):
            for record in event.records:
                record["data"].pop("repeated", None)
        kept.append(event)
    return kept


@settings(max_examples=300)
@given(batches=LOGS)
def test_resuming_after_any_batch_loses_nothing(batches: list[str]) -> None:
    """Stopped after any batch and resumed at the position, every commit has come once or again."""
    log = log_of(batches)
    everything = without_repetitions(run(log))
    assembler = CommitAssembler(CLUSTER)
    before: list[AssemblerEvent] = []
    for batch in scan_batches(log).batches:
        before += without_repetitions(assembler.add(batch, SEEN_MS))
        after = without_repetitions(run(log, CommitAssembler(CLUSTER, position=assembler.position)))
        ids = [event.id for event in before]
        # Dead letters of an open transaction come again: their id tells it.
        assert before + [event for event in after if event.id not in ids] == everything
        assert all(isinstance(event, DeadLetter) for event in after if event.id in ids)


@settings(max_examples=300)
@given(batches=LOGS)
def test_every_record_is_accounted_for(batches: list[str]) -> None:
    """Commits lie in order, apart, and hold or count each record in them but dropped ones."""
    end = -1
    for event in run(log_of(batches)):
        if isinstance(event, LogCommit):
            assert event.first_offset > end
            end = event.last_offset
            held = len(event.records) + sum(event.skipped.values())
            assert held <= event.last_offset - event.first_offset + 1
            if "ABORT_TRANSACTION_RECORD" not in event.skipped:
                assert held == event.last_offset - event.first_offset + 1


def test_default_set_has_no_partitions() -> None:
    """The records that a feature monitor reads do not grow with topics and partitions."""
    assert not [kind for kind in DEFAULT_RECORD_TYPES if "TOPIC" in kind or "PARTITION" in kind]


def test_a_transaction_without_an_end_is_not_held_as_a_whole() -> None:
    """60 MiB of topics in one transaction: what cannot be published is counted, the level stays."""
    topic = record_of("TOPIC_RECORD", {"name": "x" * 30_000, "topicId": "A" * 22})
    assembler = CommitAssembler(CLUSTER, ALL_RECORDS)
    events, offset = run(data_batch([VALUES["("], VALUES["F"]]), assembler), 2
    content = data_batch([topic] * 100)
    for _ in range(20):
        events += run(offset.to_bytes(8, "big") + content[8:], assembler)
        offset += 100
        assert assembler._open is not None
        assert len(assembler._open.records) < 600
    events += run(data_batch([VALUES[")"]], offset), assembler)
    *letters, commit = events
    assert isinstance(commit, LogCommit)
    assert (commit.first_offset, commit.last_offset) == (0, offset)
    assert commit.records[0]["type"] == "FEATURE_LEVEL_RECORD"
    assert len(commit.records) - 1 + commit.skipped["TOPIC_RECORD"] == 2_000
    assert 1 <= len(letters) <= 6
