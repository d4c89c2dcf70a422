"""The records of a level: what a lossy downgrade drops or rewrites, and what it leaves alone."""

from typing import Any, Final

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.controller.kraft.releases import production_levels
from featurewatch.reference.kraft.machines.metadata.levels import (
    FEATURE_LEVEL,
    FieldRule,
    Loss,
    TypeRule,
    level_rules,
    records_at,
)
from featurewatch.reference.kraft.machines.metadata.records import Record
from featurewatch.streams.kraft.records.directory_ids import MIGRATING

NEWEST: Final = release_of("4.4")
CHANGES: Final[dict[int, bool]] = {
    entry.level: entry.changes_metadata for entry in (*production_levels(), *NEWEST.levels)
}
LEVELS: Final = tuple(CHANGES)
DIRECTORY: Final = "kZGNLvwmTvaTYYZ2YjBjyA"


def _level_record(level: int, feature: str = "metadata.version") -> Record:
    return Record(FEATURE_LEVEL, 0, {"name": feature, "featureLevel": level})


def _partition(version: int = 2, **data: Any) -> Record:
    content = {
        "partitionId": 0,
        "topicId": DIRECTORY,
        "replicas": [1, 2],
        "isr": [1, 2],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
    }
    if version > 0:
        content["directories"] = [MIGRATING, MIGRATING]
    return Record("PARTITION_RECORD", version, content | data)


# The worked example of KIP-778: V3 adds an optional field to Foo, V4 the record Bar, V5 an optional
# field to Bar.
EXAMPLE: Final = {
    FEATURE_LEVEL: TypeRule(),
    "FOO": TypeRule(1, ((1, 0), (3, 1)), {"colour": FieldRule(3)}),
    "BAR": TypeRule(4, ((4, 0), (5, 1)), {"size": FieldRule(5)}),
}
AT_5: Final = (
    _level_record(5),
    Record("FOO", 1, {"id": 1, "colour": "red"}),
    Record("BAR", 1, {"id": 2, "size": 3}),
    Record("FOO", 1, {"id": 3, "colour": None}),
)


@pytest.mark.form("document")
def test_a_lossy_downgrade_leaves_out_what_the_level_does_not_have() -> None:
    """Bar records are left out at level 2, and Foo records lose their field (M-58, M-53)."""
    lossy = records_at(AT_5, 2, EXAMPLE)
    assert lossy.records == (
        _level_record(2),
        Record("FOO", 0, {"id": 1}),
        Record("FOO", 0, {"id": 3}),
    )
    assert lossy.losses == (Loss("BAR", "", 1), Loss("FOO", "colour", 1))
    assert lossy.losses
    assert [*map(str, lossy.losses)] == ["BAR (1)", "field colour of FOO (1)"]


@pytest.mark.form("document")
def test_the_snapshot_of_a_downgrade_has_its_level_first() -> None:
    """The FeatureLevelRecord of the lower level, also where the log had none (M-54)."""
    lowered = records_at((_level_record(1, "group.version"), _level_record(9)), 8)
    assert lowered.records == (_level_record(8), _level_record(1, "group.version"))
    assert records_at((), 1).records == (_level_record(1),)


@pytest.mark.form("document")
def test_a_lossless_downgrade_changes_no_record() -> None:
    """Each record is the same object, between any two levels without a change of metadata (M-54).

    The rules of two such levels are the same for each type.
    """
    held = _partition()
    assert records_at((_level_record(25), held), 23).records[1] is held
    for high in LEVELS:
        for low in LEVELS:
            if low < high and not any(CHANGES[level] for level in range(low + 1, high + 1)):
                for name, rule in level_rules().items():
                    assert rule.version_at(high) == rule.version_at(low), (name, high, low)
                    gates = [rule.since, *(it.since for it in rule.fields.values())]
                    gates += [it.since for it in rule.values]
                    assert not [gate for gate in gates if low < gate <= high], (name, high, low)


REGISTERED: Final = {"brokerId": 1, "fenced": False, "rack": None}


