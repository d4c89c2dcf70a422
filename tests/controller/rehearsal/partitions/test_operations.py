"""Operations on any cluster: what holds for every partition after each of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import (
    NO_LEADER,
    KraftElectionRules,
    KraftPartition,
)
from featurewatch.controller.partitions.kraft_reassignment import can_complete
from featurewatch.controller.rehearsal.partitions import kraft, zookeeper
from featurewatch.controller.rehearsal.partitions.impact import (
    PartitionEffect,
    describe,
    impact_of,
)
from featurewatch.controller.rehearsal.partitions.operations import (
    CreateTopic,
    ElectLeaders,
    OperationResult,
    ReassignPartitions,
)
from featurewatch.controller.rehearsal.partitions.state import (
    DefaultSettings,
    RehearsedPartitions,
    TopicSettings,
)
from tests.controller.rehearsal.partitions.cluster_states import P0, P1, cluster, machine

V43, V39 = KraftElectionRules((4, 3)), KraftElectionRules((3, 9))
ELR = KraftElectionRules((4, 3), elr=True)
KINDS = st.sampled_from(
    [None, *(KraftElectionRules(r, elr) for r in ((3, 7), (4, 1), (4, 3)) for elr in (False, True))]
)


@st.composite
def clusters(draw: st.DrawFn) -> RehearsedPartitions:
    """A healthy cluster, all replicas in sync."""
    ids = range(1, draw(st.integers(2, 6)) + 1)
    lists = draw(
        st.lists(
            st.lists(st.sampled_from(ids), unique=True, min_size=1, max_size=3).map(tuple),
            min_size=1,
            max_size=4,
        )
    )
    state = cluster(draw(KINDS), *lists, brokers=ids)
    defaults = DefaultSettings(draw(st.integers(1, 3)), draw(st.booleans()))
    return RehearsedPartitions(state.rules, state.brokers, state.partitions, defaults=defaults)


@st.composite
def operations(draw: st.DrawFn, state: RehearsedPartitions) -> tuple[str, OperationResult]:
    """An operation that the state allows, and its result."""
    controller = machine(state)
    alive = sorted(state.usable())
    dead = sorted({*state.brokers} - {*alive})
    kinds = ["elect", "unclean", *(["stop"] * 3 if alive else []), *(["start"] * 2 if dead else [])]
    kind = draw(st.sampled_from([*kinds, *(["reassign"] * 2 if alive else [])]))
    if kind == "stop":
        broker_id, in_order = draw(st.sampled_from(alive)), draw(st.booleans())
        return kind, controller.stop_broker(state, broker_id, in_order=in_order)
    if kind == "start":
        return kind, controller.start_broker(state, draw(st.sampled_from(dead)))
    if kind == "reassign":
        replicas = st.lists(st.sampled_from(alive), unique=True, min_size=1, max_size=3).map(tuple)
        partition = st.sampled_from(sorted(state.partitions))
        targets = draw(st.dictionaries(partition, replicas, min_size=1))
        return kind, controller.reassign(state, ReassignPartitions(targets))
    return kind, controller.elect(state, ElectLeaders(kind == "unclean"))


@settings(max_examples=300)
@given(clusters(), st.data())
def test_every_partition_is_legal_after_every_operation(
    state: RehearsedPartitions, data: st.DataObject
) -> None:
    """The leader is a live member of the ISR, which has replicas alone; it comes from the ISR or
    the eligible leaders unless the election is called unclean; a leader is lost or changes only
    where the summary has it; a reassignment to live brokers ends."""
    for _ in range(data.draw(st.integers(1, 8))):
        before = state
        kind, result = data.draw(operations(state))
        state = result.after
        impact = impact_of(before, result)
        effects = {change.partition: change.effects for change in impact.changed}
        assert describe(impact)
        for partition, new in state.partitions.items():
            old, own = before.partitions[partition], effects.get(partition, ())
            # ZooKeeper's controller keeps the last replica of the ISR, even a removed one.
            is_last_kept = state.rules is None and len(new.isr) == 1 and new.leader == NO_LEADER
            assert {*new.isr} <= {*new.replicas} or is_last_kept
            assert len({*new.isr}) == len(new.isr)
            assert new.isr or (state.rules is not None and state.rules.elr)
            assert new.leader == NO_LEADER or new.leader in new.isr
            assert new.leader == NO_LEADER or new.leader in state.usable()
            is_elected = new.leader not in (NO_LEADER, old.leader)
            is_clean = new.leader in {*old.isr, *old.elr}
            if is_elected and kind in ("stop", "elect", "unclean"):
                assert is_clean != (PartitionEffect.UNCLEAN in own), (kind, old, new)
            led = {PartitionEffect.AVAILABLE, PartitionEffect.LED_BY_ANOTHER}
            assert is_elected == bool(led & {*own})
            is_lost = new.leader == NO_LEADER != old.leader
            assert is_lost == (PartitionEffect.UNAVAILABLE in own)
            if kind == "reassign":
                is_moving = bool(new.adding or new.removing)
                assert is_moving <= (PartitionEffect.UNFINISHED in own or old == new)
                may_end = state.rules is None or can_complete(state.rules, new)
                alive = {*new.replicas} <= state.usable() and new.leader != NO_LEADER
                assert not (alive and may_end and PartitionEffect.UNFINISHED in own)
        assert impact.leaderless == sum(p.leader == NO_LEADER for p in state.partitions.values())


@given(clusters(), st.data())
def test_a_broker_that_returns_restores_every_isr(
    state: RehearsedPartitions, data: st.DataObject
) -> None:
    """With one broker away at a time nothing is lost for good, but partitions with one replica and
    an unclean restart."""
    broker_id = data.draw(st.sampled_from(sorted(state.brokers)))
    controller = machine(state)
    away = controller.stop_broker(state, broker_id, in_order=True).after
    back = controller.start_broker(away, broker_id).after
    for partition, new in back.partitions.items():
        assert {*new.isr} == {*state.partitions[partition].isr}
        assert new.leader != NO_LEADER
    preferred = controller.elect(back, ElectLeaders(is_unclean=False))
    assert preferred.refusals == ()
    leaders = {partition: new.leader for partition, new in preferred.after.partitions.items()}
    assert leaders == {partition: new.leader for partition, new in state.partitions.items()}


def effects(before: RehearsedPartitions, result: OperationResult) -> dict[TopicPartition, set[str]]:
    """The effects by partition."""
    changed = impact_of(before, result).changed
    return {change.partition: {*map(str, change.effects)} for change in changed}


@pytest.mark.parametrize("rules", [V43, ELR, None])
def test_a_broker_dies(rules: KraftElectionRules | None) -> None:
    """The next in-sync replica leads; a partition without one is unavailable."""
    state = cluster(rules, (1, 2), (1,), (2, 1), (3,))
    result = machine(state).stop_broker(state, 1, in_order=False)
    assert effects(state, result) == {
        P0: {"led-by-another", "isr"},
        P1: {"unavailable"} | ({"isr"} if rules is ELR else set()),
        TopicPartition("t", 2): {"isr"},
    }
    assert result.after.partitions[P0] == KraftPartition((1, 2), (2,), 2)
    lone = result.after.partitions[P1]
    assert (lone.isr, lone.elr) == (((), (1,)) if rules is ELR else ((1,), ()))


def test_an_unclean_leader_is_named() -> None:
    """Where the topic allows it, a replica from outside the ISR leads, and the line says so."""
    base = cluster(V43, (1, 2))
    state = RehearsedPartitions(
        V43,
        base.brokers,
        {P0: KraftPartition((1, 2), (1,), 1)},
        {"t": TopicSettings(is_unclean_allowed=True)},
    )
    result = kraft.stop_broker(state, 1, in_order=False)
    assert result.after.partitions[P0] == KraftPartition((1, 2), (2,), 2, recovering=True)
    assert "unclean" in effects(state, result)[P0]
    assert any(
        "acknowledged messages may be lost" in line for line in describe(impact_of(state, result))
    )


@pytest.mark.parametrize("rules", [V43, None])
def test_an_unclean_election_by_request(rules: KraftElectionRules | None) -> None:
    """It elects a live replica, and is refused where none is alive."""
    base = cluster(rules, (1, 2), (1,))
    partitions = {**base.partitions, P0: KraftPartition((1, 2), (1,), 1)}
    state = RehearsedPartitions(rules, base.brokers, partitions)
    lost = machine(state).stop_broker(state, 1, in_order=False).after
    result = machine(state).elect(lost, ElectLeaders(is_unclean=True))
    assert result.after.partitions[P0].leader == 2
    assert result.unclean == {P0}
    (refusal,) = result.refusals
    assert (refusal.partition, refusal.error) == (P1, "ELIGIBLE_LEADERS_NOT_AVAILABLE")


def test_a_shutdown_in_zookeeper_mode_leaves_lone_replicas_until_the_end() -> None:
    """A partition with one replica keeps its ISR when the broker stops, and returns with it."""
    state = cluster(None, (1, 2), (1,))
    away = zookeeper.stop_broker(state, 1, in_order=True).after
    assert away.partitions[P0] == KraftPartition((1, 2), (2,), 2)
    assert away.partitions[P1] == KraftPartition((1,), (1,), NO_LEADER)
    assert zookeeper.start_broker(away, 1).after.partitions[P1].leader == 1


def test_a_broker_that_died_is_no_eligible_leader_any_more() -> None:
    """With eligible leader replicas its restart is unclean: the last known leader leads, alone and
    recovering."""
    state = cluster(ELR, (1,))
    dead = kraft.stop_broker(state, 1, in_order=False).after
    assert dead.partitions[P0].elr == (1,)
    result = kraft.start_broker(dead, 1)
    assert result.after.partitions[P0] == KraftPartition((1,), (1,), 1, recovering=True)
    assert result.unclean == {P0}
    stopped = kraft.stop_broker(state, 1, in_order=True).after
    assert kraft.start_broker(stopped, 1).unclean == frozenset()


@pytest.mark.parametrize("rules", [V39, V43, None])
def test_a_reassignment_to_live_brokers_ends(rules: KraftElectionRules | None) -> None:
    """Replicas, ISR and leader are those of the target."""
    state = cluster(rules, (1, 2), (2, 3))
    targets = {P0: (3, 4), P1: (3, 2)}
    result = machine(state).reassign(state, ReassignPartitions(targets))
    moved = result.after.partitions[P0]
    assert (moved.replicas, {*moved.isr}, moved.leader) == ((3, 4), {3, 4}, 3)
    assert result.after.partitions[P1] == KraftPartition((3, 2), (2, 3), 2)
    assert effects(state, result) == {P0: {"led-by-another", "moved", "isr"}, P1: {"reordered"}}
    assert result.unfinished == {}


@pytest.mark.parametrize("rules", [V39, V43, None])
def test_a_reassignment_without_a_leader_waits(rules: KraftElectionRules | None) -> None:
    """Nobody can copy: it is unfinished, with the reason."""
    state = cluster(rules, (1,))
    lost = machine(state).stop_broker(state, 1, in_order=False).after
    result = machine(state).reassign(lost, ReassignPartitions({P0: (2,)}))
    assert "waits" in result.unfinished[P0]
    assert effects(lost, result) == {P0: {"moved", "unfinished"}}


@pytest.mark.parametrize(
    ("rules", "ends"), [(KraftElectionRules((3, 7)), False), (V39, True), (V43, False)]
)
def test_a_reassignment_that_cannot_complete_is_named(
    rules: KraftElectionRules, ends: bool
) -> None:
    """Adding equals removing on 3.3 to 3.7 and on 4.3: only a cancellation ends it."""
    moving = KraftPartition((4, 2, 3, 1), (1, 2, 3), 1, adding=(4,), removing=(1,))
    base = cluster(rules, (1, 2, 3))
    state = RehearsedPartitions(rules, base.brokers, {P0: moving})
    result = kraft.reassign(state, ReassignPartitions({P0: (1, 2, 3)}))
    if ends:
        assert result.after.partitions[P0] == KraftPartition((1, 2, 3), (1, 2, 3), 1)
        return
    release = ".".join(map(str, rules.release))
    assert result.unfinished[P0] == (
        f"cannot complete on Kafka {release}: the replicas 4 are added and removed at once; only "
        "kafka-reassign-partitions --cancel ends it"
    )


WRONG_TOPICS = (
    (("t", 1, 1), "Topic 't' already exists."),
    (("a/b", 1, 1), "Topic name is invalid: 'a/b' contains one or more"),
    (("new", 0, 1), "Number of partitions"),
    (("new", 1, 0), "Replication factor must be larger than 0"),
    (("new", 1, 9), "9"),
)


@pytest.mark.parametrize("rules", [V43, None])
@pytest.mark.parametrize(("topic", "text"), WRONG_TOPICS)
def test_a_topic_that_cannot_be_created(
    rules: KraftElectionRules | None, topic: tuple[str, int, int], text: str
) -> None:
    """Kafka's text, and nothing is created."""
    state = cluster(rules, (1, 2))
    result = machine(state).create_topic(state, CreateTopic(*topic))
    (refusal,) = result.refusals
    assert text in refusal.text
    assert result.after is state


