"""Whether brokers still find the leader after the removal of a voter, by what they name."""

import pytest

from featurewatch.admin.quorum.bootstrap import checks_of_bootstrap
from featurewatch.streams.quorum import QuorumDescription, VoterEndpoint
from featurewatch.streams.types import FeatureLevel, NodeId

QUORUM = QuorumDescription(
    leader_id=NodeId(1),
    leader_epoch=5,
    high_watermark=1000,
    voters=(),
    observers=(),
    endpoints={
        NodeId(1): (VoterEndpoint("C", "one", 9093),),
        NodeId(2): (VoterEndpoint("C", "Two", 9093), VoterEndpoint("D", "::1", 9094)),
    },
    kraft_version=FeatureLevel(1),
)


@pytest.mark.parametrize(
    ("servers", "verdict"),
    [
        ({4: "two:9093"}, "no"),
        ({4: "TWO:9093, [::1]:9094"}, "no"),
        ({4: "two:9093,one:9093"}, "yes"),
        ({4: "two:9093,balancer:9093"}, "yes"),
        ({4: "two:9095"}, "yes"),
        ({4: "one:9093", 5: "two:9093"}, "no"),
        ({2: "two:9093"}, None),
        ({4: " "}, None),
        ({}, None),
    ],
)
def test_an_address_has_to_be_left(servers: dict[int, str], verdict: str | None) -> None:
    """Nothing is claimed of brokers that name none, or of the removed controller's own broker."""
    named = {NodeId(broker): text for broker, text in servers.items()}
    found = [str(check.verdict) for check in checks_of_bootstrap(QUORUM, NodeId(2), named)]
    assert found == ([] if verdict is None else [verdict])


def test_the_reason_names_the_brokers_and_what_to_do() -> None:
    """And a voter whose endpoints are unknown is not judged."""
    named = dict.fromkeys(map(NodeId, (4, 5, 6)), "two:9093")
    (check,) = checks_of_bootstrap(QUORUM, NodeId(2), named)
    assert not check.by_leader
    assert check.text.startswith("broker 4-6 has no other address in controller.quorum.bootstrap")
    assert "restart it first" in check.text
    assert checks_of_bootstrap(QUORUM, NodeId(3), named) == ()
