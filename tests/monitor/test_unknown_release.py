"""A release that exists nowhere: its ranges, level and record go through everything, and nothing
false is said of it."""

from dataclasses import replace

import orjson
import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import controller_state, release_of
from featurewatch.controller.rehearsal.rehearse import StepVerdict, rehearse
from featurewatch.controller.rehearsal.steps import parse
from featurewatch.controller.software import (
    LEARN,
    is_newer_than_known,
    is_unknown_release,
    newest_known_release,
    release_of_capabilities,
    software_name,
)
from featurewatch.monitor.readiness import Limits, UpgradeState, assess_readiness
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import Event, LogCommit, RecordJson
from featurewatch.streams.outputs import Alert, Snapshot
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import intern_capabilities
from featurewatch.tables.image.sources import MessagePosition
from featurewatch.web.documents import ClusterFacts, cluster_document
from featurewatch.web.views.rehearsal import NotRehearsableError, rehearse_steps
from tests.monitor.readiness.clusters import VOTERS, cluster
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, KV, MV

NEWEST = newest_known_release()
LEVEL = NEWEST.levels[-1].level + 6
NEXT: r.Ranges = {**NEWEST.ranges(), MV: (9, LEVEL), "made.up.version": (0, 3)}
OLD = release_of("4.3").ranges()
LIMITS = Limits(ghost_ms=1000, upgrade_ms=1000, refusal_ms=1000)


def _nodes(*ranges: r.Ranges) -> list[RecordJson]:
    """Combined nodes 1, 2, … with these ranges."""
    return [
        record
        for node_id, supported in enumerate(ranges, start=1)
        for record in (
            r.register(node_id, supported, fenced=False, epoch=node_id),
            r.register_controller(node_id, supported),
        )
    ]


def _run(events: list[Event]) -> tuple[MonitorState, list[Alert]]:
    """The state after these events, and all alerts that fired on the way."""
    state, alerts = MonitorState.of(CLUSTER), list[Alert]()
    for event in events:
        result = step(state, event, limits=LIMITS)
        state = result.state
        alerts += [alert for alert in result.alerts if alert.state == "firing"]
    return state, alerts


def _upgraded(*extra: Event) -> list[Event]:
    """Three combined nodes of the made-up release at its own level, and much time after that."""
    return [
        *cluster(*_nodes(NEXT, NEXT, NEXT), level=LEVEL, at=50),
        *extra,
        r.following(100_000),
        r.following(200_000),
    ]


def _image(*records: RecordJson, level: int = LEVEL) -> ClusterImage:
    return _run(cluster(*records, level=level))[0].image


def test_only_that_the_release_is_unknown_fires_on_a_healthy_cluster() -> None:
    """No verdict of another release is borrowed: neither a refusal nor an exclusion."""
    state, alerts = _run(_upgraded())
    assert {alert.rule for alert in alerts} == {"release-unknown"}
    (alert,) = (alert for alerts in state.firing.values() for alert in alerts)
    assert alert.id == f"{CLUSTER}/release-unknown/release"
    assert f"metadata.version 9-{LEVEL}" in alert.summary
    assert LEARN in alert.summary
    assert f"newer than {NEWEST.name}" in alert.summary
    assert alert.evidence["nodes"] == [
        f"{role}-{node}" for role in ("broker", "controller") for node in VOTERS
    ]


def test_readiness_is_unknown_and_says_what_would_teach_it() -> None:
    """Neither what it can finalize nor how its controller decides is known."""
    report = assess_readiness(_image(*_nodes(NEXT, NEXT, NEXT)))
    assert (report.verdict, report.target) == (Verdict.UNKNOWN, None)
    assert any(LEARN in reason for reason in report.reasons)
    assert not report.blockers
    lower = assess_readiness(
        _image(*_nodes(NEXT, NEXT, NEXT), level=NEWEST.levels[-2].level), NEWEST
    )
    assert lower.controller_response is None
    levels = {METADATA_VERSION: FeatureLevel(LEVEL)}
    raised = assess_readiness(
        _image(*_nodes(NEXT, NEXT, NEXT), level=30), levels=levels, now_ms=500
    )
    assert raised.verdict is Verdict.UNKNOWN
    assert raised.controller_response is None
    assert any("rules are not known here" in reason for reason in raised.reasons)
    assert raised.downgrade_path is not None
    assert raised.downgrade_path.lossless is None
    assert "not known" in raised.downgrade_path.reason


def test_an_unknown_node_that_blocks_gets_no_release_recommended() -> None:
    """An older release could not even start with what it has."""
    before = _image(*_nodes(OLD, {**NEXT, MV: (LEVEL, LEVEL)}), level=30)
    report = assess_readiness(before, levels={METADATA_VERSION: FeatureLevel(31)})
    (unknown, *_) = [blocker for blocker in report.blockers if blocker.node_id == 2]
    assert unknown.verdict is Verdict.NO
    assert unknown.software is None
    assert LEARN in unknown.remedy
    assert "Kafka 4" not in unknown.remedy


