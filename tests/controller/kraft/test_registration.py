"""Registrations are decided as Kafka's controllers decide them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.kraft.registration import (
    BrokerRegistrationRequest,
    RegistrationDecision,
    decide_broker_registration,
    decide_controller_registration,
)
from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.replay import replay_refusal
from featurewatch.controller.kraft.requests import Errors
from featurewatch.controller.kraft.state import ControllerState, RegisteredBroker
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName, NodeId
from tests.controller.kraft.states import FOO, TV, broker, state

BOTH = pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
DIRECTORY = "ZoS2oGkJyKsT2lI5-wZhDQ"


def offer(
    release: str, at: ControllerState, ranges: dict[FeatureName, tuple[int, int]], **options: object
) -> RegistrationDecision:
    """The decision about broker 5 with these ranges."""
    features = tuple((name, low, high) for name, (low, high) in ranges.items())
    request = BrokerRegistrationRequest(NodeId(5), "c", "a", features, (DIRECTORY,), **options)  # type: ignore[arg-type]
    return decide_broker_registration(release, at, request, 77)


@pytest.mark.form("released")
@BOTH
@pytest.mark.parametrize("level", [17, 21])
def test_a_broker_must_support_metadata_version(release: str, level: int) -> None:
    """A range that excludes the finalized level is refused (M-42 as released)."""
    decision = offer(release, state(release, level), {METADATA_VERSION: (7, level - 1)})
    assert decision.record is None
    assert decision.answer.error is Errors.UNSUPPORTED_VERSION
    assert decision.answer.text == (
        f"Unable to register because the broker does not support finalized version {level} of "
        f"metadata.version. The broker wants a version between 7 and {level - 1}, inclusive."
    )


@pytest.mark.form("released")
@BOTH
def test_a_broker_must_support_every_finalized_feature(release: str) -> None:
    """A feature that the registration omits counts as 0-0 (M-42 as released)."""
    at = state(release, 21, levels={TV: 2})
    decision = offer(release, at, {METADATA_VERSION: (7, 21)})
    assert "does not support finalized version 2 of transaction.version" in str(
        decision.answer.text
    )


@BOTH
def test_a_new_broker_is_fenced(release: str) -> None:
    """The broker gets the next epoch, and stays fenced until it has caught up."""
    decision = offer(release, state(release, 21), {METADATA_VERSION: (7, 21), FOO: (0, 3)})
    assert decision.record is not None
    assert (decision.record.epoch, decision.record.fenced, decision.record.version) == (77, True, 3)


def test_a_broker_without_metadata_version() -> None:
    """3.9 assumes that it supports level 1 alone; since 4.0 it is refused."""
    assert offer("3.9", state("3.9", 1), {}).record is not None
    assert offer("4.3", state("4.3", 30), {}).answer.text == (
        "Request features do not contain 'metadata.version'"
    )


@pytest.mark.parametrize(
    ("release", "fenced", "free"),
    [
        ("3.9", False, False),
        ("3.9", True, True),
        ("4.3", False, False),
        ("4.3", True, False),
    ],
)
def test_an_id_that_is_taken(release: str, fenced: bool, free: bool) -> None:
    """An id is taken while its holder is alive; in 3.9 a fenced holder does not count."""
    ranges = release_of(release).ranges()
    holder = RegisteredBroker(NodeId(5), ranges, fenced=fenced, incarnation="b", session=True)
    decision = offer(release, state(release, 21, holder), dict(ranges))
    assert decision.answer.accepted is free
    if not free:
        assert decision.answer.error is Errors.DUPLICATE_BROKER_REGISTRATION


@BOTH
def test_controllers_register_from_level_15_on(release: str) -> None:
    """At lower levels their record cannot be written, and the request is refused (KIP-919;
    M-49)."""
    assert decide_controller_registration(release, state(release, 15)).accepted
    assert decide_controller_registration(release, state(release, 14)).text == (
        "The current MetadataVersion is too old to support controller registrations."
    )


@pytest.mark.form("released")
@given(low=st.integers(0, 4), width=st.integers(0, 4), level=st.integers(1, 9))
def test_a_range_includes_both_ends(low: int, width: int, level: int) -> None:
    """0 ≤ minimum ≤ level ≤ maximum registers; 0 is an ordinary minimum (F-03 as released)."""
    at = state("4.3", 30, levels={FOO: level})
    decision = offer("4.3", at, {METADATA_VERSION: (7, 30), FOO: (low, low + width)})
    assert decision.answer.accepted == (low <= level <= low + width)


def test_an_older_controller_does_not_start_again() -> None:
    """A node exits at a level that its software does not know: the point of no return."""
    old = ControllerState(NodeId(1), release_of("3.8").ranges(), {})
    assert replay_refusal("3.9", old, METADATA_VERSION, FeatureLevel(20)) is None
    assert replay_refusal("3.9", old, METADATA_VERSION, FeatureLevel(21)) == (
        "Tried to apply FeatureLevelRecord FeatureLevelRecord(name='metadata.version', "
        "featureLevel=21), but this controller only supports versions 1-20"
    )


@pytest.mark.form("released")
@BOTH
def test_older_software_registers_whoever_has_loaded_the_downgrade(release: str) -> None:
    """Released Kafka does not track it (M-59 as released): a broker on older software is accepted
    as soon as its range has the lower level, though another broker has applied nothing yet."""
    lowered = state(release, 20, broker(2, {METADATA_VERSION: (7, 21)}, fenced=True))
    assert offer(release, lowered, {METADATA_VERSION: (7, 20)}).record is not None
