"""Kafka's ApiVersions responses of each version, read."""

from datetime import timedelta

import pytest
from kio.schema.api_versions import v0, v3, v4
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i32Timedelta, i64

from featurewatch.streams.apiversions.node_features import read_node_features

THROTTLE = i32Timedelta.parse(timedelta(0))


def response(version, supported=(), finalized=(), epoch=10):
    """A response with features as (name, min, max) and levels as (name, level)."""
    form = version.response
    return form.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=(),
        throttle_time=THROTTLE,
        supported_features=tuple(
            form.SupportedFeatureKey(name=n, min_version=i16(low), max_version=i16(high))
            for n, low, high in supported
        ),
        finalized_features=tuple(
            form.FinalizedFeatureKey(
                name=n, max_version_level=i16(level), min_version_level=i16(level)
            )
            for n, level in finalized
        ),
        finalized_features_epoch=i64(epoch),
    )


@pytest.mark.form("released")
@pytest.mark.parametrize(("version", "complete"), [(v3, False), (v4, True)])
def test_features_and_epoch_are_read(version, complete):
    """F-54 as released, M-10 as released: supported ranges (tag 0), epoch (tag 1), finalized levels
    (tag 2)."""
    answer = read_node_features(response(version, [("a", 0, 3)], [("a", 2)], 10))
    assert (answer.supported, answer.finalized, answer.epoch) == ({"a": (0, 3)}, {"a": 2}, 10)
    assert answer.complete is complete


def test_levels_without_an_epoch_are_left_out():
    """M-11: a controller before its first image says its lowest level with epoch -1."""
    answer = read_node_features(response(v4, [("a", 1, 3)], [("a", 1)], -1))
    assert (answer.finalized, answer.epoch) == ({}, -1)


@pytest.mark.form("released")
def test_a_node_without_features_is_unknown():
    """F-54 as released: versions below 3 have no features; that is unknown, not empty."""
    answer = read_node_features(
        v0.ApiVersionsResponse(error_code=ErrorCode.unsupported_version, api_keys=())
    )
    assert (answer.supported, answer.finalized, answer.epoch) == ({}, {}, -1)
    assert not answer.complete


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        (("x", 3, 1), "supported feature 'x' has the minimum 3 above the maximum 1"),
        (("x", -1, 1), "supported feature 'x' has the minimum -1, below 0"),
        (("", 0, 1), "supported feature '' has no name"),
    ],
)
def test_impossible_features_are_faults_and_the_rest_is_read(feature, reason):
    """One feature that makes no sense leaves the others readable."""
    answer = read_node_features(response(v4, [feature, ("good", 0, 1)]))
    assert answer.supported == {"good": (0, 1)}
    assert [text for _, text in answer.invalid] == [reason]
