"""The settings of topics and their values, with the texts of ``LogConfig`` of Kafka 3.9.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.reference.zookeeper.machines.topics.setting_rules import (
    SETTING_RULES,
    invalid_settings,
)

NO_LONG = "Not a number of type LONG"
REFUSED = [
    ("retention.ms", "-2", "Value must be at least -1"),
    ("retention.ms", "x", NO_LONG),
    ("retention.ms", "99999999999999999999", NO_LONG),
    ("retention.ms", "0x1", NO_LONG),
    ("cleanup.policy", "foo", "String must be one of: compact, delete"),
    ("min.insync.replicas", "0", "Value must be at least 1"),
    ("min.insync.replicas", "2147483648", "Not a number of type INT"),
    ("min.cleanable.dirty.ratio", "a", "Not a number of type DOUBLE"),
    ("preallocate", "maybe", "Expected value to be either true or false"),
    ("unclean.leader.election.enable", "1", "Expected value to be either true or false"),
    (
        "compression.type",
        "no",
        "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    ("message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
    ("segment.bytes", "5", "Value must be at least 14"),
    ("compression.gzip.level", "77", "Value must be between 1 and 9 or equal to -1"),
    ("compression.zstd.level", "77", "Value must be no more than 22"),
    ("compression.lz4.level", "0", "Value must be at least 1"),
    ("message.format.version", "9", "Version 9 is not a valid version"),
    ("local.retention.ms", "-3", "Value must be at least -2"),
]
ACCEPTED = [
    ("cleanup.policy", ""),
    ("cleanup.policy", "compact, delete"),
    ("preallocate", " TRUE "),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "0:1,1:2"),
    ("follower.replication.throttled.replicas", ""),
    ("retention.ms", " 5 "),
    ("retention.ms", "+5"),
    ("compression.gzip.level", "-1"),
    ("message.format.version", "3.0"),
    ("min.cleanable.dirty.ratio", "0.5f"),
    ("retention.bytes", "-9223372036854775808"),
]


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED)
def test_a_bad_value_has_kafkas_text(name: str, value: str, reason: str) -> None:
    """As Kafka's own class prints it."""
    text = f"Invalid value {value} for configuration {name}: {reason}"
    assert invalid_settings({name: value}) == text


def test_numbers_and_lists_are_printed_as_they_were_parsed() -> None:
    """In two cases Kafka's text has not the value as it was written."""
    name = "leader.replication.throttled.replicas"
    assert invalid_settings({name: "x"}) == (
        f"Invalid value [x] for configuration {name}: {name} must be the literal '*' or a list of "
        "replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    assert invalid_settings({"min.cleanable.dirty.ratio": "2"}) == (
        "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than "
        "1"
    )


@pytest.mark.parametrize(("name", "value"), ACCEPTED)
def test_a_good_value_is_accepted(name: str, value: str) -> None:
    """Whatever Kafka accepts, blanks and signs included."""
    assert invalid_settings({name: value}) is None


def test_names_come_before_values_and_conflicts_last() -> None:
    """One reason for all."""
    settings = {"retention.ms": "x", "nosuch": "2"}
    assert invalid_settings(settings) == "Unknown topic config name: nosuch"
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    assert invalid_settings(lags) == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )
    assert invalid_settings({**lags, "max.compaction.lag.ms": "10"}) is None


@given(st.sampled_from(sorted(SETTING_RULES)), st.text(max_size=60))
def test_any_value_is_accepted_or_refused(name: str, value: str) -> None:
    """No value ends the controller."""
    reason = invalid_settings({name: value})
    assert reason is None or reason.startswith("Invalid value ")
