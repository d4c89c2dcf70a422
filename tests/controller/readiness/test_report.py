"""Ready, not ready or unknown, with everything that stands behind it."""

import re
from dataclasses import replace
from random import Random

import orjson
import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import UpdateRequest, controller_state, decide_update, release_of
from featurewatch.controller.kraft.requests import LevelUpdate
from featurewatch.controller.readiness import (
    NodeCondition,
    UpgradeState,
    applied_by_all,
    assess_readiness,
    release_levels,
)
from featurewatch.controller.readiness.blockers import Blocker
from featurewatch.controller.readiness.state_timers import CLUSTER, NO_TIMES, StateSince
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
from tests.controller.readiness.clusters import (
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
    """Nobody stands in the way, the controller would accept, and what comes of it is said."""
    found = assess_readiness(image(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3")), NEW)
    assert (found.verdict, found.blockers) == (YES, ())
    (remark,) = found.reasons
    assert "whether one is away the log does not tell: give --bootstrap-server" in remark
    assert found.said is not None
    assert (found.said.controller, found.said.release, found.said.accepted) == (1, "4.3", True)
    levels = {one.feature: (one.finalized, one.target, one.state) for one in found.features}
    assert levels[MV] == (21, 30, UpgradeState.READY)
    assert levels[TV] == (0, 2, UpgradeState.READY)
    changed = {one.feature: [each.level for each in one.consequences] for one in found.features}
    assert changed[MV] == [*range(22, 31)]
    assert changed[TV] == [1, 2]
    assert found.way_back is not None
    assert not found.way_back.lossless


def test_every_node_in_the_way_is_named_with_what_to_do() -> None:
    """Running, fenced, ghost, and a controller that is no voter; each with its own remedy."""
    gone = r.register_controller(9, ranges("3.7"))
    seen = image(
        *controllers("4.3", "3.9", "4.3"),
        gone,
        *nodes("4.3", "3.9"),
        r.register(7, ranges("3.9"), epoch=7),
    )
    found = assess_readiness(seen, NEW, now_ms=10_000)
    told: dict[tuple[Role, int], Blocker] = {(one.role, one.node_id): one for one in found.blockers}
    assert found.verdict is NO
    assert {key: (one.software, one.condition) for key, one in told.items()} == {
        (Role.BROKER, 2): ("3.9", NodeCondition.RUNNING),
        (Role.BROKER, 7): ("3.9", NodeCondition.FENCED),
        (Role.CONTROLLER, 2): ("3.9", NodeCondition.RUNNING),
        (Role.CONTROLLER, 9): ("3.7", NodeCondition.GHOST),
    }
    assert told[Role.BROKER, 2].remedy == "start it on Kafka 4.3"
    assert told[Role.BROKER, 7].remedy.endswith(
        "kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id 7"
    )
    assert "node.id 9 on Kafka 4.3 once more" in told[Role.CONTROLLER, 9].remedy
    assert {item.feature for item in told[Role.BROKER, 2].levels} >= {MV, TV}
    assert [(one.role, one.node_id) for one in found.ghosts] == [(Role.CONTROLLER, 9)]
    assert (
        orjson.loads(orjson.dumps(found, default=list))["blockers"][0]["levels"][0]["verdict"]
        == "no"
    )


def test_the_refusal_is_that_of_kafkas_controller() -> None:
    """In its words, for the release that the active controller runs, in its order."""
    seen = image(*controllers("4.3", "4.3", "4.3"), *nodes("4.3", "3.9"))
    found = assess_readiness(seen, None, {MV: FeatureLevel(30)})
    decided = decide_update(
        "4.3",
        controller_state(seen),
        UpdateRequest((LevelUpdate(MV, FeatureLevel(30)),), dry_run=True),
    )
    assert found.said is not None
    assert found.said.refusals == decided.refusals
    assert found.said.refusals[0].endswith("Broker 2 only supports versions 1-21")
    assert found.target is None
    old = assess_readiness(led_by(image(*controllers("4.3", "3.9", "4.3")), 2), NEW)
    assert old.said is not None
    assert (old.said.release, old.said.accepted) == ("3.9", False)
    assert "Local controller 2 only supports versions 1-21" in " ".join(old.said.refusals)


def test_voters_that_never_registered() -> None:
    """They block while the voters are listed in a file, and are unknown where raft keeps them."""
    seen = image(*controllers("4.3", "4.3"), *nodes("4.3"))
    (one,) = assess_readiness(seen, NEW).blockers
    assert (one.role, one.node_id, one.condition) == (
        Role.CONTROLLER,
        3,
        NodeCondition.UNREGISTERED,
    )
    assert assess_readiness(seen, NEW).verdict is NO
    dynamic = fold_all(
        [*cluster(*controllers("4.3", "4.3"), *nodes("4.3")), r.commit(60, r.kraft_version(1))]
    )
    found = assess_readiness(dynamic, NEW)
    assert (found.said and found.said.accepted, found.verdict) == (True, UNKNOWN)


def test_controllers_that_do_not_register_are_unknown_until_they_are_asked() -> None:
    """Below metadata.version 15 the log does not tell of them; their answers do."""
    seen = image(*nodes("3.9", "3.9"), level=14)
    found = assess_readiness(seen, release_of("3.9"))
    assert found.verdict is UNKNOWN
    assert {(one.node_id, one.condition) for one in found.blockers} == {
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
    assert (blocked.verdict, [one.software for one in blocked.blockers]) == (NO, ["3.6"])


def test_unknown_is_never_yes() -> None:
    """Not read to the end, a gap, an unreadable record, old news, a range that is none."""
    whole = image(*controllers(*["4.3"] * 3), *nodes("4.3"))
    assert assess_readiness(whole, NEW).verdict is YES
    behind = fold_all(cluster(*controllers(*["4.3"] * 3), *nodes("4.3"))[:-1])
    assert assess_readiness(behind, NEW).verdict is UNKNOWN
    assert assess_readiness(behind, NEW).state is UpgradeState.UNKNOWN
    assert assess_readiness(replace(whole, gap="lost"), NEW).verdict is UNKNOWN
    torn = fold_all([*cluster(*controllers(*["4.3"] * 3)), r.commit(60, r.unreadable())])
    assert assess_readiness(torn, NEW).verdict is UNKNOWN
    old = assess_readiness(whole, NEW, now_ms=100_000)
    assert (old.verdict, "99 s ago" in old.reasons[0]) == (UNKNOWN, True)
    broken = image(*controllers(*["4.3"] * 3), *nodes("4.3"), r.register(5, {MV: (9, 3)}))
    found = assess_readiness(broken, None, {MV: FeatureLevel(30)})
    assert [(one.node_id, one.verdict) for one in found.blockers] == [(5, UNKNOWN)]


def test_a_node_that_does_not_answer_is_unknown_and_the_rest_is_shown() -> None:
    """Where only answers are known a silent one is named, and no answer of all is a sure yes."""
    events = [r.answer(node, ranges("4.3"), {MV: 21}, 9, 100 + node) for node in (1, 2)]
    events += [r.answer(3, ranges("3.9"), {MV: 21}, 9, 103)]
    seen = fold_all([*events, r.silent(2, 200), r.following(0, source="api-versions", seen_ms=300)])
    found = assess_readiness(seen, NEW)
    told = {one.node_id: (one.condition, one.verdict) for one in found.blockers}
    assert told == {2: (NodeCondition.SILENT, UNKNOWN), 3: (NodeCondition.RUNNING, NO)}
    assert found.verdict is NO
    alone = fold_all([*events[:1], r.following(0, source="api-versions", seen_ms=300)])
    assert assess_readiness(alone, NEW).verdict is UNKNOWN
    assert "--bootstrap-controller" in assess_readiness(alone, NEW).reasons[0]


def test_the_active_controller_is_known_by_the_nodes_word_alone() -> None:
    """Where nobody reads the log, it is asked as the node that it is, with what it answered."""
    every = [(1, Role.BROKER), (1, Role.CONTROLLER), (2, Role.CONTROLLER)]
    events = [
        r.answer(node, ranges("4.3"), {MV: 30}, 9, 100 + at, role=role)
        for at, (node, role) in enumerate(every)
    ]
    led = replace(r.following(0, source="api-versions", seen_ms=300), leader_id=2, leader_epoch=3)
    found = assess_readiness(
        fold_all([*events, led]), None, {KV: FeatureLevel(1), MV: FeatureLevel(30)}
    )
    assert found.said is not None
    assert (found.said.controller, found.said.assumed) == (2, False)
    assert (found.said.accepted, found.said.refusals) == (True, ())
    assert found.verdict is UNKNOWN, "who is registered stands in the log alone"


def test_metadata_version_is_nothing_in_zookeeper_mode() -> None:
    """It is set up in KRaft alone: no level is asked for, and Kafka 4 wants a migration (M-01)."""
    seen = fold_all([*z.reading("s1", (z.broker(1, {}, 10),), 50), z.following()])
    assert seen.authority is Authority.ZOOKEEPER
    stays = assess_readiness(seen, release_of("3.9"))
    assert (stays.verdict, stays.changes, stays.said, stays.way_back) == (YES, False, None, None)
    assert MV not in {one.feature for one in stays.features if one.target is not None}
    assert "metadata.version is ignored" in stays.reasons[0]
    leaves = assess_readiness(seen, NEW)
    assert leaves.verdict is NO
    assert "migrate the cluster to KRaft first" in leaves.reasons[0]


def test_brokers_in_zookeeper_mode_that_are_asked_alone() -> None:
    """Nothing is made up of a controller, of releases or of a way back: it is said what is seen."""
    answers = [r.answer(one, {}, {}, -1, 100 + one) for one in (1, 2)]
    seen = fold_all([*answers, r.following(0, source="api-versions", seen_ms=300)])
    found = assess_readiness(seen, release_of("3.9"))
    assert (found.verdict, found.blockers, found.said, found.way_back) == (UNKNOWN, (), None, None)
    assert "as in ZooKeeper mode" in found.reasons[0]
    nothing = assess_readiness(seen)
    assert nothing.verdict is UNKNOWN
    assert "give --target" in nothing.reasons[-1]


def test_a_voter_that_is_a_ghost_has_to_come_back_for_good() -> None:
    """Other controllers are started once more so that they register anew, and stopped."""
    seen = image(*controllers("4.3", "3.9", "4.3"), *nodes("4.3"))
    key = NodeKey(Role.CONTROLLER, NodeId(2))
    times = replace(NO_TIMES, offline=NO_TIMES.offline.set(key, 0))
    found = assess_readiness(seen, NEW, times=times, now_ms=10**9)
    ghost = next(one for one in found.blockers if one.role is Role.CONTROLLER)
    assert (ghost.node_id, ghost.condition, ghost.remedy) == (
        2,
        NodeCondition.GHOST,
        "start it on Kafka 4.3",
    )


def test_what_is_not_known_now_has_no_beginning() -> None:
    """The state of before is not said to be unknown since then."""
    known = image(*controllers("4.3"), *nodes("4.3", "3.9"))
    times = replace(
        NO_TIMES, states=NO_TIMES.states.set(CLUSTER, StateSince(UpgradeState.MIXED, 77))
    )
    assert assess_readiness(known, NEW, times=times).since_ms == 77
    lost = fold_all([r.catching_up(50, seen_ms=900)], known)
    found = assess_readiness(lost, NEW, times=times)
    assert (found.state, found.since_ms) == (UpgradeState.UNKNOWN, -1)


def test_other_features_in_zookeeper_mode_follow_kip_584() -> None:
    """Every live broker counts, and what is finalized can be taken back."""
    features = {TV: (1, 2)}
    seen = fold_all(
        [
            *z.reading("s1", (z.broker(1, features, 10), z.broker(2, {TV: (1, 1)}, 11)), 50),
            z.following(),
        ]
    )
    found = assess_readiness(seen, None, {TV: FeatureLevel(2)})
    assert [(one.node_id, one.verdict) for one in found.blockers] == [(2, NO)]
    assert found.blockers[0].remedy == "start it on a release that supports these levels"
    assert assess_readiness(seen, None, {TV: FeatureLevel(1)}).verdict is YES


def test_a_migration_goes_first() -> None:
    """While it is under way no level may move (KIP-866)."""
    seen = image(*controllers(*["3.9"] * 3), *nodes("3.9"), r.migration_state(1))
    found = assess_readiness(seen, None, {MV: FeatureLevel(20)})
    assert found.verdict is NO
    assert any("ZooKeeper to KRaft" in text for text in found.reasons)


def test_software_that_does_not_start_at_the_level_there_is() -> None:
    """Kafka 4 needs metadata.version 7: raise it before the nodes are rolled."""
    found = assess_readiness(
        image(*controllers(*["3.9"] * 3), *nodes("3.9"), level=6), release_of("4.0")
    )
    assert found.verdict is NO
    assert any("do not start below metadata.version 7" in text for text in found.reasons)


def test_older_software_waits_until_every_node_has_taken_in_the_downgrade() -> None:
    """Kafka keeps no account of it, the nodes' own epochs do; not asked is unknown (M-59)."""
    target = release_of("4.2")
    lowered = {
        name: level for name, level in release_levels(target).items() if name not in (MV, KV)
    }
    log = [
        *cluster(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3"), level=29),
        r.commit(70, *(r.level(name, level) for name, level in lowered.items())),
        r.commit(71, r.kraft_version(1)),
    ]
    found = assess_readiness(fold_all(log), target, now_ms=720)
    assert (found.verdict, found.changes) == (UNKNOWN, False)
    assert "broker 1, broker 2" in found.reasons[0]

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


def test_a_lossy_way_down_is_refused_and_a_lossless_one_is_not() -> None:
    """An older target asks for the lower levels, all in one request."""
    seen = image(*controllers(*["4.3"] * 3), *nodes("4.3"), level=30)
    refused = assess_readiness(seen, release_of("3.9"))
    assert refused.said is not None
    assert "Unsupported metadata.version downgrade from 30 to 21" in refused.said.refusals[0]
    seen = image(*controllers(*["4.3"] * 3), *nodes("4.3"), level=29)
    assert assess_readiness(seen, release_of("4.0")).verdict is YES
    below = assess_readiness(
        seen, None, {TV: FeatureLevel(0), FeatureName("nothing"): FeatureLevel(1)}
    )
    assert {one.feature for one in below.features if one.verdict is NO} == {"nothing"}


def test_one_level_up_and_another_down_are_both_asked_for() -> None:
    """In one request, each as what it is: a refusal of either is a refusal."""
    seen = image(*controllers(*["4.3"] * 3), *nodes("4.3"), level=30)
    for one in ({KV: FeatureLevel(1)}, {MV: FeatureLevel(21)}):
        found = assess_readiness(seen, None, {TV: FeatureLevel(2), KV: FeatureLevel(1), **one})
        assert found.verdict is (NO if MV in one else YES)
    assert found.said is not None
    assert "Unsupported metadata.version downgrade from 30 to 21" in found.said.refusals[0]


def test_nodes_that_could_not_be_asked_leave_the_answer_open() -> None:
    """Who gives their addresses wants their word; one that is only behind takes nothing away."""
    seen = image(*controllers(*["4.3"] * 3), *nodes("4.3"))
    behind = r.catching_up(source="api-versions", seen_ms=300)
    assert assess_readiness(fold_all([behind], seen), NEW).verdict is YES
    stalled = r.status(SourceState.STALLED, source="api-versions", seen_ms=300)
    found = assess_readiness(fold_all([stalled], seen), NEW)
    assert found.verdict is UNKNOWN
    assert found.reasons[0] == "The nodes could not be asked: it cannot read."


def test_kraft_version_waits_for_every_voters_word() -> None:
    """A leader of 4.1 or later hears from voters of such releases alone, and not from one that is
    away; it refuses without a name."""
    wanted = {KV: FeatureLevel(1)}
    found = assess_readiness(image(*controllers("4.3", "4.0", "4.1"), *nodes("4.3")), None, wanted)
    assert (found.verdict, found.blockers) == (NO, ())
    assert "start controller 2 on that" in found.reasons[0]
    assert found.said is not None
    assert "because not all of the voters support it" in found.said.refusals[0]
    every = image(*controllers("4.3", "4.2", "4.1"), *nodes("4.3"))
    answers = [
        r.answer(one, ranges("4.1"), {MV: 21}, 9, 100 + one, role=Role.CONTROLLER) for one in VOTERS
    ]
    heard = fold_all([*answers, r.following(0, source="api-versions", seen_ms=300)], every)
    never = fold_all([*answers[:2], r.following(0, source="api-versions", seen_ms=300)], every)
    assert "controller 3 does not answer" in assess_readiness(never, None, wanted).reasons[0]
    assert (
        assess_readiness(heard, None, wanted).verdict,
        assess_readiness(heard, None, wanted).reasons,
    ) == (
        YES,
        (),
    )
    away = assess_readiness(fold_all([r.silent(3, 200, role=Role.CONTROLLER)], heard), None, wanted)
    assert away.verdict is UNKNOWN
    assert "controller 3 does not answer" in away.reasons[0]
    older = assess_readiness(led_by(image(*controllers("4.3", "4.0", "4.1")), 2), None, wanted)
    assert older.verdict is YES, "before 4.1 no leader waits for it"


def test_nodes_that_see_it_differently() -> None:
    """Levels, epochs and ranges that do not fit the log, and silence, each with its node."""
    log = cluster(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3", "3.9"))
    seen = fold_all(
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
    told = [(one.node_id, one.what) for one in assess_readiness(seen, NEW, now_ms=1000).views]
    assert told == [
        (0, "sees metadata.version at off"),
        (1, "does not answer"),
        (1, "sees metadata.version at 1 (3.0-IV1)"),
        (2, "has not taken in the levels of offset 50"),
        (3, "answers as Kafka 4.3 and is registered as Kafka 3.9"),
    ]


@pytest.mark.parametrize("name", ["3.9", "4.0", "4.1", "4.2", "4.3"])
def test_the_levels_of_a_release_are_those_of_kafkas_tool(name: str) -> None:
    """Its newest metadata.version, and every other default above 0."""
    found = release_levels(release_of(name))
    assert found.pop(MV) == release_of(name).newest(MV)
    defaults = release_of(name).defaults(release_of(name).newest(MV))
    assert found == {feature: level for feature, level in defaults.items() if level}
    assert assess_readiness(image(*controllers(*[name] * 3), *nodes(name))).target == name


@pytest.mark.parametrize("seed", range(40))
def test_what_the_controller_names_is_among_those_who_stand_in_the_way(seed: int) -> None:
    """Any mixture of releases, fenced or not: it refuses a level that none lacks for no node, and
    the one that it names is one of ours.
    """
    chance = Random(seed)
    names = ("3.8", "3.9", "4.0", "4.2", "4.3")
    brokers = [
        r.register(node, ranges(chance.choice(names)), fenced=chance.random() < 0.3, epoch=node)
        for node in chance.sample(range(100), chance.randint(1, 9))
    ]
    voting = controllers(*(chance.choice(names) for _ in VOTERS[: chance.randint(1, 3)]))
    seen = image(*voting, *brokers, level=20)
    level = FeatureLevel(chance.choice((20, 21, 25, 29, 30)))
    found = assess_readiness(seen, None, {MV: level})
    in_the_way = {(one.role, one.node_id) for one in found.blockers}
    if found.said is None:
        assert level == 20
        return
    assert found.said.accepted is not bool(in_the_way)
    assert found.verdict is (YES if found.said.accepted else NO)
    for text in found.said.refusals:
        role, node = re.search(r"(broker|controller) (\d+)", text, re.IGNORECASE).groups()  # type: ignore[union-attr]
        assert (Role(role.lower()), int(node)) in in_the_way
