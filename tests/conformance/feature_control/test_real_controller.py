"""A running controller gives the answers of the model, and does what it says that it does not."""

import time

import pytest

from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.state import (
    ControllerState,
    RegisteredBroker,
    RegisteredController,
)
from featurewatch.controller.kraft.updates import ELR_VERSION, decide_update
from featurewatch.kafka.messages import ApiVersionsRequestV4, UpdateFeaturesRequestV1
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    UpgradeType,
)
from tests.conftest import MakeCluster

pytestmark = pytest.mark.stack

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
SHARE = FeatureName("share.version")
NODE = NodeId(1)


def finalized(node: BlockingConnection) -> dict[FeatureName, FeatureLevel]:
    """The levels that a node says are finalized."""
    request = ApiVersionsRequestV4(client_software_name="t", client_software_version="1")
    answer = node.request(request)
    return {
        FeatureName(finalized_feature.name): FeatureLevel(finalized_feature.max_version_level)
        for finalized_feature in answer.finalized_features
    }


def rejections(node: BlockingConnection, request: UpdateRequest) -> list[str]:
    """The texts with which the controller refuses; none if it agrees."""
    ask = UpdateFeaturesRequestV1(
        feature_updates=tuple(
            UpdateFeaturesRequestV1.FeatureUpdateKey(
                feature=update.feature,
                max_version_level=update.level,
                upgrade_type=int(update.kind),
            )
            for update in request.updates
        ),
        validate_only=request.dry_run,
    )
    answer = node.request(ask)
    all_said = [(answer.error_code, answer.error_message)]
    all_said += [(result.error_code, result.error_message) for result in answer.results]
    return [str(text) for code, text in all_said if code]


def update_request(
    *updates: tuple[FeatureName, int, UpgradeType], dry: bool = True
) -> UpdateRequest:
    """A request, a dry run unless it is said otherwise."""
    listed = tuple(LevelUpdate(name, FeatureLevel(level), kind) for name, level, kind in updates)
    return UpdateRequest(listed, dry_run=dry)


HOLE = ((KRAFT_VERSION, 1, UP), (SHARE, 7, UP))
REQUESTS = (
    update_request((METADATA_VERSION, 30, UP)),
    update_request((METADATA_VERSION, 99, UP)),
    update_request((METADATA_VERSION, 28, UP)),
    update_request((METADATA_VERSION, 22, SAFE)),
    update_request((METADATA_VERSION, 22, UNSAFE)),
    update_request((METADATA_VERSION, 25, SAFE), (ELR_VERSION, 0, SAFE)),
    update_request((FeatureName("foo"), 1, UP)),
    update_request((FeatureName("foo"), 0, SAFE), (SHARE, -1, SAFE), (METADATA_VERSION, 40, UP)),
    update_request(*HOLE),
)


def test_a_running_controller_responds_as_the_model(make_cluster: MakeCluster) -> None:
    """Texts are equal to the last character; a refused request raises kraft.version for good."""
    cluster = make_cluster(ClusterSpec([NodeSpec(NODE, "4.3.0")], metadata_version="4.2"))
    host, _, port = cluster.controllers.rpartition(":")
    ranges = release_of("4.3").ranges()
    with BlockingConnection(host, int(port), timeout_s=30) as node:
        levels = finalized(node)
        assert KRAFT_VERSION not in levels
        state = ControllerState(
            NODE,
            ranges,
            levels,
            (RegisteredBroker(NODE, ranges),),
            (RegisteredController(NODE, ranges),),
            (NODE,),
        )
        for request in REQUESTS:
            decision = decide_update("4.3", state, request)
            assert rejections(node, request) == list(decision.refusals), request
        assert finalized(node) == levels
        decision = decide_update("4.3", state, update_request(*HOLE, dry=False))
        assert (decision.accepted, decision.kraft_version) == (False, 1)
        assert rejections(node, update_request(*HOLE, dry=False)) == list(decision.refusals)
        deadline = time.monotonic() + 60
        while finalized(node).get(KRAFT_VERSION) != 1:
            assert time.monotonic() < deadline, "kraft.version was not raised"
