"""Which responses of brokers a client of KIP-584 adopts."""

from dataclasses import fields
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.reference.zookeeper.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.zookeeper.machines.client import Adoption, ClientFeatures
from featurewatch.reference.zookeeper.machines.dialect import LATER_DRAFT
from featurewatch.reference.zookeeper.machines.protocol import RequestReceived, SendResponse
from featurewatch.reference.zookeeper.machines.requests import ApiVersions, FeaturesResponse
from featurewatch.streams.types import SupportedRange


def response(epoch: int, **levels: int) -> FeaturesResponse:
    """A broker's response."""
    return FeaturesResponse({}, levels, epoch)


@pytest.mark.form("document")
def test_an_older_response_is_not_an_error_and_not_adopted() -> None:
    """A lagging broker responds with its levels; the client keeps the newer ones (F-57, F-58)."""
    client, adoption = ClientFeatures().on_response(response(7, alpha=3))
    assert (adoption, client.levels) == (Adoption.ADOPTED, {"alpha": 3})
    after, adoption = client.on_response(response(6, alpha=2))
    assert (after, adoption) == (client, Adoption.OLDER)
    after, adoption = client.on_response(response(8, beta=1))
    assert (after.levels, after.epoch, adoption) == ({"beta": 1}, 8, Adoption.ADOPTED)


def test_more_than_one_epoch_behind_is_more_than_is_tolerated() -> None:
    """One epoch behind is tolerated, two are marked; the newer levels stay either way (F-59)."""
    client, _ = ClientFeatures().on_response(response(7, alpha=3))
    assert client.on_response(response(6))[1] is Adoption.OLDER
    assert client.on_response(response(5)) == (client, Adoption.TOO_OLD)


@pytest.mark.form("document")
@given(st.permutations(range(12)), st.integers())
def test_in_any_order_the_newest_wins(order: list[int], seed: int) -> None:
    """From any brokers, in any order, with repetitions, the highest epoch wins (F-58)."""
    random, client, newest = Random(seed), ClientFeatures(), -1
    for epoch in [*order, *random.choices(order, k=5)]:
        before = client
        client, adoption = client.on_response(response(epoch, alpha=epoch % 5))
        newest = max(newest, epoch)
        assert (client.epoch, client.levels) == (newest, {"alpha": newest % 5})
        assert (client != before) is (adoption is Adoption.ADOPTED)


def test_the_epoch_is_of_the_set_and_is_not_a_level() -> None:
    """The same levels under a higher epoch are adopted, and a level may be above or below it
    (F-60).

    A lower level under a higher epoch is adopted, a higher level under a lower epoch is not.
    """
    client, _ = ClientFeatures().on_response(response(4, alpha=9))
    client, adoption = client.on_response(response(5, alpha=9))
    assert (adoption, client.epoch, client.levels) == (Adoption.ADOPTED, 5, {"alpha": 9})
    client, _ = client.on_response(response(6, alpha=1))
    assert client.levels == {"alpha": 1}
    client, _ = client.on_response(response(5, alpha=9))
    assert client.levels == {"alpha": 1}


def test_a_client_sends_one_request_unless_it_refreshes() -> None:
    """It sends one at its start to any broker; refreshing is optional (F-61)."""
    once, often = ClientFeatures(), ClientFeatures(refresh_ms=300)
    assert once.due(0)
    assert often.due(0)
    once, often = once.mark_requested(1000), often.mark_requested(1000)
    assert not once.due(10**9)
    assert not often.due(1299)
    assert often.due(1300)


def test_a_response_without_finalized_features_changes_nothing() -> None:
    """A broker without levels, or a request of an old version, removes nothing."""
    client, _ = ClientFeatures().on_response(response(4, alpha=9))
    assert client.on_response(FeaturesResponse()) == (client, Adoption.EMPTY)


@pytest.mark.form("document")
def test_discovery_gives_levels_and_no_protocol_version() -> None:
    """A response has only ranges, levels and the epoch; every name is a feature's (F-90).

    On the wire it has nothing else, either: `test_answers` has the bytes of each dialect.
    """
    broker = ReferenceBroker(BrokerIdentity(1), LATER_DRAFT, {"alpha": SupportedRange(1, 3)})
    (reply,) = broker.receive(RequestReceived(1, ApiVersions()), 0)
    assert isinstance(reply, SendResponse)
    assert isinstance(reply.response, FeaturesResponse)
    assert {item.name for item in fields(reply.response)} == {"supported", "finalized", "epoch"}
    assert {*reply.response.supported, *reply.response.finalized} == {"alpha"}
