"""The loader: one image for each level, snapshots before and after a change, torn input."""

from typing import Any, Final

import pytest

from featurewatch.reference.kraft.machines.batches import Batch, control_batch, data_batch
from featurewatch.reference.kraft.machines.broker.loader import (
    SNAPSHOT_BYTES,
    ImagePublished,
    Loader,
    LoaderEffect,
    SnapshotMade,
    SnapshotRefused,
)
from featurewatch.reference.kraft.machines.broker.protocol import LevelUnsupported, WriteLog
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.levels import Loss
from featurewatch.reference.kraft.machines.metadata.records import Record, record_bytes
from featurewatch.reference.kraft.machines.metadata.snapshots import (
    at_level,
    read_snapshot,
    snapshot_bytes,
    state_of,
)
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    OffsetAndEpoch,
)
from tests.reference.kraft.machines.content import TOPIC, of_type

EPOCH: Final = 3
NOW_MS: Final = 1_700_000_000_000
UNKNOWN: Final = b"\x01\x7f\x00\x00"
"""A record of type 127."""
BEGIN: Final = of_type("BEGIN_TRANSACTION_RECORD")
END: Final = of_type("END_TRANSACTION_RECORD")
ABORT: Final = of_type("ABORT_TRANSACTION_RECORD")
NO_MIGRATION: Final = of_type("ZK_MIGRATION_STATE_RECORD", zkMigrationState=0)
"""Snapshots have it from level 8 on."""
SCRAM: Final = of_type("USER_SCRAM_CREDENTIAL_RECORD", name="u", mechanism=1, salt=b"s")
TOPICS: Final = (
    of_type("TOPIC_RECORD", name="t", topicId=TOPIC),
    of_type("PARTITION_RECORD", 1, topicId=TOPIC, replicas=[1], isr=[1], directories=["d" * 22]),
)


def _broker(broker_id: int, version: int = 0, **data: Any) -> Record:
    return of_type("REGISTER_BROKER_RECORD", version, brokerId=broker_id, fenced=True, **data)


def _at(level: int) -> Record:
    return of_type("FEATURE_LEVEL_RECORD", name=METADATA_VERSION, featureLevel=level)


class Loaded:
    """A loader and the log that it was given."""

    def __init__(self, form: Form, release: str = "4.3") -> None:
        self.loader = Loader(BrokerSettings(1, "c", "i" * 22, (), release=release, form=form))
        self.end = 0
        self.effects: list[LoaderEffect] = []

    def commit(self, *records: Record | bytes, ahead: int = 0) -> list[LoaderEffect]:
        """Commits a batch; the high watermark is so far ahead of it."""
        values = [
            record if isinstance(record, bytes) else record_bytes(record) for record in records
        ]
        batch = data_batch(self.end, EPOCH, NOW_MS + self.end, values)
        return self.apply([batch], ahead)

    def apply(self, batches: list[Batch], ahead: int = 0) -> list[LoaderEffect]:
        """Commits batches."""
        self.end = batches[-1].last + 1
        self.effects = self.loader.apply(batches, self.end + ahead)
        return self.effects

    @property
    def levels(self) -> list[int | None]:
        """The levels of the images that the last commit published."""
        return [it.image.level for it in self.effects if isinstance(it, ImagePublished)]

    @property
    def brokers(self) -> set[int]:
        """The brokers in the image that was published last."""
        image = self.loader.image
        assert image is not None
        return {*image.state.brokers}

    @property
    def made(self) -> list[SnapshotMade]:
        """The snapshots that the last commit has made."""
        return [it for it in self.effects if isinstance(it, SnapshotMade)]


def _of_broker(form: Form, level: int, *records: Record, release: str = "4.3") -> Loaded:
    """A loader that has published an image of some records at a level."""
    loaded = Loaded(form, release)
    loaded.commit(_at(level), *records)
    return loaded


def _content(snapshot: SnapshotMade) -> tuple[Record, ...]:
    return read_snapshot(snapshot.data).records


