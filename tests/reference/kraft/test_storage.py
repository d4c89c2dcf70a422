"""A replica's disk: what comes back after a restart, a torn write, a crash, and damage."""

import subprocess
import sys
from pathlib import Path
from random import Random
from uuid import UUID

import orjson
import pytest

from featurewatch.reference.kraft.formats import DamagedStorageError
from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    LEADER_CHANGE,
    Batch,
    control_batch,
    data_batch,
)
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    Append,
    Flush,
    InstallSnapshot,
    Persist,
    QuorumState,
    Truncate,
    WriteSnapshot,
)
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from featurewatch.reference.kraft.storage import (
    Durable,
    Identity,
    Storage,
    format_directory,
    open_storage,
)
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.kraft.directory.formatted import read_formatted
from featurewatch.streams.kraft.directory.reader import LogDirectoryReader
from featurewatch.streams.kraft.observer.states import CommittedBatches
from featurewatch.streams.types import LOG_START, OffsetAndEpoch
from tests.conformance.dump_log import differences, kafkas, ours
from tests.reference.kraft.machines.driving import VOTERS
from tests.simulation.kraft.world import snapshot_of
from tests.streams.kraft.log_bytes import NOOP

IDENTITY = Identity("k3nkSGPhQsiT8EDDBw8qVg", 3, UUID(int=77))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A formatted directory."""
    format_directory(tmp_path / "data", IDENTITY)
    return tmp_path / "data"


def reopened(storage: Storage, root: Path, segment_bytes: int = 300) -> Storage:
    """The directory after a clean end."""
    storage.close()
    return open_storage(root, VOTERS, segment_bytes=segment_bytes)


def opened(root: Path, segment_bytes: int = 300) -> Storage:
    """The directory, with segments of a few batches."""
    return open_storage(root, VOTERS, segment_bytes=segment_bytes)


def write(storage: Storage, *effects: Durable) -> None:
    """Performs effects, on the disk and on the log in memory."""
    for effect in effects:
        assert storage.perform(effect, storage.log)
        match effect:
            case Append(batches):
                storage.log.append(batches)
            case Truncate(offset):
                storage.log.truncate(offset)
            case WriteSnapshot(snapshot, data, trims):
                storage.log.add_snapshot(snapshot, data, trims=trims)
            case InstallSnapshot(snapshot, data):
                storage.log.install(snapshot, data)
            case _:
                pass


def append(log: Log, epoch: int, count: int = 2) -> Append:
    """The next batch."""
    return Append((data_batch(log.end, epoch, 1000, [NOOP] * count),))


def flush(log: Log) -> Flush:
    """A flush of the whole log."""
    return Flush(log.end, log.last_epoch)


def content(log: Log) -> tuple[object, ...]:
    """What must come back: the snapshots, and the log from the newest one on."""
    newest = max(log.snapshots, default=LOG_START)
    batches = [batch for batch in log.batches if batch.base >= newest.offset]
    kept = sorted(log.snapshots)
    return (kept, log.snapshots.get(newest), batches, log.end, log.last_epoch)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_written_comes_back(root: Path, seed: int) -> None:
    """After any appends, cuts, snapshots and restarts, over many segments."""
    random, storage, epoch = Random(seed), opened(root), 1
    for _ in range(60):
        log = storage.log
        at = OffsetAndEpoch(log.end, log.last_epoch)
        match random.choice("aaaaaatswir"):
            case "a":
                epoch += random.randint(0, 1)
                write(storage, append(log, epoch, random.randint(1, 4)))
            case "t":
                offset = random.randint(log.start.offset, log.end)
                cut = next((one.base for one in log.batches if one.last >= offset), log.end)
                floor = max([log.start.offset, *(one.offset for one in log.snapshots)])
                if cut >= floor:
                    write(storage, Truncate(cut))
            case "s" | "w" if at.offset > max([0, *(one.offset for one in log.snapshots)]):
                trims = random.random() < 0.5
                write(storage, WriteSnapshot(at, snapshot_of(at), trims))
            case "i" if random.random() < 0.3:
                epoch += 1
                at = OffsetAndEpoch(log.end + random.randint(1, 9), epoch)
                write(storage, InstallSnapshot(at, snapshot_of(at)))
            case "r":
                expected = content(log)
                storage = reopened(storage, root)
                assert content(storage.log) == expected
            case _:
                pass
    expected = content(storage.log)
    storage = reopened(storage, root)
    assert content(storage.log) == expected
    storage.close()


@pytest.mark.parametrize("voted", [None, ReplicaKey(1), ReplicaKey(2, UUID(int=9))])
def test_the_quorum_state(root: Path, voted: ReplicaKey | None) -> None:
    """It comes back as it was, in version 0; with voters in the log in version 1, by directory."""
    storage = opened(root)
    write(storage, Persist(QuorumState(7, 2, voted and ReplicaKey(voted.id))))
    storage = reopened(storage, root)
    assert storage.state == QuorumState(7, 2, voted and ReplicaKey(voted.id))
    path = root / "__cluster_metadata-0/quorum-state"
    assert orjson.loads(path.read_bytes())["currentVoters"] == [
        {"voterId": one} for one in (1, 2, 3)
    ]
    level = {"version": 0, "kRaftVersion": 1}
    write(storage, Append((control_batch(0, 1, 0, [(KRAFT_VERSION, level)]),)))
    write(storage, Persist(QuorumState(8, -1, voted)))
    storage = reopened(storage, root)
    assert storage.state == QuorumState(8, -1, voted)
    assert orjson.loads(path.read_bytes())["data_version"] == 1
    storage.close()


def log_path(root: Path, base: int = 0) -> Path:
    """The file of a segment."""
    return root / f"__cluster_metadata-0/{base:020}.log"


def written(root: Path, segment_bytes: int = 1 << 20) -> tuple[Path, list[Batch]]:
    """A directory with three batches in a closed log."""
    storage = opened(root, segment_bytes)
    for epoch in (1, 1, 2):
        write(storage, append(storage.log, epoch), flush(storage.log))
    storage.close()
    return log_path(root), storage.log.batches


def test_a_torn_write_is_cut_off(root: Path) -> None:
    """Wherever the last batch ends too early, it is removed, and the log continues before it."""
    path, batches = written(root)
    whole, epochs = path.read_bytes(), path.parent / "leader-epoch-checkpoint"
    checkpoint = epochs.read_bytes()
    for cut in range(1, len(batches[2].data) + 1):
        path.write_bytes(whole[:-cut])
        epochs.write_bytes(checkpoint)
        storage = opened(root, 1 << 20)
        assert storage.log.batches == batches[:2]
        write(storage, append(storage.log, 3))
        storage.close()
        assert path.read_bytes()[: -len(batches[2].data)] == whole[: -len(batches[2].data)]
    path.write_bytes(whole + bytes(4096))
    epochs.write_bytes(checkpoint)
    storage = opened(root, 1 << 20)
    assert storage.log.batches == batches
    storage.close()


def test_a_torn_last_batch_of_full_length_is_cut_off(root: Path) -> None:
    """Its checksum shows that not all of it was written."""
    path, batches = written(root)
    path.write_bytes(path.read_bytes()[:-3] + b"\0\0\1")
    storage = opened(root)
    assert storage.log.batches == batches[:2]
    storage.close()


def spoil_middle(root: Path) -> None:
    """Changes a byte of the second batch."""
    data = bytearray(log_path(root).read_bytes())
    data[len(data) // 2] ^= 1
    log_path(root).write_bytes(data)


def spoil_epochs(root: Path) -> None:
    """Lets the checkpoint say another epoch."""
    (root / "__cluster_metadata-0/leader-epoch-checkpoint").write_text("0\n1\n9 0\n")


def spoil_state(root: Path) -> None:
    """Cuts the quorum state off."""
    (root / "__cluster_metadata-0/quorum-state").write_text('{"leaderId":1,')


def spoil_snapshot(root: Path) -> None:
    """Adds a snapshot without a footer."""
    at = OffsetAndEpoch(4, 1)
    path = root / f"__cluster_metadata-0/{at.offset:020}-{at.epoch:010}.checkpoint"
    path.write_bytes(snapshot_of(at)[:-1])


def spoil_meta(root: Path) -> None:
    """Removes the node's id."""
    (root / "meta.properties").write_text("version=1\ncluster.id=x\n")


