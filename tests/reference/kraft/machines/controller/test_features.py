"""Levels are changed: as released, and as KIP-778 is written."""

from dataclasses import replace
from typing import Any

import pytest

from featurewatch.reference.kraft.machines.batches import read_batches
from featurewatch.reference.kraft.machines.controller.protocol import (
    Halt,
    PeerVersions,
    Resign,
    SnapshotLoaded,
    SnapshotTaken,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    FeatureUpdate,
    UpdatableFeatureResult,
    UpdateFeatures,
    UpdateFeaturesResponse,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.records import Record, record, records_of
from featurewatch.reference.kraft.machines.metadata.state import Feature
from featurewatch.streams.kraft.records.directory_ids import MIGRATING
from featurewatch.streams.types import FeatureName, OffsetAndEpoch, SupportedRanges
from tests.reference.kraft.machines.controller.driven import (
    Driven,
    led,
    level_of,
    settings_of,
    uuid,
)

LEVEL = "metadata.version"
UP, SAFE, UNSAFE = 1, 2, 3
"""Types of updates on the wire; those of KIP-778 are one less."""


def update(driven: Driven, level: int, kind: int = UP, version: int = 1, **other: Any) -> Any:
    """Asks for a level of metadata.version."""
    one = FeatureUpdate(LEVEL, level, upgrade_type=kind)
    return driven.ask(UpdateFeatures((one,), **other), version)


def content(snapshot: SnapshotTaken) -> list[Record]:
    """The data records of a snapshot."""
    batches = read_batches(snapshot.data)
    return [one for batch in batches if not batch.is_control for _, one in records_of(batch)]


# -- as released -----------------------------------------------------------------------------------


def test_a_raise() -> None:
    """The level is a record; a validation has the same answer and writes nothing."""
    driven = led(level=29)
    before = driven.controller.committed
    assert update(driven, 30, validate_only=True).error_code == 0
    assert driven.controller.committed == before
    assert update(driven, 30) == UpdateFeaturesResponse(
        0, None, (UpdatableFeatureResult(LEVEL, 0, None),)
    )
    assert driven.controller.finalized == ({LEVEL: 30}, driven.end - 1)
    assert (driven.records[-1].type, driven.records[-1].version) == ("FEATURE_LEVEL_RECORD", 0)
    assert not driven.snapshots, "from 3.5 on none is forced"


@pytest.mark.parametrize(
    ("level", "kind", "error", "text"),
    [
        (31, UP, 95, "Local controller 1 only supports versions 7-30"),
        (28, UP, 95, "Can't downgrade the version of this feature without"),
        (30, SAFE, 95, "Can't downgrade to a newer version."),
        (29, 0, 95, "does not support the given upgrade type"),
        (22, SAFE, 95, "might delete metadata"),
        (22, UNSAFE, 95, "Unsafe metadata downgrade is not supported"),
        (-1, UP, 95, "cannot be less than 0"),
    ],
)
def test_a_refused_level(level: int, kind: int, error: int, text: str) -> None:
    """The reason is that of Kafka's controller."""
    driven = led(level=29)
    answer = update(driven, level, kind, version=2)
    assert answer.error_code == error
    assert answer.error_message.startswith("The update failed for all features since")
    assert text in answer.error_message
    assert level_of(driven) == 29


@pytest.mark.parametrize(
    ("version", "update_", "level"),
    [
        (0, FeatureUpdate(LEVEL, 28, allow_downgrade=True), 28),
        (0, FeatureUpdate(LEVEL, 28, allow_downgrade=False), 29),
        (0, FeatureUpdate(LEVEL, 30), 30),
        (1, FeatureUpdate(LEVEL, 28, upgrade_type=SAFE), 28),
        (2, FeatureUpdate(LEVEL, 28, upgrade_type=SAFE), 28),
    ],
)
def test_versions_of_the_request(version: int, update_: FeatureUpdate, level: int) -> None:
    """Version 0 has a flag, later ones a type; results of features end with version 1."""
    driven = led(level=29)
    answer = driven.ask(UpdateFeatures((update_,)), version)
    assert level_of(driven) == level
    assert bool(answer.results) is (version < 2 and not answer.error_code)


def test_all_or_nothing() -> None:
    """From 4.0 on one bad feature refuses all; before, each has its own result."""
    updates = (FeatureUpdate(LEVEL, 20), FeatureUpdate("group.version", 9))
    new = led(level=19, release="4.0")
    assert new.ask(UpdateFeatures(updates), 2).error_code == 95
    assert level_of(new) == 19
    old = led(level=19, release="3.9")
    answer = old.ask(UpdateFeatures(updates), 1)
    assert answer.error_code == 0
    assert [(one.feature, one.error_code) for one in answer.results] == [
        ("group.version", 95),
        (LEVEL, 0),
    ]
    assert level_of(old) == 20


def test_other_features() -> None:
    """Level 0 takes a feature out; enabling ELR sets its minimum in the cluster."""
    driven = led(level=30)
    for level, kind in [(1, UP), (0, SAFE)]:
        one = FeatureUpdate("group.version", level, upgrade_type=kind)
        assert driven.ask(UpdateFeatures((one,)), 2).error_code == 0
        assert driven.controller.committed.levels.get(FeatureName("group.version"), 0) == level
    elr = FeatureUpdate("eligible.leader.replicas.version", 1)
    assert driven.ask(UpdateFeatures((elr,)), 2).error_code == 0
    assert driven.controller.committed.setting(4, "", "min.insync.replicas") == "1"


def test_kraft_version_is_not_raised() -> None:
    """Only the voter could do that: it is refused, as if a voter did not support it."""
    driven = led(level=30)
    one = FeatureUpdate("kraft.version", 1)
    answer = driven.ask(UpdateFeatures((one,)), 2)
    assert "not all of the voters support it" in answer.error_message


# -- as KIP-778 is written -------------------------------------------------------------------------


def kip(level: int | None = 7, **other: Any) -> Driven:
    """An active controller of 3.9 that follows the document, with levels from 1 on."""
    ranges = SupportedRanges({FeatureName(LEVEL): (1, 21)})
    return led(level=level, release="3.9", form=Form.KIP_778, ranges=ranges, **other)


BROKER_RANGES = (Feature(LEVEL, 1, 21),)


def test_the_level_of_a_preview_log() -> None:
    """A log without a level gets that of meta.properties, or level 1 without one."""
    for level, expected in ((5, 5), (None, 1)):
        settings = settings_of(level, release="3.9", form=Form.KIP_778, ranges=SupportedRanges())
        driven = Driven(settings)
        driven.add(record("TOPIC_RECORD", name="a", topicId=uuid(1)))
        driven.lead()
        assert level_of(driven) == expected
        assert [one.type for one in driven.records] == ["TOPIC_RECORD", "FEATURE_LEVEL_RECORD"]
        driven.lose()
        driven.lead()
        assert len(driven.records) == 2, "once"


def test_types_of_the_document() -> None:
    """0, 1 and 2 mean no, a safe and an unsafe downgrade; a dry run writes nothing."""
    driven = kip(level=12)
    assert update(driven, 13, UP - 1).error_code == 0
    assert update(driven, 12, UP - 1).results[0].error_code == 95
    assert update(driven, 12, SAFE - 1).results[0].error_code == -778
    assert update(driven, 12, UNSAFE - 1, validate_only=True).results[0].error_code == 0
    assert level_of(driven) == 13
    assert update(driven, 12, UNSAFE - 1).results[0].error_code == 0
    assert level_of(driven) == 12
    assert update(driven, 12, 7).results[0].error_code == 95
    assert update(driven, 13, 7, version=2).error_code == 95, "version 2 has no results"


@pytest.mark.form("document")
def test_snapshots_around_a_change() -> None:
    """One right before it, at the old level, and one after it at the new one (M-54, M-61)."""
    driven = kip(level=19)
    driven.register(1, features=BROKER_RANGES)
    driven.heartbeat(1)
    driven.create("a", (1,))
    at = driven.end
    assert update(driven, 17, SAFE - 1).results[0].error_code == 0
    before, after = driven.snapshots
    assert before.snapshot == OffsetAndEpoch(at, 1)
    assert after.snapshot == OffsetAndEpoch(at + 1, 1)
    old, new = content(before), content(after)
    assert (old[0].data["featureLevel"], new[0].data["featureLevel"]) == (19, 17)
    assert old[1:] == new[1:], "a lossless downgrade changes nothing else"
    assert (before.trims, after.trims) == (False, False)
    driven.wait(driven.settings.lowered_log_ms - 100)
    assert len(driven.snapshots) == 2
    driven.wait(200)
    assert driven.snapshots[2:] == [replace(after, trims=True)]
    driven.wait(driven.settings.lowered_log_ms)
    assert len(driven.snapshots) == 3


@pytest.mark.form("document")
def test_the_log_before_a_lowered_level_is_deleted_in_time() -> None:
    """Up to the newest snapshot, whatever levels follow; a raise alone deletes nothing (M-54)."""
    driven = kip(level=19)
    assert update(driven, 17, SAFE - 1).results[0].error_code == 0
    driven.wait(driven.settings.lowered_log_ms - 100)
    assert update(driven, 19, UP - 1).results[0].error_code == 0
    newest = driven.snapshots[-1]
    driven.wait(200)
    assert driven.snapshots[-1] == replace(newest, trims=True)
    assert update(driven, 20, UP - 1).results[0].error_code == 0
    driven.wait(2 * driven.settings.lowered_log_ms)
    assert not driven.snapshots[-1].trims


@pytest.mark.form("document")
def test_a_lossy_downgrade() -> None:
    """What the lower level cannot say is left out of snapshot and state (M-58, M-62)."""
    driven = kip(level=19)
    driven.register(1, features=BROKER_RANGES)
    driven.heartbeat(1)
    topic = driven.create("a", (1,))
    driven.add(record("ACCESS_CONTROL_ENTRY_RECORD", id=uuid(5), principal="User:a", host="*"))
    driven.add(record("DELEGATION_TOKEN_RECORD", tokenId="t", owner="User:a"))
    driven.lose()
    driven.lead()
    assert driven.controller.committed.controllers
    assert driven.partition(topic).directories == (uuid(501),)
    assert update(driven, 7, SAFE - 1).results[0].error_code == -778
    assert update(driven, 7, UNSAFE - 1).results[0].error_code == 0
    state = driven.controller.committed
    assert (state.level, dict(state.controllers)) == (7, {})
    assert state.brokers[1].log_dirs == ()
    assert driven.partition(topic).directories == (MIGRATING,)
    after = driven.snapshots[-1]
    assert [(one.type, one.version) for one in content(after)] == [
        ("FEATURE_LEVEL_RECORD", 0),
        ("REGISTER_BROKER_RECORD", 1),
        ("TOPIC_RECORD", 0),
        ("PARTITION_RECORD", 0),
        ("ACCESS_CONTROL_ENTRY_RECORD", 0),
    ]
    follower = Driven(driven.settings)
    follower.receive(SnapshotLoaded(after.snapshot, after.data))
    found = follower.controller.committed
    broker = found.brokers[1]._replace(offset=state.brokers[1].offset)
    assert found._replace(brokers=found.brokers.set(1, broker)) == state


def test_work_after_a_lossy_downgrade() -> None:
    """The active controller continues with the state that its followers have, too."""
    driven = kip(level=19)
    for broker_id in (1, 2):
        driven.register(broker_id, features=BROKER_RANGES)
        driven.heartbeat(broker_id)
    topic = driven.create("a", (1, 2))
    update(driven, 5, UNSAFE - 1)
    driven.heartbeat(1, fence=True)
    assert driven.records[-1].type == "FENCE_BROKER_RECORD"
    assert driven.partition(topic).leader == 2
    follower = Driven(driven.settings)
    follower.log = driven.log
    follower.commit()
    assert follower.controller.committed == driven.controller.committed
    assert [one.snapshot for one in follower.snapshots] == [
        one.snapshot for one in driven.snapshots
    ]


def test_a_majority_of_the_controllers() -> None:
    """One that does not support the level, or is down, does not block it; two do."""
    for first in (5, 19):
        driven = kip(level=first, quorum=(1, 2, 3))
        driven.receive(PeerVersions(3, (Feature(LEVEL, 1, first),)))
        assert update(driven, first + 1, UP - 1).results[0].error_code == 95
        driven.receive(PeerVersions(2, BROKER_RANGES))
        assert update(driven, first + 1, UP - 1).results[0].error_code == 0


def test_a_registration_counts_more_than_an_answer() -> None:
    """What the log says of a controller is known to every leader."""
    driven = kip(level=19, quorum=(1, 2, 3))
    feature = {"name": LEVEL, "minSupportedVersion": 1, "maxSupportedVersion": 19}
    driven.add(
        record(
            "REGISTER_CONTROLLER_RECORD",
            controllerId=2,
            incarnationId=uuid(2),
            features=[feature],
        )
    )
    driven.lose()
    driven.lead()
    driven.receive(PeerVersions(2, BROKER_RANGES))
    assert update(driven, 20, UP - 1).results[0].error_code == 95


@pytest.mark.form("document")
@pytest.mark.parametrize("is_leader", [True, False])
def test_a_controller_that_is_too_old(*, is_leader: bool) -> None:
    """It may follow below its levels; a level above ends it, after it has resigned (M-46)."""
    driven = kip(level=19)
    if not is_leader:
        driven.lose()
    end = driven.end
    driven.add(record("FEATURE_LEVEL_RECORD", name=LEVEL, featureLevel=22))
    assert isinstance(driven.effects[-1], Halt)
    assert (Resign() in driven.effects) is is_leader
    assert driven.controller.committed.offset == end
    assert not driven.snapshots


@pytest.mark.form("document")
def test_a_broker_that_is_too_old() -> None:
    """It is refused while it does not support a finalized level, and stays fenced (M-42)."""
    driven = kip(level=19)
    old = (Feature(LEVEL, 1, 18),)
    assert driven.register(1, features=old).error_code == 35
    assert not driven.controller.committed.brokers
    assert driven.register(1, features=BROKER_RANGES).error_code == 0
    driven.lose()
    driven.lead()
    assert driven.register(1, features=old, incarnation_id=uuid(7)).error_code == 35
    assert driven.controller.committed.brokers[1].fenced


def test_a_snapshot_of_a_level_that_is_not_supported() -> None:
    """A controller that loads it ends, too."""
    snapshot = kip(level=19, snapshot_bytes=1).snapshots[-1]
    for release, is_ended in (("3.9", False), ("3.6", True)):
        driven = Driven(settings_of(release=release))
        driven.receive(SnapshotLoaded(snapshot.snapshot, snapshot.data))
        assert any(isinstance(one, Halt) for one in driven.effects) is is_ended