@pytest.mark.form("document")
@pytest.mark.parametrize(
    ("record", "level", "expected", "losses"),
    [
        (_partition(), 22, _partition(1), ()),
        (
            _partition(eligibleLeaderReplicas=[2]),
            22,
            _partition(1),
            (Loss("PARTITION_RECORD", "eligibleLeaderReplicas", 1),),
        ),
        (_partition(), 16, _partition(0), ()),
        (
            _partition(directories=(DIRECTORY, MIGRATING)),
            16,
            _partition(0),
            (Loss("PARTITION_RECORD", "directories", 1),),
        ),
        (_partition(directories=(MIGRATING, MIGRATING)), 16, _partition(0), ()),
        (
            _partition(0, leaderRecoveryState=1),
            2,
            _partition(0),
            (Loss("PARTITION_RECORD", "leaderRecoveryState", 1),),
        ),
        (_partition(0), 17, _partition(1), ()),
        (
            Record(
                "REGISTER_BROKER_RECORD",
                3,
                REGISTERED
                | {
                    "isMigratingZkBroker": False,
                    "inControlledShutdown": True,
                    "logDirs": [DIRECTORY],
                },
            ),
            6,
            Record("REGISTER_BROKER_RECORD", 0, REGISTERED),
            (
                Loss("REGISTER_BROKER_RECORD", "inControlledShutdown", 1),
                Loss("REGISTER_BROKER_RECORD", "logDirs", 1),
            ),
        ),
        (
            Record("REGISTER_BROKER_RECORD", 0, REGISTERED),
            17,
            Record(
                "REGISTER_BROKER_RECORD",
                3,
                REGISTERED | {"isMigratingZkBroker": False, "inControlledShutdown": False},
            ),
            (),
        ),
    ],
)
def test_a_record_is_rewritten_for_a_level(
    record: Record, level: int, expected: Record, losses: tuple[Loss, ...]
) -> None:
    """Its version, and the fields that the level has; one with its default is no loss (M-58)."""
    found = records_at((record,), level)
    assert (found.records[1:], found.losses) == ((expected,), losses)


@pytest.mark.form("document")
@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("ZK_MIGRATION_STATE_RECORD", 8),
        ("USER_SCRAM_CREDENTIAL_RECORD", 11),
        ("DELEGATION_TOKEN_RECORD", 14),
        ("REGISTER_CONTROLLER_RECORD", 15),
    ],
)
def test_a_type_is_dropped_below_its_level(name: str, since: int) -> None:
    """With a count of what was lost, and nothing of its content (M-58)."""
    records = [Record(name, 0, {"storedKey": "secret"})] * 3
    assert records_at(records, since).losses == ()
    assert records_at(records, since).records[1:] == (*records,)
    lost = records_at(records, since - 1)
    assert (lost.records[1:], lost.losses) == ((), (Loss(name, "", 3),))
    assert "secret" not in str(lost.losses)


def test_an_acl_of_a_subnet_is_dropped_below_its_level() -> None:
    """Without its subnet it would allow or deny something else."""
    acls = [
        Record("ACCESS_CONTROL_ENTRY_RECORD", 0, {"id": DIRECTORY, "host": host})
        for host in ("10.0.0.0/8", "*")
    ]
    assert records_at(acls, 32).records[1:] == (*acls,)
    lost = records_at(acls, 31)
    assert lost.records[1:] == (acls[1],)
    assert lost.losses == (Loss("ACCESS_CONTROL_ENTRY_RECORD", "", 1),)


def test_a_type_that_no_level_has_is_dropped() -> None:
    """It cannot be written again."""
    lost = records_at((Record("FROM_THE_FUTURE", 0, {}),), LEVELS[-1])
    assert lost.losses == (Loss("FROM_THE_FUTURE", "", 1),)


def test_every_gate_of_a_record_is_a_rule() -> None:
    """The levels that change metadata are those at which a rule changes, and no others."""
    gates = {1}
    for rule in level_rules().values():
        gates |= {rule.since, *(level for level, _ in rule.versions)}
        gates |= {it.since for it in rule.fields.values()} | {it.since for it in rule.values}
    assert {level for level, changes in CHANGES.items() if changes} == gates