def remove_segment(root: Path) -> None:
    """Removes a segment between two others."""
    log_path(root, 2).unlink()


def cut_segment(root: Path) -> None:
    """Cuts a segment off that is not the last."""
    log_path(root, 0).write_bytes(log_path(root, 0).read_bytes()[:-5])


def remove_first_segment(root: Path) -> None:
    """Removes the start of the log."""
    log_path(root, 0).unlink()


def remove_format(root: Path) -> None:
    """Removes the format."""
    (root / "meta.properties").unlink()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_middle, "damaged at byte"),
        (spoil_epochs, "epoch 9 begins at offset 0, where the log has epoch 1"),
        (spoil_state, "a voter that forgets its vote"),
        (spoil_snapshot, "checkpoint is damaged"),
        (spoil_meta, "meta.properties is damaged"),
        (remove_segment, "a segment is missing"),
        (cut_segment, "damaged at byte"),
        (remove_first_segment, "no snapshot for the start"),
        (remove_format, "is not formatted"),
    ],
)
def test_damage(root: Path, spoil: object, reason: str) -> None:
    """What a crash cannot have left behind is one line that names the file, and changes nothing."""
    many = spoil in (remove_segment, cut_segment, remove_first_segment)
    written(root, 100 if many else 1 << 20)
    assert callable(spoil)
    spoil(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(DamagedStorageError) as error:
        opened(root)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_another_node_or_cluster(root: Path) -> None:
    """A directory of another node or cluster is refused, and a second format too."""
    for expected in ({"cluster_id": "other"}, {"node_id": 4}):
        with pytest.raises(DamagedStorageError, match=r"not (other|4)"):
            open_storage(root, VOTERS, **expected)
    with pytest.raises(DamagedStorageError, match="formatted already"):
        format_directory(root, IDENTITY)


def test_two_processes(root: Path) -> None:
    """A directory that another process has open is refused."""
    storage = opened(root)
    program = (
        "import sys; from pathlib import Path\n"
        "from featurewatch.reference.kraft.machines.replicas import VoterSet\n"
        "from featurewatch.reference.kraft.storage import open_storage\n"
        f"open_storage(Path({str(root)!r}), VoterSet(()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    storage.close()
    assert "is in use by another process" in done.stderr


class _CrashError(Exception):
    """The process ends."""


@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("kind", ["trim", "cut", "install", "diverged"])
def test_crashes_while_the_log_is_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str, after: int
) -> None:
    """Between any two changes of names, the old log or the new one comes back, whole."""
    storage = opened(root, 1 << 20 if kind == "cut" else 100)
    for epoch in (1, 1, 2, 2, 3):
        write(storage, append(storage.log, epoch), flush(storage.log))
    before = content(storage.log)
    at = {"install": (50, 9), "diverged": (6, 9)}.get(kind, (6, 2))
    snapshot = OffsetAndEpoch(*at)
    effect: Durable = InstallSnapshot(snapshot, snapshot_of(snapshot))
    if kind in ("trim", "cut"):
        effect = WriteSnapshot(snapshot, snapshot_of(snapshot), trims=True)
    count = 0

    def counted(method: str) -> None:
        original = getattr(Path, method)

        def change(self: Path, *arguments: object) -> object:
            nonlocal count
            count += 1
            if count > after:
                raise _CrashError
            return original(self, *arguments)

        monkeypatch.setattr(Path, method, change)

    counted("replace")
    counted("unlink")
    crashed = True
    try:
        storage.perform(effect, storage.log)
        crashed = False
    except _CrashError:
        pass
    monkeypatch.undo()
    storage._lock.close()
    after_crash = opened(root, 100)
    assert kind != "cut" or crashed or log_path(root, 6).exists() > log_path(root).exists()
    memory = Log(VOTERS)
    memory.append(storage.log.batches)
    if kind in ("trim", "cut"):
        memory.add_snapshot(snapshot, snapshot_of(snapshot), trims=True)
    else:
        memory.install(snapshot, snapshot_of(snapshot))
    found = content(after_crash.log)
    assert found in (before, content(memory))
    assert crashed or found == content(memory)
    write(after_crash, append(after_crash.log, 10), flush(after_crash.log))
    expected = content(after_crash.log)
    again = reopened(after_crash, root)
    assert content(again.log) == expected
    again.close()


# -- Kafka's own -----------------------------------------------------------------------------------


def metadata_log(root: Path) -> Storage:
    """A log with a leader's record, data and a snapshot."""
    storage = opened(root, 1 << 20)
    change = {
        "version": 0,
        "leaderId": 3,
        "voters": [{"voterId": 3}],
        "grantingVoters": [{"voterId": 3}],
    }
    write(storage, Append((control_batch(0, 1, 1000, [(LEADER_CHANGE, change)]),)))
    for _ in range(2):
        write(storage, append(storage.log, 1), flush(storage.log))
    at = OffsetAndEpoch(3, 1)
    write(storage, WriteSnapshot(at, snapshot_of(at), trims=False))
    write(storage, Persist(QuorumState(1, 3, ReplicaKey(3))))
    return storage


async def test_our_reader_reads_it(root: Path) -> None:
    """The source that follows a log directory reads the log that was written."""
    metadata_log(root).close()
    formatted = read_formatted(root)
    assert (formatted.meta.cluster, formatted.meta.node) == (IDENTITY.cluster_id, 3)
    reader = LogDirectoryReader(root, IDENTITY.cluster_id, LOG_START, settle_ms=1000, poll_ms=1)
    offsets = [
        batch.base_offset
        for _ in range(4)
        for output in await reader.read()
        if isinstance(output, CommittedBatches)
        for batch in output.batches
    ]
    assert offsets == [0, 1, 3]
    assert reader.progress.leader == (3, 1)
    await reader.close()


def test_the_voters_of_the_format(tmp_path: Path) -> None:
    """A snapshot at offset 0 has the voters; they are not in a replicated log yet (KIP-853)."""
    data = snapshot_of(LOG_START, VOTERS)
    format_directory(tmp_path / "data", IDENTITY, data)
    storage = opened(tmp_path / "data")
    assert storage.log.voters.ids == (1, 2, 3)
    assert (storage.log.kraft_version, storage.log.voters_offset) == (1, -1)
    storage.close()


@pytest.mark.stack
@pytest.mark.releases("4.3.1")
def test_kafkas_tool_reads_it(root: Path, release: str, stack_cache: Cache) -> None:
    """DumpLogSegments shows the same records as our decoder, of the segment and the snapshot."""
    metadata_log(root).close()
    snapshot = root / "__cluster_metadata-0" / f"{3:020}-{1:010}.checkpoint"
    for file, count in ((log_path(root), 5), (snapshot, 2)):
        printed = kafkas(file, release, stack_cache)
        assert len(printed) == count
        assert differences(printed, ours(file)) == []