@pytest.mark.parametrize("rules", [V43, None])
def test_a_topic_is_created_on_live_brokers(rules: KraftElectionRules | None) -> None:
    """Every partition has a live leader; a fenced replica is not in the ISR."""
    state = machine(cluster(rules, (1,))).stop_broker(cluster(rules, (1,)), 4, in_order=True).after
    result = machine(state).create_topic(state, CreateTopic("new", 12, 3))
    created = [p for key, p in result.after.partitions.items() if key.topic == "new"]
    assert len(created) == 12
    assert all(partition.leader in {1, 2, 3} for partition in created)
    assert all({*partition.isr} == {*partition.replicas} - {4} for partition in created)
    assert effects(state, result).keys() == {TopicPartition("new", n) for n in range(12)}


def test_an_operation_too_large_for_kraft_is_refused() -> None:
    """A request writes at most 10,000 records."""
    state = cluster(V43, (1,))
    (refusal,) = kraft.create_topic(state, CreateTopic("new", 10_000, 1)).refusals
    assert refusal.error == "POLICY_VIOLATION"
    assert kraft.create_topic(state, CreateTopic("new", 9_999, 1)).refusals == ()


def test_a_replica_in_a_failed_directory_does_not_lead() -> None:
    """The broker lives, and leads other partitions."""
    base = cluster(V43, (1, 2, 3), (1, 2, 3))
    state = RehearsedPartitions(V43, base.brokers, base.partitions, failed=frozenset([(P0, 2)]))
    after = kraft.stop_broker(state, 1, in_order=False).after
    assert (after.partitions[P0].leader, after.partitions[P1].leader) == (3, 2)


def test_min_isr_is_capped_by_the_replicas_of_partition_0() -> None:
    """As the brokers and the controller count it."""
    base = cluster(V43, (1, 2, 3), (1, 2))
    defaults = DefaultSettings(min_isr=3)
    state = RehearsedPartitions(V43, base.brokers, base.partitions, defaults=defaults)
    assert state.minimum_isrs() == {"t": 3}
    assert impact_of(state, OperationResult(state)).under_min_isr == 1
    smaller = RehearsedPartitions(V43, base.brokers, {P0: base.partitions[P1]}, defaults=defaults)
    assert smaller.minimum_isrs() == {"t": 2}


def test_the_summary_is_short_however_many_partitions() -> None:
    """Counts by topic and broker, and the first names."""
    state = cluster(V43, *[(1, 2)] * 10_000)
    lines = describe(impact_of(state, kraft.stop_broker(state, 1, in_order=False)))
    assert lines == [
        "led by another: 10,000 partitions, broker 1 -> 2 (10,000): t-0, t-1, t-2, t-3, t-4 and "
        "9,995 more",
        "ISR shrinks: 10,000 partitions",
    ]
