"""Rehearsals of real clusters, and of the model against Kafka's own controllers.

The second is a conformance test: each step is asked of a real controller, and its answers, texts
and registrations are compared with the model's.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.cli.commands.rehearse.real_controller import (
    ComparedStep,
    rehearse_on_real_controller,
)
from featurewatch.cli.config.settings import ClusterSection as Watched
from featurewatch.cli.runtime.cluster_image import read_image
from featurewatch.controller.kraft import (
    ControllerState,
    RegisteredBroker,
    controller_state,
    release_of,
)
from featurewatch.controller.rehearsal.rehearse import StepVerdict, all_levels
from featurewatch.controller.rehearsal.steps import parse
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
)
from tests.cli.commands import featurewatch

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def live(quorum_391: Cluster) -> ControllerState:
    """The state of the controller of a real 3.9.1 cluster."""
    return controller_state(read_image(Watched(controllers=quorum_391.controllers)))


def test_all_ways_to_a_cluster_give_the_same_image(quorum_391: Cluster) -> None:
    """The log over the wire, its files, and the nodes' own answers agree on levels and ranges."""
    node = quorum_391.leader()
    ways = [
        Watched(controllers=quorum_391.controllers),
        Watched(log_directory=node.data),
        Watched(servers=quorum_391.bootstrap_servers),
    ]
    images = [read_image(way, settle_ms=0) for way in ways]
    assert len({image.cluster for image in images}) == 1
    assert len({image.features.levels for image in images}) == 1
    for image in images:
        assert image.ready
        ranges = {
            key: node.capabilities.ranges[METADATA_VERSION]
            for key, node in image.nodes.nodes.items()
        }
        assert len(ranges) == 6
        assert set(ranges.values()) == {(1, 21)}