@pytest.mark.form("document")
def test_a_change_of_the_level_makes_a_snapshot_right_before_it() -> None:
    """Of what the log has up to the record before, at the old level, although the change is in the
    midst of a batch; the image of that state is published first (M-61)."""
    loaded = _of_broker(Form.KIP_778, 8, _broker(1, 2))
    effects = loaded.commit(_broker(2, 2), _at(9), _broker(3, 2))
    assert [type(effect).__name__ for effect in effects] == [
        "ImagePublished",
        "SnapshotMade",
        "SnapshotMade",
        "ImagePublished",
        "ImagePublished",
    ]
    before, after = loaded.made
    assert (before.snapshot, before.level) == (OffsetAndEpoch(3, EPOCH), 8)
    assert _content(before) == (_at(8), NO_MIGRATION, _broker(1, 2), _broker(2, 2))
    assert (after.snapshot, after.level) == (OffsetAndEpoch(4, EPOCH), 9)
    images = [effect.image for effect in effects if isinstance(effect, ImagePublished)]
    assert [(image.position.offset, image.level) for image in images] == [(3, 8), (4, 9), (5, 9)]
    assert [len(image.state.brokers) for image in images] == [2, 2, 3]


@pytest.mark.form("document")
def test_the_state_at_the_new_level_is_what_is_published() -> None:
    """It is made of records at that level, and components reload it; the snapshot of a raise has
    the fields that the level brings (M-62)."""
    loaded = _of_broker(Form.KIP_778, 6, _broker(1), release="3.9")
    effects = loaded.commit(_at(8))
    _, after = loaded.made
    shutdown = {"inControlledShutdown": False, "isMigratingZkBroker": False}
    assert _content(after) == (
        _at(8),
        NO_MIGRATION,
        Record(*_broker(1)[:1], 2, {**_broker(1).data, **shutdown}),
    )
    (published,) = [effect for effect in effects if isinstance(effect, ImagePublished)]
    assert published.is_reload
    assert at_level(published.image.state).records == _content(after)
    assert published.image.state.levels[METADATA_VERSION] == 8


@pytest.mark.form("released")
@pytest.mark.parametrize("level", [9, 30, 7])
def test_a_released_loader_makes_no_snapshot(level: int) -> None:
    """The level is one record among others; no record is rewritten (M-61 as released, M-62 as
    released)."""
    loaded = _of_broker(Form.RELEASED, 8, _broker(1, 2))
    assert loaded.loader.image is not None
    effects = loaded.commit(_broker(2, 2), _at(level))
    assert [type(effect).__name__ for effect in effects] == ["ImagePublished"]
    assert loaded.levels == [level]
    assert loaded.brokers == {1, 2}


@pytest.mark.form("document")
def test_a_lossy_downgrade_publishes_what_is_left() -> None:
    """Without the types and fields of records that the level lacks, in the image, in the components
    and in the snapshot, whose losses are counted (M-58, M-32, M-62)."""
    loaded = _of_broker(Form.KIP_778, 17, SCRAM, *TOPICS)
    loaded.commit(_at(10))
    before, after = loaded.made
    assert (before.losses, before.level) == ((), 17)
    assert SCRAM in _content(before)
    assert after.losses == (
        Loss("PARTITION_RECORD", "directories", 1),
        Loss("USER_SCRAM_CREDENTIAL_RECORD", "", 1),
    )
    assert [record.type for record in _content(after)] == [
        "FEATURE_LEVEL_RECORD",
        "ZK_MIGRATION_STATE_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
    ]
    assert _content(after)[0] == _at(10)
    image = loaded.loader.image
    assert image is not None
    assert image.state == state_of(_content(after), image.position.offset)
    loaded.commit(_at(17))
    assert loaded.loader.image is not None
    assert not loaded.loader.image.state.others


@pytest.mark.form("document")
def test_a_lossless_downgrade_keeps_every_record() -> None:
    """The snapshot differs in the level alone (M-54)."""
    loaded = _of_broker(Form.KIP_778, 19, SCRAM, *TOPICS)
    loaded.commit(_at(17))
    before, after = loaded.made
    assert after.losses == ()
    assert _content(after)[1:] == _content(before)[1:]
    assert (_content(before)[0], _content(after)[0]) == (_at(19), _at(17))


