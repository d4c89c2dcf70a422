"""Ready, not ready or unknown, with all reasons."""

import re
from dataclasses import replace
from random import Random

import orjson
import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import UpdateRequest, controller_state, decide_update, release_of
from featurewatch.controller.kraft.requests import LevelUpdate
from featurewatch.monitor.readiness import (
    NodeCondition,
    UpgradeState,
    applied_by_all,
    assess_readiness,
    release_levels,
)
from featurewatch.monitor.readiness.blockers import Blocker
from featurewatch.monitor.readiness.state_timers import CLUSTER, NO_TIMES, StateSince
from featurewatch.streams.events import SourceState
from featurewatch.streams.types import (
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
    Role,
    SupportedRanges,
)
from featurewatch.tables.image.cluster import Authority
from tests.monitor.readiness.clusters import (
    VOTERS,
    cluster,
    controllers,
    image,
    led_by,
    nodes,
    ranges,
)
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.records import KV, MV, TV
from tests.tables.images import fold_all

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN
NEW = release_of("4.3")


def test_a_cluster_of_one_release_is_ready_for_it() -> None:
    """Without blockers the controller accepts, and the report lists the consequences."""
    report = assess_readiness(image(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3")), NEW)
    assert (report.verdict, report.blockers) == (YES, ())
    (reason,) = report.reasons
    assert "does not show whether a voter is offline; add --bootstrap-server" in reason
    assert report.controller_response is not None
    assert (
        report.controller_response.controller,
        report.controller_response.release,
        report.controller_response.accepted,
    ) == (1, "4.3", True)
    levels = {
        feature.feature: (feature.finalized, feature.target, feature.state)
        for feature in report.features
    }
    assert levels[MV] == (21, 30, UpgradeState.READY)
    assert levels[TV] == (0, 2, UpgradeState.READY)
    changed = {
        feature.feature: [consequence.level for consequence in feature.consequences]
        for feature in report.features
    }
    assert changed[MV] == [*range(22, 31)]
    assert changed[TV] == [1, 2]
    assert report.downgrade_path is not None
    assert not report.downgrade_path.lossless


def test_every_blocker_is_named_with_its_remedy() -> None:
    """Running, fenced, ghost, and a controller that is no voter; each has its own remedy."""
    gone = r.register_controller(9, ranges("3.7"))
    cluster_image = image(
        *controllers("4.3", "3.9", "4.3"),
        gone,
        *nodes("4.3", "3.9"),
        r.register(7, ranges("3.9"), epoch=7),
    )
    report = assess_readiness(cluster_image, NEW, now_ms=10_000)
    blockers: dict[tuple[Role, int], Blocker] = {
        (blocker.role, blocker.node_id): blocker for blocker in report.blockers
    }
    assert report.verdict is NO
    assert {key: (blocker.software, blocker.condition) for key, blocker in blockers.items()} == {
        (Role.BROKER, 2): ("3.9", NodeCondition.RUNNING),
        (Role.BROKER, 7): ("3.9", NodeCondition.FENCED),
        (Role.CONTROLLER, 2): ("3.9", NodeCondition.RUNNING),
        (Role.CONTROLLER, 9): ("3.7", NodeCondition.GHOST),
    }
    assert blockers[Role.BROKER, 2].remedy == "start it on Kafka 4.3 to 4.4"
    assert blockers[Role.BROKER, 7].remedy.endswith(
        "featurewatch cluster unregister-broker --bootstrap-server HOST:PORT --id 7"
    )
    assert blockers[Role.CONTROLLER, 9].remedy == (
        "Kafka can unregister a controller only from metadata.version 33 (4.4-IV2) on: (1) start a "
        "controller with node.id 9 on Kafka 4.3 to 4.4, in an empty directory formatted for this "
        "cluster (kafka-storage.sh format --no-initial-controllers), so that it replaces the "
        "registration; (2) finalize the levels; (3) stop it"
    )
    assert {item.feature for item in blockers[Role.BROKER, 2].levels} >= {MV, TV}
    assert [(ghost.role, ghost.node_id) for ghost in report.ghosts] == [(Role.CONTROLLER, 9)]
    assert (
        orjson.loads(orjson.dumps(report, default=list))["blockers"][0]["levels"][0]["verdict"]
        == "no"
    )


def test_the_refusal_is_that_of_kafkas_controller() -> None:
    """Refusals are the texts of the active controller's release, in its order."""
    cluster_image = image(*controllers("4.3", "4.3", "4.3"), *nodes("4.3", "3.9"))
    report = assess_readiness(cluster_image, None, {MV: FeatureLevel(30)})
    decided = decide_update(
        "4.3",
        controller_state(cluster_image),
        UpdateRequest((LevelUpdate(MV, FeatureLevel(30)),), dry_run=True),
    )
    assert report.controller_response is not None
    assert report.controller_response.refusals == decided.refusals
    assert report.controller_response.refusals[0].endswith("Broker 2 only supports versions 1-21")
    assert report.target is None
    old = assess_readiness(led_by(image(*controllers("4.3", "3.9", "4.3")), 2), NEW)
    assert old.controller_response is not None
    assert (old.controller_response.release, old.controller_response.accepted) == ("3.9", False)
    assert "Local controller 2 only supports versions 1-21" in " ".join(
        old.controller_response.refusals
    )


def test_voters_that_never_registered() -> None:
    """They block while voters are listed in a file, and are unknown if raft manages the voters."""
    cluster_image = image(*controllers("4.3", "4.3"), *nodes("4.3"))
    (blocker,) = assess_readiness(cluster_image, NEW).blockers
    assert (blocker.role, blocker.node_id, blocker.condition) == (
        Role.CONTROLLER,
        3,
        NodeCondition.UNREGISTERED,
    )
    assert assess_readiness(cluster_image, NEW).verdict is NO
    dynamic = fold_all(
        [*cluster(*controllers("4.3", "4.3"), *nodes("4.3")), r.commit(60, r.kraft_version(1))]
    )
    report = assess_readiness(dynamic, NEW)
    assert (report.controller_response and report.controller_response.accepted, report.verdict) == (
        True,
        UNKNOWN,
    )


def test_controllers_that_do_not_register_are_unknown_until_they_are_asked() -> None:
    """Below metadata.version 15 the log has no controllers; their ApiVersions responses do."""
    cluster_image = image(*nodes("3.9", "3.9"), level=14)
    report = assess_readiness(cluster_image, release_of("3.9"))
    assert report.verdict is UNKNOWN
    assert {(blocker.node_id, blocker.condition) for blocker in report.blockers} == {
        (voter, NodeCondition.UNSEEN) for voter in VOTERS
    }
    answers = [
        r.answer(voter, ranges("3.9"), {MV: 14}, 50, 1000, role=Role.CONTROLLER) for voter in VOTERS
    ]
    asked = fold_all([*cluster(*nodes("3.9", "3.9"), level=14), *answers])
    assert assess_readiness(asked, release_of("3.9")).verdict is YES
    (old, *rest) = answers
    older = replace(old, supported=SupportedRanges(ranges("3.6")))
    blocked = assess_readiness(
        fold_all([*cluster(*nodes("3.9", "3.9"), level=14), older, *rest]), release_of("3.9")
    )
    assert (blocked.verdict, [blocker.software for blocker in blocked.blockers]) == (NO, ["3.6"])


def test_an_unknown_state_never_gives_yes() -> None:
    """Not caught up, a gap, an unreadable record, a stale source, an invalid range."""
    complete = image(*controllers(*["4.3"] * 3), *nodes("4.3"))
    assert assess_readiness(complete, NEW).verdict is YES
    behind = fold_all(cluster(*controllers(*["4.3"] * 3), *nodes("4.3"))[:-1])
    assert assess_readiness(behind, NEW).verdict is UNKNOWN
    assert assess_readiness(behind, NEW).state is UpgradeState.UNKNOWN
    gap = replace(complete, log=replace(complete.log, gap="lost"))
    assert assess_readiness(gap, NEW).verdict is UNKNOWN
    torn = fold_all([*cluster(*controllers(*["4.3"] * 3)), r.commit(60, r.unreadable())])
    assert assess_readiness(torn, NEW).verdict is UNKNOWN
    old = assess_readiness(complete, NEW, now_ms=100_000)
    assert (old.verdict, "99 s ago" in old.reasons[0]) == (UNKNOWN, True)
    broken = image(*controllers(*["4.3"] * 3), *nodes("4.3"), r.register(5, {MV: (9, 3)}))
    report = assess_readiness(broken, None, {MV: FeatureLevel(30)})
    assert [(blocker.node_id, blocker.verdict) for blocker in report.blockers] == [(5, UNKNOWN)]


def test_a_node_that_does_not_answer_is_unknown_and_the_rest_is_shown() -> None:
    """With ApiVersions alone a silent node is named, and the verdict is never a sure yes."""
    events = [r.answer(node, ranges("4.3"), {MV: 21}, 9, 100 + node) for node in (1, 2)]
    events += [r.answer(3, ranges("3.9"), {MV: 21}, 9, 103)]
    cluster_image = fold_all(
        [*events, r.silent(2, 200), r.following(0, source="api-versions", seen_ms=300)]
    )
    report = assess_readiness(cluster_image, NEW)
    blockers = {
        blocker.node_id: (blocker.condition, blocker.verdict) for blocker in report.blockers
    }
    assert blockers == {2: (NodeCondition.SILENT, UNKNOWN), 3: (NodeCondition.RUNNING, NO)}
    assert report.verdict is NO
    alone = fold_all([*events[:1], r.following(0, source="api-versions", seen_ms=300)])
    assert assess_readiness(alone, NEW).verdict is UNKNOWN
    assert "--bootstrap-controller" in assess_readiness(alone, NEW).reasons[0]


def test_the_active_controller_is_known_from_responses_alone() -> None:
    """Without a log the model uses the controller's own responses."""
    responders = [(1, Role.BROKER), (1, Role.CONTROLLER), (2, Role.CONTROLLER)]
    events = [
        r.answer(node, ranges("4.3"), {MV: 30}, 9, 100 + at, role=role)
        for at, (node, role) in enumerate(responders)
    ]
    status = replace(
        r.following(0, source="api-versions", seen_ms=300), leader_id=2, leader_epoch=3
    )
    report = assess_readiness(
        fold_all([*events, status]), None, {KV: FeatureLevel(1), MV: FeatureLevel(30)}
    )
    assert report.controller_response is not None
    assert (report.controller_response.controller, report.controller_response.assumed) == (2, False)
    assert (report.controller_response.accepted, report.controller_response.refusals) == (True, ())
    assert report.verdict is UNKNOWN, "only the log shows which nodes are registered"


def test_zookeeper_mode_has_no_target_metadata_version() -> None:
    """ZooKeeper mode has no target level, and Kafka 4 requires a migration (M-01)."""
    cluster_image = fold_all([*z.reading("s1", (z.broker(1, {}, 10),), 50), z.following()])
    assert cluster_image.authority is Authority.ZOOKEEPER
    stays = assess_readiness(cluster_image, release_of("3.9"))
    assert (stays.verdict, stays.changes, stays.controller_response, stays.downgrade_path) == (
        YES,
        False,
        None,
        None,
    )
    assert MV not in {feature.feature for feature in stays.features if feature.target is not None}
    assert "metadata.version is ignored" in stays.reasons[0]
    leaves = assess_readiness(cluster_image, NEW)
    assert leaves.verdict is NO
    assert "Migrate the cluster to KRaft" in leaves.reasons[0]


def test_brokers_in_zookeeper_mode_that_are_polled_alone() -> None:
    """Controller, release and downgrade path stay unset if the sources do not provide them."""
    answers = [r.answer(node_id, {}, {}, -1, 100 + node_id) for node_id in (1, 2)]
    cluster_image = fold_all([*answers, r.following(0, source="api-versions", seen_ms=300)])
    report = assess_readiness(cluster_image, release_of("3.9"))
    assert (report.verdict, report.blockers, report.controller_response, report.downgrade_path) == (
        UNKNOWN,
        (),
        None,
        None,
    )
    assert "as in ZooKeeper mode" in report.reasons[0]
    nothing = assess_readiness(cluster_image)
    assert nothing.verdict is UNKNOWN
    assert "add --target" in nothing.reasons[-1]


def test_a_ghost_voter_has_to_be_started_again() -> None:
    """Other controllers are started once more so that they register again, and stopped."""
    cluster_image = image(*controllers("4.3", "3.9", "4.3"), *nodes("4.3"))
    key = NodeKey(Role.CONTROLLER, NodeId(2))
    times = replace(NO_TIMES, offline=NO_TIMES.offline.set(key, 0))
    report = assess_readiness(cluster_image, NEW, times=times, now_ms=10**9)
    ghost = next(blocker for blocker in report.blockers if blocker.role is Role.CONTROLLER)
    assert (ghost.node_id, ghost.condition, ghost.remedy) == (
        2,
        NodeCondition.GHOST,
        "start it on Kafka 4.3 to 4.4",
    )


@pytest.mark.parametrize(
    ("ghost_software", "level", "target", "last_step"),
    [
        ("4.3", 30, 33, "(4) featurewatch cluster unregister-controller --bootstrap-server HOST:"),
        ("4.3", 31, 32, "(3) stop it"),
        ("4.3", 32, 33, "(4) featurewatch cluster unregister-controller --bootstrap-server HOST:"),
        ("4.4", 33, 34, "featurewatch cluster unregister-controller --bootstrap-server HOST:PORT"),
    ],
)
def test_a_ghost_controller_is_removed_as_the_finalized_level_permits(
    ghost_software: str, level: int, target: int, last_step: str
) -> None:
    """Below 33 nothing removes it, and it blocks 33, which could: it is replaced, and unregistered
    after. From 33 on it is unregistered at once (KIP-1312)."""
    living = {MV: (7, 34)}
    cluster_image = image(
        *(r.register_controller(voter, living) for voter in VOTERS),
        r.register_controller(9, ranges(ghost_software)),
        r.register(1, living),
        level=level,
    )
    report = assess_readiness(cluster_image, None, {MV: FeatureLevel(target)})
    (blocker,) = report.blockers
    assert (blocker.node_id, blocker.condition) == (9, NodeCondition.GHOST)
    *steps, last = blocker.remedy.split("; ")
    assert last.startswith(last_step)
    assert bool(steps) == (level < 33)
    if steps:
        assert "(1) start a controller with node.id 9 on " in steps[0]


def test_an_unknown_state_has_no_beginning() -> None:
    """The time of a state that was left is not reported for the unknown state."""
    cluster_image = image(*controllers("4.3"), *nodes("4.3", "3.9"))
    times = replace(
        NO_TIMES, states=NO_TIMES.states.set(CLUSTER, StateSince(UpgradeState.MIXED, 77))
    )
    assert assess_readiness(cluster_image, NEW, times=times).since_ms == 77
    lost = fold_all([r.catching_up(50, seen_ms=900)], cluster_image)
    report = assess_readiness(lost, NEW, times=times)
    assert (report.state, report.since_ms) == (UpgradeState.UNKNOWN, -1)


def test_other_features_in_zookeeper_mode_follow_kip_584() -> None:
    """Every live broker counts, and a finalized level can be lowered."""
    features = {TV: (1, 2)}
    cluster_image = fold_all(
        [
            *z.reading("s1", (z.broker(1, features, 10), z.broker(2, {TV: (1, 1)}, 11)), 50),
            z.following(),
        ]
    )
    report = assess_readiness(cluster_image, None, {TV: FeatureLevel(2)})
    assert [(blocker.node_id, blocker.verdict) for blocker in report.blockers] == [(2, NO)]
    assert report.blockers[0].remedy == "start it on a release that supports these levels"
    assert assess_readiness(cluster_image, None, {TV: FeatureLevel(1)}).verdict is YES


def test_a_migration_goes_first() -> None:
    """During a migration no level may change (KIP-866)."""
    cluster_image = image(*controllers(*["3.9"] * 3), *nodes("3.9"), r.migration_state(1))
    report = assess_readiness(cluster_image, None, {MV: FeatureLevel(20)})
    assert report.verdict is NO
    assert any("ZooKeeper to KRaft" in text for text in report.reasons)


def test_software_that_does_not_start_at_the_finalized_level() -> None:
    """Kafka 4 needs metadata.version 7: raise it before the nodes are rolled."""
    report = assess_readiness(
        image(*controllers(*["3.9"] * 3), *nodes("3.9"), level=6), release_of("4.0")
    )
    assert report.verdict is NO
    assert any("does not start below metadata.version 7" in text for text in report.reasons)


@pytest.mark.form("document")
def test_older_software_waits_until_every_node_has_applied_the_downgrade() -> None:
    """Kafka does not record it, but the nodes' epochs show it; without responses it is unknown
    (M-59)."""
    target = release_of("4.2")
    lowered = {
        name: level for name, level in release_levels(target).items() if name not in (MV, KV)
    }
    log = [
        *cluster(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3"), level=29),
        r.commit(70, *(r.level(name, level) for name, level in lowered.items())),
        r.commit(71, r.kraft_version(1)),
    ]
    report = assess_readiness(fold_all(log), target, now_ms=720)
    assert (report.verdict, report.changes) == (UNKNOWN, False)
    assert "broker 1, broker 2" in report.reasons[0]

    def answered(*epochs: int) -> list[object]:
        brokers = [
            r.answer(node, ranges("4.3"), {}, epoch, 800 + node)
            for node, epoch in enumerate(epochs, start=1)
        ]
        return [
            *brokers,
            *(r.answer(v, ranges("4.3"), {}, 71, 900, role=Role.CONTROLLER) for v in VOTERS),
        ]

    late = fold_all([*log, *answered(71, 60)])  # type: ignore[list-item]
    assert applied_by_all(late, 60_000)[0] is NO
    assert [key.node_id for key in applied_by_all(late, 60_000)[1]] == [2]
    done = fold_all([*log, *answered(71, 72)])  # type: ignore[list-item]
    assert assess_readiness(done, target, now_ms=1000).verdict is YES


def test_a_lossy_downgrade_is_refused_and_a_lossless_one_is_not() -> None:
    """An older target needs the lower levels, all in one request."""
    cluster_image = image(*controllers(*["4.3"] * 3), *nodes("4.3"), level=30)
    refused = assess_readiness(cluster_image, release_of("3.9"))
    assert refused.controller_response is not None
    assert (
        "Unsupported metadata.version downgrade from 30 to 21"
        in refused.controller_response.refusals[0]
    )
    cluster_image = image(*controllers(*["4.3"] * 3), *nodes("4.3"), level=29)
    assert assess_readiness(cluster_image, release_of("4.0")).verdict is YES
    below = assess_readiness(
        cluster_image, None, {TV: FeatureLevel(0), FeatureName("nothing"): FeatureLevel(1)}
    )
    assert {feature.feature for feature in below.features if feature.verdict is NO} == {"nothing"}


def test_an_upgrade_and_a_downgrade_in_one_request() -> None:
    """One request has both an upgrade and a downgrade: a refusal of either refuses it."""
    cluster_image = image(*controllers(*["4.3"] * 3), *nodes("4.3"), level=30)
    for levels in ({KV: FeatureLevel(1)}, {MV: FeatureLevel(21)}):
        report = assess_readiness(
            cluster_image, None, {TV: FeatureLevel(2), KV: FeatureLevel(1), **levels}
        )
        assert report.verdict is (NO if MV in levels else YES)
    assert report.controller_response is not None
    assert (
        "Unsupported metadata.version downgrade from 30 to 21"
        in report.controller_response.refusals[0]
    )


def test_a_stalled_source_makes_the_verdict_unknown() -> None:
    """A stalled source makes the verdict unknown; a source that only lags does not."""
    cluster_image = image(*controllers(*["4.3"] * 3), *nodes("4.3"))
    behind = r.catching_up(source="api-versions", seen_ms=300)
    assert assess_readiness(fold_all([behind], cluster_image), NEW).verdict is YES
    stalled = r.status(SourceState.STALLED, source="api-versions", seen_ms=300)
    report = assess_readiness(fold_all([stalled], cluster_image), NEW)
    assert report.verdict is UNKNOWN
    assert report.reasons[0] == "The nodes could not be queried: it cannot read."


def test_kraft_version_needs_a_report_of_every_voter() -> None:
    """Only voters of 4.1 or later report to a leader of such a release, and absent ones do not; the
    refusal names no voter."""
    target_levels = {KV: FeatureLevel(1)}
    report = assess_readiness(
        image(*controllers("4.3", "4.0", "4.1"), *nodes("4.3")), None, target_levels
    )
    assert (report.verdict, report.blockers) == (NO, ())
    assert "start controller 2 on that" in report.reasons[0]
    assert report.controller_response is not None
    assert "because not all of the voters support it" in report.controller_response.refusals[0]
    cluster_image = image(*controllers("4.3", "4.2", "4.1"), *nodes("4.3"))
    answers = [
        r.answer(id_, ranges("4.1"), {MV: 21}, 9, 100 + id_, role=Role.CONTROLLER) for id_ in VOTERS
    ]
    with_answers = fold_all(
        [*answers, r.following(0, source="api-versions", seen_ms=300)], cluster_image
    )
    never = fold_all(
        [*answers[:2], r.following(0, source="api-versions", seen_ms=300)], cluster_image
    )
    assert "controller 3 does not answer" in assess_readiness(never, None, target_levels).reasons[0]
    assert (
        assess_readiness(with_answers, None, target_levels).verdict,
        assess_readiness(with_answers, None, target_levels).reasons,
    ) == (
        YES,
        (),
    )
    after_silence = assess_readiness(
        fold_all([r.silent(3, 200, role=Role.CONTROLLER)], with_answers), None, target_levels
    )
    assert after_silence.verdict is UNKNOWN
    assert "controller 3 does not answer" in after_silence.reasons[0]
    older = assess_readiness(
        led_by(image(*controllers("4.3", "4.0", "4.1")), 2), None, target_levels
    )
    assert older.verdict is YES, "before 4.1 no leader waits for it"


def test_nodes_whose_views_differ_from_the_log() -> None:
    """Levels, epochs and ranges that do not match the log, and silence, each with its node."""
    log = cluster(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3", "3.9"))
    cluster_image = fold_all(
        [
            *log,
            r.disagreement(MV, 2, 600),
            r.answer(1, ranges("4.3"), {MV: 21}, 60, 700),
            r.answer(2, ranges("4.3"), {}, -1, 700),
            r.answer(3, ranges("4.3"), {MV: 21}, 60, 700),
            r.silent(1, 800),
            r.following(0, source="api-versions", seen_ms=900),
        ]
    )
    divergences = [
        (divergence.node_id, divergence.difference)
        for divergence in assess_readiness(cluster_image, NEW, now_ms=1000).divergences
    ]
    assert divergences == [
        (0, "sees metadata.version at off"),
        (1, "does not answer"),
        (1, "sees metadata.version at 1 (3.0-IV1)"),
        (2, "has not applied the levels of offset 50"),
        (3, "answers as Kafka 4.3 but is registered as Kafka 3.9"),
    ]


@pytest.mark.parametrize("name", ["3.9", "4.0", "4.1", "4.2", "4.3"])
def test_the_target_levels_of_a_release_are_those_of_kafkas_tool(name: str) -> None:
    """The target levels are the newest metadata.version and every other default above 0."""
    report = release_levels(release_of(name))
    assert report.pop(MV) == release_of(name).newest(MV)
    defaults = release_of(name).defaults(release_of(name).newest(MV))
    assert report == {feature: level for feature, level in defaults.items() if level}
    assert assess_readiness(image(*controllers(*[name] * 3), *nodes(name))).target == name


@pytest.mark.parametrize("seed", range(40))
def test_a_refusal_because_of_a_node_implies_a_blocker(seed: int) -> None:
    """Any mixture of releases, fenced or not: it refuses because of a node only if there are
    blockers, and the named node is one of them.
    """
    chance = Random(seed)
    names = ("3.8", "3.9", "4.0", "4.2", "4.3")
    brokers = [
        r.register(node, ranges(chance.choice(names)), fenced=chance.random() < 0.3, epoch=node)
        for node in chance.sample(range(100), chance.randint(1, 9))
    ]
    voting = controllers(*(chance.choice(names) for _ in VOTERS[: chance.randint(1, 3)]))
    cluster_image = image(*voting, *brokers, level=20)
    level = FeatureLevel(chance.choice((20, 21, 25, 29, 30)))
    report = assess_readiness(cluster_image, None, {MV: level})
    blocking = {(blocker.role, blocker.node_id) for blocker in report.blockers}
    if report.controller_response is None:
        assert level == 20
        return
    assert report.controller_response.accepted is not bool(blocking)
    assert report.verdict is (YES if report.controller_response.accepted else NO)
    for text in report.controller_response.refusals:
        role, node = re.search(r"(broker|controller) (\d+)", text, re.IGNORECASE).groups()  # type: ignore[union-attr]
        assert (Role(role.lower()), int(node)) in blocking
