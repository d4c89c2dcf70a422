"""The levels that a node replays when it starts: of its snapshot, and of the log after it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from featurewatch.streams.kraft.directory.startup import StartupLevels, read_startup
from featurewatch.streams.kraft.errors import DamagedDirectoryError, NotALogDirectoryError
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName
from tests.streams.kraft.directory.log_directory import CLUSTER, LogDirectory, entry
from tests.streams.kraft.encoding import data_batch, record_of, snapshot_batches


def level(name: str, number: int) -> bytes:
    """A record that finalizes a level."""
    return record_of("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": number})


def replays(snapshot_end: int, end: int, levels: Mapping[tuple[str, int], int]) -> StartupLevels:
    """What is expected."""
    typed = {(FeatureName(name), FeatureLevel(one)): at for (name, one), at in levels.items()}
    return StartupLevels(snapshot_end, end, typed)


class NodeDirectory(LogDirectory):
    """The directory of node 3."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\nnode.id=3\n")

    def snapshot_of(self, end: int, *levels: tuple[str, int]) -> None:
        """A snapshot of some levels."""
        self.snapshot(end, 1, b"".join(snapshot_batches([level(*one) for one in levels])))

    def read(self) -> StartupLevels:
        """What the node replays."""
        return read_startup(self.root, ClusterId(CLUSTER), 3)


@pytest.fixture
def raised_and_lowered(tmp_path: Path) -> NodeDirectory:
    """A log that raises a level at offset 10, lowers it at 20, and ends at 40; in two segments."""
    found = NodeDirectory(tmp_path / "data")
    found.append(0, data_batch([level("m", 27), level("s", 1)]), entry(2, 1, 0, 8))
    found.append(0, data_batch([level("m", 29)], 10), entry(11, 1, 0, 9))
    found.append(20, data_batch([level("m", 27)], 20), entry(21, 1, 0, 19))
    return found


def test_without_a_snapshot_everything_is_replayed(raised_and_lowered: NodeDirectory) -> None:
    """Also what was lowered since."""
    levels = {("m", 27): 20, ("m", 29): 10, ("s", 1): 1}
    assert raised_and_lowered.read() == replays(0, 40, levels)


@pytest.mark.parametrize(
    ("end", "snapshot", "replayed"),
    [
        (10, 27, {("m", 29): 10, ("m", 27): 20}),
        (11, 29, {("m", 29): 10, ("m", 27): 20}),
        (15, 29, {("m", 29): 14, ("m", 27): 20}),
        (20, 29, {("m", 29): 19, ("m", 27): 20}),
        (21, 27, {("m", 27): 20}),
        (35, 27, {("m", 27): 34}),
        (40, 27, {("m", 27): 39}),
    ],
)
def test_the_log_counts_from_the_snapshot_on(
    raised_and_lowered: NodeDirectory,
    end: int,
    snapshot: int,
    replayed: dict[tuple[str, int], int],
) -> None:
    """Older segments and snapshots stay for days, and are not read."""
    raised_and_lowered.snapshot_of(5, ("m", 25))
    raised_and_lowered.snapshot_of(end, ("m", snapshot))
    assert raised_and_lowered.read() == replays(end, 40, replayed)


def test_a_batch_is_cut_at_the_snapshot(tmp_path: Path) -> None:
    """A transaction may be cut: only the records from the end offset on are replayed."""
    node = NodeDirectory(tmp_path / "data")
    node.append(0, data_batch([level("m", 29), level("m", 27), level("s", 1)]))
    node.snapshot_of(1, ("m", 29))
    assert node.read() == replays(1, 3, {("m", 29): 0, ("m", 27): 1, ("s", 1): 2})


def test_a_log_that_begins_at_its_snapshot(tmp_path: Path) -> None:
    """What was before is deleted, or was never there."""
    node = NodeDirectory(tmp_path / "data")
    node.snapshot_of(100, ("m", 27))
    node.append(100)
    assert node.read() == replays(100, 100, {("m", 27): 99})
    node.append(100, data_batch([level("m", 28)], 100))
    assert node.read() == replays(100, 101, {("m", 27): 99, ("m", 28): 100})


def test_a_torn_end_and_files_that_are_no_snapshots_are_ignored(
    raised_and_lowered: NodeDirectory,
) -> None:
    """Kafka writes a snapshot under another name first."""
    before = raised_and_lowered.read()
    part = raised_and_lowered.log / f"{30:020}-{1:010}.checkpoint.123.part"
    part.write_bytes(b"half")
    raised_and_lowered.append(20, entry(40, 1, 0)[:-3])
    assert raised_and_lowered.read() == before


def _gap(node: NodeDirectory) -> None:
    node.append(50, entry(50, 1, 0))


def _flipped(node: NodeDirectory) -> None:
    path = node.log / f"{20:020}.log"
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)


def _cut_snapshot(node: NodeDirectory) -> None:
    node.snapshot(30, 1, b"".join(snapshot_batches([level("m", 27)])[:-1]))


def _unknown_version(node: NodeDirectory) -> None:
    value = bytearray(level("m", 27))
    value[2] = 9
    node.append(20, data_batch([bytes(value)], 40))


def _no_beginning(node: NodeDirectory) -> None:
    (node.log / f"{0:020}.log").unlink()


def _no_segments(node: NodeDirectory) -> None:
    for path in node.log.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_gap, "a segment begins at offset 50, and not at 40"),
        (_flipped, "offset 20: the checksum"),
        (_cut_snapshot, "it is cut off before its footer"),
        (_unknown_version, "offset 40: "),
        (_no_beginning, "it begins at offset 20, and has no snapshot of that"),
        (_no_segments, "it has no segments"),
    ],
)
def test_damage_is_no_answer(
    raised_and_lowered: NodeDirectory, damage: object, reason: str
) -> None:
    """One line that says what and where."""
    assert callable(damage)
    damage(raised_and_lowered)
    with pytest.raises(DamagedDirectoryError, match=reason) as caught:
        raised_and_lowered.read()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (f"cluster.id={CLUSTER}\nnode.id=2\n", "is of node 2 of cluster"),
        ("cluster.id=other\nnode.id=3\n", "of cluster other: pass metadata.log.dir"),
        (f"cluster.id={CLUSTER}\nbroker.id=3\n", "has no meta.properties that names its node"),
        ("", "has no meta.properties that names its node"),
    ],
)
def test_the_directory_of_another_node_is_refused(
    raised_and_lowered: NodeDirectory, meta: str, reason: str
) -> None:
    """The other node's snapshot says nothing of this one."""
    (raised_and_lowered.root / "meta.properties").write_text(meta)
    with pytest.raises(NotALogDirectoryError, match=reason):
        raised_and_lowered.read()


def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    """One line."""
    with pytest.raises(NotALogDirectoryError, match=r"there is no directory .*/none: pass"):
        read_startup(tmp_path / "none", ClusterId(CLUSTER), 3)