@pytest.mark.form("document")
@pytest.mark.parametrize("level", [99, 6, 0])
def test_an_unsupported_level_is_told_and_not_published(level: int) -> None:
    """Also the level's own image is not; the next supported one is, with what was committed in
    between (M-47)."""
    loaded = _of_broker(Form.KIP_778, 8, _broker(1, 2))
    told = LevelUnsupported(METADATA_VERSION, FeatureLevel(level))
    assert loaded.commit(_at(level))[1:] == [told]
    assert loaded.commit(_broker(2, 2)) == []
    assert loaded.loader._unsupported == level
    assert loaded.brokers == {1}
    loaded.commit(_at(9))
    assert loaded.levels == [9]
    assert loaded.brokers == {1, 2}
    assert loaded.loader._unsupported is None


@pytest.mark.form("document")
def test_a_starting_broker_judges_the_level_when_it_has_caught_up() -> None:
    """A level that the log had for a while is none of its business (M-42)."""
    loaded = Loaded(Form.KIP_778)
    loaded.commit(_at(8), _at(99), ahead=2)
    assert loaded.effects == loaded.made
    loaded.commit(_at(9), _broker(1, 2))
    assert loaded.levels == [9]
    late = Loaded(Form.KIP_778)
    assert late.commit(_at(8), _at(99), ahead=1) == late.made
    told = LevelUnsupported(METADATA_VERSION, FeatureLevel(99))
    assert late.commit(_broker(1, 2)) == [told]
    assert late.loader.image is None


@pytest.mark.form("released")
def test_a_released_broker_leaves_an_unknown_level_out() -> None:
    """It logs a fault, stays at its level with the new offset, and runs on; a level that its code
    knows is applied although it is outside of its range (M-47 as released)."""
    loaded = _of_broker(Form.RELEASED, 30, _broker(1, 4, cordonedLogDirs=None))
    effects = loaded.commit(_at(32), _broker(2, 4))
    assert "no MetadataVersion with feature level 32" in str(effects)
    assert loaded.levels == [30]
    assert loaded.brokers == {1, 2}
    assert loaded.loader.image is not None
    assert loaded.loader.image.faults == 1
    assert loaded.commit(_at(31)) == [ImagePublished(loaded.loader.image)]
    assert loaded.levels == [31]


@pytest.mark.form("document")
def test_a_preview_log_is_at_level_1() -> None:
    """Its first record of a level changes nothing if it is level 1; another level is a change, with
    a snapshot at level 1 (M-40, M-41)."""
    preview = Loaded(Form.KIP_778, "3.3")
    preview.commit(_broker(1))
    assert preview.levels == [None]
    preview.commit(_at(1))
    assert [made.level for made in preview.made] == []
    assert preview.levels == [1]
    raised = Loaded(Form.KIP_778, "3.3")
    raised.commit(_broker(1))
    raised.commit(_at(4))
    assert [made.level for made in raised.made] == [1, 4]


def test_the_first_level_of_an_empty_log_is_not_a_change() -> None:
    """There is nothing to write before it."""
    loaded = Loaded(Form.KIP_778)
    loaded.commit(_at(8))
    assert [made.level for made in loaded.made] == [8]
    assert loaded.levels == [8]


@pytest.mark.parametrize("form", Form)
def test_nothing_is_published_before_the_end_of_the_log(form: Form) -> None:
    """Then the whole state is, once."""
    loaded = Loaded(form)
    loaded.commit(_at(8), _broker(1, 2), ahead=1)
    assert loaded.levels == []
    loaded.commit(_broker(2, 2))
    assert (loaded.levels, loaded.brokers) == ([8], {1, 2})
    assert loaded.apply([data_batch(0, EPOCH, 0, [record_bytes(_broker(9))])]) == []


@pytest.mark.parametrize("form", Form)
def test_records_of_a_transaction_appear_at_its_end(form: Form) -> None:
    """All or none, over batches; a level among them changes with them."""
    loaded = _of_broker(form, 14, _broker(1, 2))
    loaded.commit(BEGIN, _broker(2, 2))
    assert (loaded.levels, loaded.brokers) == ([], {1})
    loaded.commit(_broker(3, 2), END, _broker(4, 2))
    assert loaded.brokers == {1, 2, 3, 4}
    loaded.commit(BEGIN, _broker(5, 2), ABORT)
    assert loaded.brokers == {1, 2, 3, 4}
    loaded.commit(BEGIN, _broker(6, 2), _at(15), _broker(7, 2), END)
    assert loaded.brokers == {1, 2, 3, 4, 6, 7}
    assert loaded.levels == [15]
    if form is Form.KIP_778:
        assert [made.snapshot.offset for made in loaded.made] == [10, 15]


