"""A controller's state is derived from the image of a cluster."""

from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.state_from_image import controller_state
from featurewatch.controller.kraft.updates import decide_update
from featurewatch.controller.kraft.voters import voters_not_reporting
from featurewatch.streams.types import FeatureLevel, NodeId, SupportedRanges
from featurewatch.tables.image.cluster import ClusterImage
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, KV, MV, NEW, OLD
from tests.tables.images import fold_all


def upgraded(kraft: int) -> ClusterImage:
    """Controllers 1 and 2 vote, 2 is old; broker 4 has the newest release, and 5 is fenced."""
    return fold_all(
        [
            r.commit(1, r.leader_change(1, (1, 2, 3)), r.kraft_version(kraft)),
            r.commit(6, r.level(MV, 21), r.register_controller(1, NEW)),
            r.commit(8, r.register_controller(2, OLD), r.register(4, NEW, fenced=False)),
            r.commit(9, r.register(5, OLD)),
        ]
    )


def test_what_the_log_shows() -> None:
    """Levels, registrations and voters; kraft.version is separate from the other levels."""
    state = controller_state(upgraded(0))
    assert (state.id, state.cluster, dict(state.levels)) == (1, CLUSTER, {MV: 21})
    assert state.local == NEW
    assert [(broker.id, broker.fenced, broker.session) for broker in state.brokers] == [
        (4, False, True),
        (5, True, False),
    ]
    assert [controller.id for controller in state.controllers] == [1, 2]
    assert state.quorum == (1, 2, 3)


def test_voters_report_what_they_support_from_4_1_on() -> None:
    """An older voter does not report its support of kraft.version 1; the support of an unregistered
    voter is unknown."""
    assert not controller_state(upgraded(0)).voters_support_kraft
    registration = r.commit(10, r.register_controller(2, NEW))
    assert controller_state(fold_all([registration], upgraded(0))).voters_support_kraft
    ranges_of_voters = {
        NodeId(id_): release_of(name).ranges() for id_, name in ((1, "4.1"), (2, "4.0"))
    }
    voters = [*ranges_of_voters, NodeId(3)]
    assert voters_not_reporting(voters, ranges_of_voters, FeatureLevel(1)) == (2,)
    assert voters_not_reporting(voters, ranges_of_voters, FeatureLevel(2)) == (1, 2)


def test_voters_of_a_dynamic_quorum_are_not_listed() -> None:
    """From kraft.version 1 on only registered voters are known to a controller."""
    state = controller_state(upgraded(1))
    assert (state.quorum, state.kraft_version) == ((), 1)
    assert KV not in state.levels
    assert not state.voters_support_kraft  # nobody supports 2


def test_the_answer_to_be_expected() -> None:
    """The decision uses the active controller's release, or a given one."""
    request = UpdateRequest((LevelUpdate(MV, FeatureLevel(22)),))
    (text,) = decide_update("4.3", controller_state(upgraded(0)), request).refusals
    assert text.endswith("Broker 5 only supports versions 1-21")
    (text,) = decide_update(
        "3.9", controller_state(upgraded(0), SupportedRanges(OLD)), request
    ).refusals
    assert text.endswith("Local controller 1 only supports versions 1-21")