def test_the_active_controller_is_judged_by_no_other_release() -> None:
    """Neither where it is registered, nor where some node may be it."""
    assert active_controller(_image(*_nodes(NEXT, OLD, OLD))).release is None
    assert active_controller(_image(*_nodes(OLD, NEXT, NEXT))).release is release_of("4.3")
    unregistered = _image(r.register(7, NEXT), r.register(8, OLD))
    assert active_controller(unregistered).release is None
    old = active_controller(_image(r.register(7, OLD), r.register(8, OLD)))
    assert (old.release, old.assumed) == (release_of("4.3"), True)


def test_a_rehearsal_is_refused_or_unknown() -> None:
    """With an unknown leader from the start, and where one becomes active."""
    with pytest.raises(NotRehearsableError, match=r"releases learn"):
        rehearse_steps(_image(*_nodes(NEXT, NEXT, NEXT)), [parse("upgrade:metadata.version=31")])
    mixed = _image(*_nodes(OLD, NEXT, NEXT), level=29)
    steps = [parse("stop:controller-1"), parse("upgrade:metadata.version=30")]
    outcomes = rehearse("4.3", controller_state(mixed), steps, voters=mixed.log.quorum.voters)
    assert [outcome.verdict for outcome in outcomes] == [
        StepVerdict.ACCEPTED,
        StepVerdict.UNKNOWN,
    ]
    assert LEARN in outcomes[1].messages[0]
    start = [parse("restart:controller-2")]
    restarted = rehearse("4.3", controller_state(mixed), start, voters=mixed.log.quorum.voters)
    assert restarted[-1].verdict is StepVerdict.UNKNOWN


def test_the_newest_release_is_decided_by_ranges_and_never_by_a_ghost() -> None:
    """Both ways: an old ghost beside new nodes, and a new one beside old nodes."""
    for living, ghost in ((NEXT, OLD), (OLD, NEXT)):
        records = [*_nodes(living, living, living), r.register_controller(9, ghost)]
        state, _ = _run([*cluster(*records, level=29), r.following(100_000), r.following(200_000)])
        alerts = tuple(alert for alerts in state.firing.values() for alert in alerts)
        assert f"{CLUSTER}/ghost-registration/node/controller-9" in {alert.id for alert in alerts}
        assert not [
            alert
            for alert in alerts
            if alert.rule != "release-unknown" and "broker 1" in alert.summary
        ]
        snapshot = _snapshot(state.image)
        document = cluster_document(ClusterFacts(snapshot, alerts, {}, snapshot.at_ms))
        assert (document["nodes_on_newest"], document["nodes"]) == (3, 3)
        assert document["newest_release"] == software_name(intern_capabilities(living))
        report = assess_readiness(state.image, times=state.times, limits=LIMITS, now_ms=3_000_000)
        assert report.target == (None if living is NEXT else "4.3")
        assert any(LEARN in reason for reason in report.reasons) == (living is NEXT)


def test_a_roll_to_an_unknown_release_is_an_upgrade() -> None:
    """A node of an unknown release is newer, never left: see also the tests of rolls."""
    newer, old = intern_capabilities(NEXT), intern_capabilities(NEWEST.ranges())
    assert software_name(newer) == (
        f"unknown, newer than {NEWEST.name} (metadata.version 9-{LEVEL})"
    )
    assert is_newer_than_known(newer)
    assert not is_newer_than_known(old)


@pytest.mark.parametrize(
    ("changed", "known"),
    [
        ({}, True),
        ({MV: NEWEST.unstable[MV]}, False),
        (dict(NEWEST.unstable), True),
        ({**NEWEST.unstable, FeatureName("share.version"): (0, 9)}, False),
        ({"share.version": (0, 9)}, False),
        ({"made.up.version": (0, 1)}, False),
    ],
)
def test_a_release_has_exactly_its_ranges(changed: r.Ranges, known: bool) -> None:
    """With unstable levels the newest release may have the same highest level as the next one."""
    ranges: r.Ranges = {**NEWEST.ranges(), **changed}
    if set(changed) == {MV}:
        ranges = {MV: changed[MV]}
    assert (release_of_capabilities(intern_capabilities(ranges)) is not None) == known


def test_a_broker_that_migrates_from_zookeeper_is_of_no_unknown_release() -> None:
    """It advertises its inter.broker.protocol.version as the one level of metadata.version."""
    migrating = intern_capabilities({MV: (20, 20), KV: (0, 1)})
    assert release_of_capabilities(migrating) is None
    assert not is_unknown_release(migrating)
    assert is_unknown_release(intern_capabilities({MV: (LEVEL, LEVEL)}))


def test_ranges_that_are_no_ranges_belong_to_no_release() -> None:
    """A minimum above the maximum is reported as such, and defines neither newest nor unknown."""
    state, alerts = _run(cluster(*_nodes(OLD, OLD, {**NEXT, MV: (LEVEL, 7)}), level=30))
    assert {alert.rule for alert in alerts} == {"invalid-range"}
    assert assess_readiness(state.image).target == "4.3"