@pytest.mark.parametrize("form", Form)
def test_a_record_that_cannot_be_read_or_does_not_fit_is_left_out(form: Form) -> None:
    """With a line in the log, and the number of them in the image."""
    loaded = _of_broker(form, 8)
    absent = of_type("UNFENCE_BROKER_RECORD", id=77)
    effects = loaded.commit(UNKNOWN, _broker(1, 2), absent, b"", END, _broker(2, 2))
    lines = [effect.line for effect in effects if isinstance(effect, WriteLog)]
    assert len(lines) == 4
    for line, offset in zip(lines, (1, 3, 4, 5), strict=True):
        assert f"offset {offset}" in line
    assert loaded.brokers == {1, 2}
    assert loaded.loader.image is not None
    assert loaded.loader.image.faults == 4


@pytest.mark.parametrize("form", Form)
def test_a_snapshot_replaces_everything(form: Form) -> None:
    """What it lacks is removed; over an image it gives what it gives alone (M-64)."""
    data = snapshot_bytes([_at(9), _broker(2, 2)], EPOCH, NOW_MS)
    over = _of_broker(form, 8, _broker(1, 2))
    alone = Loaded(form)
    for loaded in (over, alone):
        loaded.commit(BEGIN, _broker(9, 2))
        (published,) = loaded.loader.load(OffsetAndEpoch(20, EPOCH), data, 20)
        assert isinstance(published, ImagePublished)
        assert published.is_reload
        loaded.end = 20
        loaded.commit(_broker(3, 2))
        assert loaded.brokers == {2, 3}
    images = [loaded.loader.image for loaded in (over, alone)]
    assert images[0] is not None
    assert images[0] == images[1]


@pytest.mark.parametrize("form", Form)
def test_a_torn_snapshot_changes_nothing(form: Form) -> None:
    """The image stays, and another snapshot is asked for; so it is when the log has a gap."""
    loaded = _of_broker(form, 8, _broker(1, 2))
    image = loaded.loader.image
    whole = snapshot_bytes([_at(9), _broker(2, 2)], EPOCH, NOW_MS)
    unfit = snapshot_bytes([_at(9), of_type("UNFENCE_BROKER_RECORD", id=5)], EPOCH, NOW_MS)
    header = control_batch(0, EPOCH, 0, [(3, {"version": 0, "lastContainedLogTimestamp": 0})]).data
    for data in (b"", whole[:-1], unfit, whole[:60], header + data_batch(1, 1, 0, [UNKNOWN]).data):
        (refused,) = loaded.loader.load(OffsetAndEpoch(20, EPOCH), data, 20)
        assert isinstance(refused, SnapshotRefused)
        assert "\n" not in refused.reason
    loaded.end = 30
    (gap,) = loaded.commit(_broker(3, 2))
    assert isinstance(gap, SnapshotRefused)
    assert loaded.loader.image is image
    assert loaded.brokers == {1}


@pytest.mark.parametrize("form", Form)
def test_a_long_log_makes_a_snapshot(form: Form) -> None:
    """After 20 MiB, so that the host can forget the log before it."""
    loaded = _of_broker(form, 8)
    name = "n" * 30_000
    config = of_type("CONFIG_RECORD", resourceType=2, resourceName="t", name=name, value="1")
    count = SNAPSHOT_BYTES // 30_000 // 100 + 1
    made = []
    for _ in range(count):
        loaded.commit(*[config] * 100)
        made += loaded.made
    (snapshot,) = made
    assert snapshot.snapshot == OffsetAndEpoch(loaded.end, EPOCH)
    assert _content(snapshot)[-1] == config


def test_control_records_move_the_position_only() -> None:
    """They are the quorum's; the state and its level stay (``MetadataLoader``)."""
    loaded = _of_broker(Form.KIP_778, 8, _broker(1, 2))
    before = loaded.loader.image
    leader = {"version": 0, "leaderId": 7, "voters": [], "grantingVoters": []}
    loaded.apply([control_batch(loaded.end, 5, NOW_MS, [(2, leader)])])
    after = loaded.loader.image
    assert before is not None
    assert after is not None
    assert (after.position.offset, after.position.epoch) == (before.position.offset + 1, 5)
    assert after.state == before.state._replace(offset=after.position.offset)
