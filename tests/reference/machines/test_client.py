"""What a client of KIP-584 adopts of what brokers tell it."""

from dataclasses import fields
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.reference.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.machines.client import Adoption, ClientFeatures
from featurewatch.reference.machines.dialect import LATER_DRAFT
from featurewatch.reference.machines.protocol import RequestReceived, SendResponse
from featurewatch.reference.machines.requests import ApiVersions, FeaturesResponse


def response(epoch: int, **levels: int) -> FeaturesResponse:
    """A broker's answer."""
    return FeaturesResponse({}, levels, epoch)


def test_an_older_answer_is_no_error_and_is_not_adopted() -> None:
    """A broker that lags answers with what it has; the client keeps the newer (F-57, F-58)."""
    client, adoption = ClientFeatures().on_response(response(7, alpha=3))
    assert (adoption, client.levels) == (Adoption.ADOPTED, {"alpha": 3})
    after, adoption = client.on_response(response(6, alpha=2))
    assert (after, adoption) == (client, Adoption.OLDER)
    after, adoption = client.on_response(response(8, beta=1))
    assert (after.levels, after.epoch, adoption) == ({"beta": 1}, 8, Adoption.ADOPTED)


def test_more_than_one_epoch_behind_is_more_than_is_tolerated() -> None:
    """One epoch behind passes, two are told; the newer levels are kept either way (F-59)."""
    client, _ = ClientFeatures().on_response(response(7, alpha=3))
    assert client.on_response(response(6))[1] is Adoption.OLDER
    assert client.on_response(response(5)) == (client, Adoption.TOO_OLD)


@settings(deadline=None)
@given(st.permutations(range(12)), st.integers())
def test_whatever_the_order_the_newest_is_held(order: list[int], seed: int) -> None:
    """From any brokers, in any order, with repetitions: the highest epoch wins (F-58)."""
    random, client, newest = Random(seed), ClientFeatures(), -1
    for epoch in [*order, *random.choices(order, k=5)]:
        before = client
        client, adoption = client.on_response(response(epoch, alpha=epoch % 5))
        newest = max(newest, epoch)
        assert (client.epoch, client.levels) == (newest, {"alpha": newest % 5})
        assert (client != before) is (adoption is Adoption.ADOPTED)


def test_the_epoch_is_of_the_set_and_is_no_level() -> None:
    """The same levels under a higher epoch are adopted, and a level may lie above or below (F-60).

    A lower level under a higher epoch counts, a higher level under a lower epoch does not.
    """
    client, _ = ClientFeatures().on_response(response(4, alpha=9))
    client, adoption = client.on_response(response(5, alpha=9))
    assert (adoption, client.epoch, client.levels) == (Adoption.ADOPTED, 5, {"alpha": 9})
    client, _ = client.on_response(response(6, alpha=1))
    assert client.levels == {"alpha": 1}
    client, _ = client.on_response(response(5, alpha=9))
    assert client.levels == {"alpha": 1}


def test_a_client_asks_once_and_again_only_if_told_to() -> None:
    """At its start from any broker; a refresh is a matter of choice (F-61)."""
    once, often = ClientFeatures(), ClientFeatures(refresh_ms=300)
    assert once.due(0)
    assert often.due(0)
    once, often = once.mark_requested(1000), often.mark_requested(1000)
    assert not once.due(10**9)
    assert not often.due(1299)
    assert often.due(1300)


def test_an_answer_without_finalized_features_changes_nothing() -> None:
    """A broker that knows of none, or is asked by an old version, takes nothing away."""
    client, _ = ClientFeatures().on_response(response(4, alpha=9))
    assert client.on_response(FeaturesResponse()) == (client, Adoption.EMPTY)


def test_discovery_gives_levels_and_no_protocol_version() -> None:
    """All that an answer has is ranges, levels and the epoch; every name is a feature's (F-90)."""
    broker = ReferenceBroker(BrokerIdentity(1), LATER_DRAFT, {"alpha": (1, 3)})
    (reply,) = broker.receive(RequestReceived(1, ApiVersions()), 0)
    assert isinstance(reply, SendResponse)
    assert isinstance(reply.response, FeaturesResponse)
    assert {each.name for each in fields(reply.response)} == {"supported", "finalized", "epoch"}
    assert {*reply.response.supported, *reply.response.finalized} == {"alpha"}