def test_a_level_that_no_node_supports_is_reported_without_advice_for_unknown_nodes() -> None:
    """The ranges exclude it; which release would support it is not known."""
    state, alerts = _run(cluster(*_nodes(NEXT), level=LEVEL + 1))
    incompatible = [alert for alert in alerts if alert.rule == "incompatible-node"]
    assert incompatible
    assert all(LEARN in alert.summary for alert in incompatible)
    assert not [alert for alert in alerts if alert.rule == "registration-refused"]
    assert assess_readiness(state.image).verdict is Verdict.UNKNOWN


# -- records ---------------------------------------------------------------------------------------


def test_an_unknown_record_hides_ghosts_blockers_and_readiness_until_the_next_snapshot() -> None:
    """It may have unregistered a node, changed a level or the voters."""
    records = [*_nodes(OLD, OLD, OLD), r.register_controller(9, release_of("3.9").ranges())]
    events: list[Event] = [
        *cluster(*records, level=29),
        r.following(100_000),
        r.following(200_000),
    ]
    before, _ = _run(events)
    assert f"{CLUSTER}/ghost-registration/node/controller-9" in _firing(before)
    events.append(_at(r.commit(200_010, r.unknown_record())))
    hidden, _ = _run([*events, r.following(200_020)])
    assert _firing(hidden) == {f"{CLUSTER}/unreadable/record/RECORD_TYPE_77-v0"}
    report = assess_readiness(
        hidden.image, release_of("4.3"), times=hidden.times, limits=LIMITS, now_ms=2_000_500
    )
    assert (report.verdict, report.state) == (Verdict.UNKNOWN, UpgradeState.UNKNOWN)
    assert (report.blockers, report.ghosts, report.controller_response) == ((), (), None)
    assert any("RECORD_TYPE_77-v0" in reason and LEARN in reason for reason in report.reasons)
    assert {feature.verdict for feature in report.features} == {Verdict.UNKNOWN}
    with pytest.raises(NotRehearsableError, match="RECORD_TYPE_77-v0"):
        rehearse_steps(hidden.image, [parse("upgrade:metadata.version=30")])
    assert not _snapshot(hidden.image).ready
    chunk = r.chunk(200_030, 0, r.level(MV, 29), *records, last=True)
    after, _ = _run([*events, chunk, r.following(200_040)])
    assert f"{CLUSTER}/ghost-registration/node/controller-9" in _firing(after)


def test_an_alert_that_is_no_longer_known_does_not_say_that_it_is_resolved() -> None:
    """Whether the condition ended is what is not known."""
    state, _ = _run(cluster(r.register(1, release_of("3.9").ranges()), level=30))
    result = step(state, r.commit(60, r.unknown_record()), limits=LIMITS)
    ended = [alert for alert in result.alerts if alert.state == "resolved"]
    assert ended
    assert all(alert.summary.startswith("No longer known") for alert in ended)


def test_an_unknown_version_of_a_record_about_partitions_hides_nothing() -> None:
    """Its type is known: nodes, levels and voters do not depend on it."""
    record = r.unknown_record("PARTITION_RECORD-v9", hides_state=False)
    state, alerts = _run([*cluster(*_nodes(OLD, OLD, OLD), level=30), r.commit(60, record)])
    assert [alert.rule for alert in alerts] == ["unreadable"]
    assert "PARTITION_RECORD-v9" in alerts[0].summary
    assert state.image.incomplete == ()


def test_quiet_does_not_make_the_image_complete_and_rows_keep_it() -> None:
    """An hour without another such record tells nothing about the first."""
    state = MonitorState.of(CLUSTER)
    events = [*cluster(*_nodes(OLD), level=30), r.commit(60, r.unknown_record())]
    for number, event in enumerate([*events, r.following(61, seen_ms=90_000_000)]):
        seen_ms = getattr(event, "seen_ms", 0)
        position = MessagePosition("metadata-log", number, seen_ms)
        state = step(state, event, position, LIMITS).state
    assert state.image.incomplete == ("RECORD_TYPE_77-v0",)
    sources = state.image.sources
    assert type(sources).from_row(orjson.loads(orjson.dumps(sources.to_row()))) == sources


def test_random_types_do_not_fill_the_image() -> None:
    """Of a log of random bytes a bounded number of kinds is counted one by one."""
    records = [r.unknown_record(f"RECORD_TYPE_{number}-v0") for number in range(500)]
    state, _ = _run([*cluster(level=30), r.commit(900, *records)])
    assert len(state.image.sources.unreadable) <= 101


def _snapshot(image: ClusterImage) -> Snapshot:
    return snapshot(image, 3_000_000)


def _at(event: LogCommit) -> LogCommit:
    return replace(event, append_ms=2_000_100, seen_ms=2_000_100)


def _firing(state: MonitorState) -> set[str]:
    return {alert.id for alerts in state.firing.values() for alert in alerts}