def test_a_live_cluster_is_rehearsed_and_stays_as_it_is(
    quorum_391: Cluster, tmp_path: Path
) -> None:
    """The command exits with 3 for a refused step and with 0 if all go through; nothing changes."""
    at = ("rehearse", "--bootstrap-controller", quorum_391.controllers)
    steps = ("--step", "restart:all@4.3", "--step", "upgrade:release=4.3")
    ahead = featurewatch(tmp_path, *at, "--step", "upgrade:metadata.version=4.3-IV0")
    assert (ahead.returncode, ahead.stderr) == (3, "")
    assert "only supports versions 1-21" in ahead.stdout
    done = featurewatch(tmp_path, *at, *steps, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert len(document["steps"]) == 13
    assert document["steps"][-1]["levels"]["metadata.version"] == 30
    image = read_image(Watched(controllers=quorum_391.controllers))
    assert dict(image.features.levels) == {METADATA_VERSION: 21}


def test_a_cluster_that_nobody_answers_for_is_unknown(tmp_path: Path) -> None:
    """Exit code 4, and one line that says who does not answer."""
    done = featurewatch(
        tmp_path, "rehearse", "--bootstrap-controller", "127.0.0.1:1", "-s", "stop:broker-1"
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert "nobody listens at 127.0.0.1:1" in done.stderr
    assert done.stderr.count("\n") == 1


def differences_of(steps: tuple[ComparedStep, ...]) -> dict[str, tuple[str, ...]]:
    """The differences at each step, and where another node in the way is named."""
    differences = {
        step.outcome.step.text: (*step.differences, *step.other_blockers) for step in steps
    }
    return {words: lines for words, lines in differences.items() if lines}


ON_391 = (
    "upgrade:metadata.version=4.3-IV0",
    "upgrade:metadata.version=3.9,foo=1",
    "upgrade:kraft.version=1,metadata.version=99,metadata.version=20",
    "downgrade:metadata.version=3.6",
    "downgrade-unsafe:metadata.version=3.6",
    "downgrade:metadata.version=3.8",
    "add-broker:7@4.0",
    "add-broker:8@3.6",
    "register:broker-1",
    "stop:broker-2",
    "register:broker-2@4.3",
    "register:broker-2@3.9",
    "unregister:broker-9",
    "unregister:broker-3",
    "add-controller:9@3.8",
    "upgrade:metadata.version=3.9",
    "disable:foo",
)


@pytest.mark.nightly
def test_3_9_1_says_what_the_model_says(live: ControllerState, stack_cache: Cache) -> None:
    """A fenced broker in the way, partial success, duplicates, ghosts: word for word the same."""
    brokers = tuple(
        broker._replace(fenced=True, session=False) if broker.id == 3 else broker
        for broker in live.brokers
    )
    staged = replace(live, brokers=brokers)
    rehearsal = rehearse_on_real_controller(
        "3.9.1", staged, [parse(step) for step in ON_391], stack_cache
    )
    assert differences_of(rehearsal.steps) == {}
    assert [step.outcome.step.text for step in rehearsal.steps if not step.compared] == []
    (only,) = rehearsal.staging_differences
    assert "do not run: a missing registration" in only
    verdicts = {step.outcome.step.text: step.outcome.verdict for step in rehearsal.steps}
    accepted = {words for words, verdict in verdicts.items() if verdict is StepVerdict.ACCEPTED}
    assert accepted == {
        *("downgrade:metadata.version=3.8", "add-broker:7@4.0", "stop:broker-2"),
        *("register:broker-2@4.3", "unregister:broker-3", "add-controller:9@3.8", "disable:foo"),
    }


ON_430 = (
    "upgrade:metadata.version=4.3-IV0",
    "upgrade:metadata.version=4.2-IV0,share.version=1,foo=1",
    "unregister:broker-5",
    "upgrade:metadata.version=4.2-IV1,share.version=1,streams.version=1",
    "upgrade:kraft.version=1,share.version=7",
    "add-broker:7@4.0",
    "add-broker:7@4.2",
    "add-controller:9@4.2",
    "upgrade:release=4.3",
    "register:controller-9@4.3",
    "unregister:broker-7",
    "upgrade:release=4.3",
    "downgrade:metadata.version=4.2",
    "disable:share.version",
    "register:controller-1@4.2",
    "unregister:controller-9",
)


def test_4_3_0_says_what_the_model_says(stack_cache: Cache) -> None:
    """All or nothing, dependencies, kraft.version raised by a refused request, controllers asked.

    The levels that the storage tool does not set are brought by updates before the first step.
    """
    ranges = {name: release_of(name).ranges() for name in ("3.9", "4.3")}
    state = ControllerState(
        NodeId(1),
        ranges["4.3"],
        {METADATA_VERSION: FeatureLevel(25), FeatureName("group.version"): FeatureLevel(1)},
        (
            RegisteredBroker(NodeId(4), ranges["4.3"], epoch=4, session=True),
            RegisteredBroker(NodeId(5), release_of("4.0").ranges(), epoch=5, session=True),
            RegisteredBroker(NodeId(6), ranges["3.9"], epoch=6, session=True),
        ),
        (),
        (NodeId(1),),
    )
    rehearsal = rehearse_on_real_controller(
        "4.3", state, [parse(step) for step in ON_430], stack_cache
    )
    assert differences_of(rehearsal.steps) == {}
    assert [step.outcome.step.text for step in rehearsal.steps if not step.compared] == [
        *("register:controller-1@4.2", "unregister:controller-9"),
    ]
    assert rehearsal.staging_differences == (
        "brokers 6 could not be registered at the finalized levels",
    )
    assert all_levels(rehearsal.staged) == dict(state.levels)
    raised = next(step for step in rehearsal.steps if "share.version=7" in step.outcome.step.text)
    assert raised.outcome.verdict is StepVerdict.REFUSED
    assert all_levels(raised.outcome.after.state)[KRAFT_VERSION] == 1
    assert [str(step.outcome.verdict) for step in rehearsal.steps] == [
        *("refused", "refused", "accepted", "accepted", "refused", "refused", "accepted"),
        *("accepted", "refused", "accepted", "accepted", "accepted", "refused", "accepted"),
        *("unknown", "refused"),
    ]


ON_440 = (
    "add-controller:9@4.3",
    "upgrade:metadata.version=4.4-IV2",
    "unregister:controller-9",
    "unregister:controller-1",
    "register:controller-9@4.4",
    "upgrade:metadata.version=4.4-IV2",
    "unregister:controller-8",
    "unregister:controller-1",
    "unregister:controller-9",
    "unregister:controller-9",
)


def test_4_4_0_says_what_the_model_says_of_a_ghost_controller(stack_cache: Cache) -> None:
    """A ghost of 4.3 blocks the level that permits to unregister it; a registration of 4.4 with its
    id is the way out. Only the active controller is never unregistered (KIP-1312)."""
    ranges = release_of("4.4").ranges()
    state = ControllerState(
        NodeId(1), ranges, {METADATA_VERSION: FeatureLevel(30)}, (), (), (NodeId(1),)
    )
    rehearsal = rehearse_on_real_controller(
        "4.4", state, [parse(step) for step in ON_440], stack_cache
    )
    assert differences_of(rehearsal.steps) == {}
    assert all(step.compared for step in rehearsal.steps)
    assert [str(step.outcome.verdict) for step in rehearsal.steps] == [
        *("accepted", "refused", "refused", "refused", "accepted"),
        *("accepted", "refused", "refused", "accepted", "refused"),
    ]
    (way_out,) = rehearsal.steps[2].outcome.notes
    assert "start a controller 9 on Kafka 4.4" in way_out
