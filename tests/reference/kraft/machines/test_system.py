"""KIP-778 as it is written, by controllers and brokers together: each row in a running system."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pytest

from featurewatch.admin.features.kip_778 import update_request
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.kafka.messages import message_class
from featurewatch.reference.kraft.machines.batches import data_batch
from featurewatch.reference.kraft.machines.broker.connections import (
    AskPeer,
    ClientConnected,
    CloseClient,
)
from featurewatch.reference.kraft.machines.broker.light_brokers import BrokerEnded, StartBrokers
from featurewatch.reference.kraft.machines.broker.loader import ImagePublished, SnapshotMade
from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller.requests import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopics,
    IncrementalAlterConfigs,
    UpdateFeatures,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.metadata.records import Record, record_bytes
from featurewatch.reference.kraft.machines.metadata.snapshots import at_level, read_snapshot
from featurewatch.reference.kraft.machines.protocol import Propose, Send, SnapshotTaken
from featurewatch.reference.kraft.machines.requests import EndQuorumEpoch
from featurewatch.reference.kraft.machines.states import State
from featurewatch.reference.kraft.wire.controller_messages import (
    controller_request_of,
    request_class,
)
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, SupportedRanges, UpgradeType
from tests.reference.kraft.machines.content import of_type
from tests.reference.kraft.machines.system import (
    LEVEL,
    Host,
    System,
    became,
    broker,
    ranges,
    system_of,
)

NONE, SAFE, UNSAFE = 0, 1, 2
"""DowngradeType."""
INVALID_UPDATE_VERSION: Final = 95
KIP: Final = Form.KIP_778

pytestmark = pytest.mark.form("document")


def _at(level: int) -> Record:
    return of_type("FEATURE_LEVEL_RECORD", name=LEVEL, featureLevel=level)


def _two_hosts(
    level: int, controllers: int | Sequence[SupportedRanges] = 1, **other: Any
) -> System:
    """A cluster with brokers 11 and 12, which support levels 1 to 30, in a process each."""
    own = ranges(1, 30)
    hosts = ([broker(number, KIP, ranges=own)] for number in (11, 12))
    return system_of(controllers, *hosts, level=level, **other)


def _force(system: System, level: int) -> None:
    """Writes a level into the log that the controller would refuse."""
    active = system.active
    assert active is not None
    active.to_voter(Propose(-1, (record_bytes(_at(level)),)))


def _content(data: bytes) -> tuple[Record, ...]:
    return read_snapshot(data).records


def _levels_in(system: System) -> list[int]:
    """The levels in the committed log of the first controller."""
    controller = system.controllers[0]
    return [controller.metadata.committed.level or 0]


def _create_topic(system: System, *broker_ids: int) -> None:
    assignment = (CreatableReplicaAssignment(0, broker_ids),)
    response = system.ask(CreateTopics((CreatableTopic("t", assignments=assignment),)), 7)
    assert response.topics[0].error_code == 0


def _on_the_wire(kind: UpgradeType, level: int, *, dry_run: bool = False) -> UpdateFeatures:
    """A request of `admin` as the controller reads it from its bytes."""
    update = FeatureUpdate(METADATA_VERSION, FeatureLevel(level), kind)
    sent = update_request([update], 1, dry_run=dry_run)
    read = request_class(57, 1, as_written=True)
    assert type(sent) is read is message_class("Kip778UpdateFeaturesRequest", 1)
    found = controller_request_of(57, sent)
    assert isinstance(found, UpdateFeatures)
    return found


def _ask(system: System, request: UpdateFeatures) -> int:
    return int(system.ask(request).results[0].error_code)


def test_downgrade_types() -> None:
    """NONE goes up only; SAFE goes down where nothing is lost, UNSAFE anywhere (M-05, M-23). The
    requests are those of the command, from bytes to the levels of every broker."""
    system = _two_hosts(19)
    assert _ask(system, _on_the_wire(UpgradeType.UPGRADE, 17)) == INVALID_UPDATE_VERSION
    assert _ask(system, _on_the_wire(UpgradeType.SAFE_DOWNGRADE, 17)) == 0
    system.run(lambda: system.settled(17))
    refused = _ask(system, _on_the_wire(UpgradeType.SAFE_DOWNGRADE, 16))
    assert refused not in (0, INVALID_UPDATE_VERSION)
    assert _ask(system, _on_the_wire(UpgradeType.UNSAFE_DOWNGRADE, 16)) == 0
    system.run(lambda: system.settled(16))
    assert _ask(system, _on_the_wire(UpgradeType.UPGRADE, 18)) == 0
    system.run(lambda: system.settled(18))
    assert system.hosts[0].levels == [19, 17, 16, 18]


@pytest.mark.parametrize(
    ("level", "kind"), [(20, NONE), (17, SAFE), (8, SAFE), (8, UNSAFE), (8, NONE), (99, NONE)]
)
def test_a_dry_run_is_answered_and_writes_nothing(level: int, kind: int) -> None:
    """It has the answer that the same request has without it (M-08)."""
    system = _two_hosts(19)
    active = system.active
    assert active is not None
    end = active.voter.log.end
    tried = system.update(level, kind, dry_run=True)
    system.run(limit_ms=500)
    assert active.voter.log.end == end
    assert all(host.levels == [19] for host in system.hosts)
    assert system.update(level, kind) == tried
    system.run(lambda: system.settled(19 if tried else level))


def _sequence(trace: Iterable[tuple[int, Any]]) -> list[tuple[str, int]]:
    """What each kind of node did, in order, without repetitions: by role and level."""
    found: list[tuple[str, int]] = []
    for _, effect in trace:
        match effect:
            case SnapshotTaken(_, data):
                step = ("controller's snapshot", int(_content(data)[0].data["featureLevel"]))
            case SnapshotMade(_, level):
                step = ("broker's snapshot", level)
            case ImagePublished(image, is_reload=True):
                step = ("broker's components reload", image.level or 0)
            case _:
                continue
        if step not in found:
            found.append(step)
    return found


def test_an_upgrade_in_its_order() -> None:
    """A restart on new software, the request, its validation, the record, and the reload (M-31)."""
    old, new = ranges(1, 8), ranges(1, 30)
    system = system_of(1, [broker(11, KIP, ranges=old)], level=8)
    host = system.hosts[0]
    assert system.update(9) == INVALID_UPDATE_VERSION
    host.shut_down(11)
    system.run(lambda: host.state(11) is None)
    system.hosts.clear()
    renewed = system.add_host(broker(11, KIP, ranges=new))
    system.run(lambda: renewed.state(11) is BrokerState.RUNNING)
    system.trace.clear()
    assert system.update(9) == 0
    system.run(lambda: system.settled(9))
    assert _sequence(system.trace) == [
        ("controller's snapshot", 8),
        ("controller's snapshot", 9),
        ("broker's snapshot", 8),
        ("broker's snapshot", 9),
        ("broker's components reload", 9),
    ]
    assert renewed.state(11) is BrokerState.RUNNING


def test_a_downgrade_in_its_order() -> None:
    """The request, the safety check, the record, the controller's snapshot and reload, and those of
    the brokers once they have the record; then older software may start (M-32)."""
    system = _two_hosts(17)
    _create_topic(system, 11, 12)
    system.trace.clear()
    assert system.update(10, SAFE) not in (0, INVALID_UPDATE_VERSION)
    system.run(limit_ms=200)
    assert _sequence(system.trace) == []
    assert system.update(10, UNSAFE) == 0
    system.run(lambda: system.settled(10))
    assert _sequence(system.trace) == [
        ("controller's snapshot", 17),
        ("controller's snapshot", 10),
        ("broker's snapshot", 17),
        ("broker's snapshot", 10),
        ("broker's components reload", 10),
    ]
    old = system.hosts[1]
    old.shut_down(12)
    system.run(lambda: old.state(12) is None)
    system.hosts.remove(old)
    renewed = system.add_host(broker(12, KIP, ranges=ranges(1, 10), release="3.5"))
    system.run(lambda: renewed.state(12) is BrokerState.RUNNING)
    assert renewed.levels == [10]
    assert renewed.brokers.image is not None
    assert renewed.brokers.image.faults == 0


@pytest.mark.parametrize(("formatted", "level"), [(8, 8), (19, 19), (None, 1)])
def test_the_active_controller_writes_the_first_level(formatted: int | None, level: int) -> None:
    """The level of its meta.properties (M-39), level 1 without one (M-40); brokers follow it."""
    system = system_of(1, level=formatted, release="3.9")
    host = system.add_host(broker(11, KIP, ranges=ranges(1, 21), release="3.9"))
    system.run(lambda: host.state(11) is BrokerState.RUNNING)
    assert host.levels == [level]
    assert _levels_in(system) == [level]


def _preview(log: Log) -> None:
    """A log of the preview: a topic, and no level."""
    topic = of_type("TOPIC_RECORD", name="old", topicId="o" * 21 + "A")
    log.append([data_batch(0, 1, 0, [record_bytes(topic)])])


def test_a_preview_log_gets_level_1_and_keeps_what_it_has() -> None:
    """Its content is compatible with level 1: nothing is lost, and each record is as Kafka 3.0
    wrote it, so that the way back stays open (M-40, M-41)."""
    system = system_of(1, level=None, log=_preview, release="3.3")
    host = system.add_host(broker(11, KIP, ranges=ranges(1, 7), release="3.3"))
    system.run(lambda: host.state(11) is BrokerState.RUNNING)
    image = host.brokers.image
    assert image is not None
    assert image.level == 1
    written = at_level(image.state)
    assert written.losses == ()
    assert [record.version for record in written.records] == [0] * len(written.records)
    assert {"old"} == {it.data["name"] for it in written.records if it.type == "TOPIC_RECORD"}
    assert _levels_in(system) == [1]


def test_a_level_of_the_log_is_not_written_over() -> None:
    """Whatever the meta.properties of the next active controller say (M-39)."""

    def at_10(log: Log) -> None:
        log.append([data_batch(0, 1, 0, [record_bytes(_at(10))])])

    system = system_of(1, level=8, log=at_10)
    system.run(limit_ms=1_000)
    assert _levels_in(system) == [10]


def test_a_broker_that_cannot_support_the_level_is_refused_and_stays_fenced() -> None:
    """It keeps trying, is not in the metadata, and joins at a level that it supports (M-42)."""
    system = _two_hosts(19)
    late = system.add_host(broker(13, KIP, ranges=ranges(1, 17), release="3.7"))
    system.run(limit_ms=40_000)
    assert late.state(13) is BrokerState.STARTING
    assert late.of(BrokerEnded) == []
    active = system.active
    assert active is not None
    assert 13 not in active.metadata.committed.brokers
    assert system.update(17, SAFE) == 0
    system.run(lambda: late.state(13) is BrokerState.RUNNING)
    assert late.levels == [17]


def test_an_active_controller_at_an_unsupported_level_resigns_and_ends() -> None:
    """The others elect one of themselves at once, since it tells them; they end too if they do not
    support the level (M-46)."""
    system = _two_hosts(19, controllers=[ranges(1, 21), ranges(1, 30), ranges(1, 30)])
    active = system.active
    assert active is not None
    assert active.id == 1  # the seed of its random numbers makes it the first
    _force(system, 25)
    system.run(lambda: active.halted is not None, 2_000)
    assert "25" in (active.halted or "")
    assert active.voter.state is State.RESIGNED
    sent = [it for it in active.effects if isinstance(it, Send)]
    assert {it.node_id for it in sent if isinstance(it.request, EndQuorumEpoch)} == {2, 3}
    system.run(lambda: system.active is not None, 3_000)
    system.run(lambda: system.settled(25))
    assert {it.id for it in system.controllers if it.halted is None} == {2, 3}


def test_a_broker_at_an_unsupported_level_unregisters_and_ends() -> None:
    """The controller has no registration of it any more; the others run on at the level (M-47)."""
    system = system_of(
        1,
        [broker(11, KIP, ranges=ranges(1, 20)), broker(12, KIP, ranges=ranges(1, 20))],
        [broker(13, KIP, ranges=ranges(1, 30))],
        level=19,
    )
    first, other = system.hosts
    active = system.active
    assert active is not None
    assert set(active.metadata.committed.brokers) == {11, 12, 13}
    _force(system, 21)
    system.run(lambda: not first.brokers.states)
    assert all(it.is_failure and "has unregistered" in it.reason for it in first.of(BrokerEnded))
    assert first.levels == [19]
    assert set(active.metadata.committed.brokers) == {13}
    system.run(lambda: other.levels == [19, 21])
    assert other.state(13) is BrokerState.RUNNING
    assert became(first, 11)[-2:] == [BrokerState.UNREGISTERING, BrokerState.SHUTTING_DOWN]


def test_brokers_renegotiate_and_close_connections_at_a_new_level() -> None:
    """Every broker with every other, without a restart (M-48); each closes the connections of its
    clients (M-50); versions of the new level are used once both sides have it."""
    system = _two_hosts(8)
    first, other = system.hosts
    system.run(lambda: first.brokers.connections.usable_with(12))
    assert first.brokers.connections.usable_with(12)["Fetch"].maximum == 13
    for host in system.hosts:
        host.receive(ClientConnected(-5))
        host.effects.clear()
    assert system.update(10) == 0
    system.run(lambda: system.settled(10))
    for host, peer in ((first, 12), (other, 11)):
        assert {it.broker_id for it in host.of(AskPeer)} == {peer}
        assert CloseClient(-5) in host.of(CloseClient)
        assert host.brokers.connections.clients <= 1  # of the other broker, at the new level
        assert became(host, 11) + became(host, 12) == []
    system.run(limit_ms=200)
    assert first.brokers.connections.usable_with(12)["Fetch"].maximum == 15


def _snapshots(system: System) -> dict[str, dict[tuple[int, int], list[Record]]]:
    """The snapshots by node and by (offset, level), without their order of records."""
    found: dict[str, dict[tuple[int, int], list[Record]]] = {}
    for node, effect in system.trace:
        if isinstance(effect, SnapshotTaken | SnapshotMade):
            records = _content(effect.data)
            place = (effect.snapshot.offset, int(records[0].data["featureLevel"]))
            # Kafka's controllers write the state of a migration that never was.
            kept = [it for it in records if it.type != "ZK_MIGRATION_STATE_RECORD"]
            found.setdefault(str(node), {})[place] = sorted(kept, key=repr)
    return found


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [(16, 17, NONE), (19, 17, SAFE), (17, 10, UNSAFE), (23, 22, UNSAFE)],
)
def test_snapshots_at_a_change_of_the_level(before: int, after: int, kind: int) -> None:
    """Controllers and brokers have the same ones, record by record: one at the offset right before
    the change, at the old level (M-61), and one of the state as the new level has it, which is what
    brokers publish (M-62, M-54); a lossy one leaves out what the level does not know (M-58)."""
    system = _two_hosts(before)
    _create_topic(system, 12, 11)
    system.run(limit_ms=500)
    system.trace.clear()
    active = system.active
    assert active is not None
    change = active.voter.log.end
    assert system.update(after, kind) == 0
    system.run(lambda: system.settled(after))
    by_node = _snapshots(system)
    assert set(by_node) == {"1", "1000", "1001"}
    assert {*map(tuple, by_node.values())} == {((change, before), (change + 1, after))}
    assert by_node["1000"] == by_node["1001"] == by_node["1"]
    lower = by_node["1"][change + 1, after]
    types = {record.type for record in lower}
    versions = {record.type: record.version for record in lower}
    assert ("REGISTER_CONTROLLER_RECORD" in types) == (after >= 15)
    assert versions["PARTITION_RECORD"] == (0 if after < 17 else 1 if after < 23 else 2)
    for host in system.hosts:
        image = host.brokers.image
        assert image is not None
        kept = [it for it in at_level(image.state).records if "BROKER" not in it.type]
        assert [it for it in kept if it.type != "ZK_MIGRATION_STATE_RECORD"] == [
            it for it in kept if it in lower
        ]


def test_components_see_one_image_for_each_level() -> None:
    """A broker that passes several levels publishes each, and loses none (M-31)."""
    system = _two_hosts(8)
    for level in (9, 10, 11, 14, 17, 19, 21):
        assert system.update(level) == 0
    system.run(lambda: system.settled(21))
    assert all(host.levels == [8, 9, 10, 11, 14, 17, 19, 21] for host in system.hosts)


def test_a_late_broker_loads_a_snapshot_of_the_lower_level() -> None:
    """A lossy downgrade deletes the log before it a while later: nothing of the higher level is
    left (M-32). By then brokers that follow the log have the change as a record."""
    system = _two_hosts(17)
    _create_topic(system, 11, 12)
    assert system.update(10, UNSAFE) == 0
    system.run(lambda: system.settled(10))
    active = system.active
    assert active is not None
    assert active.voter.log.start.offset == 0
    system.run(limit_ms=active.metadata.settings.lowered_log_ms + 1_000)
    assert active.voter.log.start.offset > 0
    for host in system.hosts:
        assert host.levels == [17, 10]
        assert len(host.of(SnapshotMade)) == 3  # of the first level, and before and after
    late = system.add_host(broker(13, KIP, ranges=ranges(1, 10), release="3.5"))
    system.run(lambda: late.state(13) is BrokerState.RUNNING)
    assert late.levels == [10]
    assert late.brokers.image is not None
    assert late.brokers.image.faults == 0
    assert _topic_id(system.hosts[0]) in late.brokers.image.state.topics


def _topic_id(host: Host) -> str:
    image = host.brokers.image
    assert image is not None
    return next(iter(image.state.topics))


def test_brokers_survive_their_controllers() -> None:
    """A leader that is cut off is replaced; brokers fetch from the new one, and stay registered."""
    system = _two_hosts(19, controllers=3)
    lost = system.active
    assert lost is not None
    lost.is_cut_off = True
    system.run(lambda: system.active not in (None, lost))
    assert system.update(20) == 0
    system.run(lambda: system.settled(20))
    assert all(host.of(BrokerEnded) == [] for host in system.hosts)
    lost.is_cut_off = False
    system.run(lambda: lost.metadata.committed.level == 20)


def test_a_broker_that_is_cut_off_is_fenced_and_comes_back() -> None:
    """Its state is that of the registration, which the controller fences after a session."""
    system = _two_hosts(19)
    host, active = system.hosts[0], system.active
    assert active is not None
    host.is_cut_off = True
    system.run(lambda: host.state(11) is BrokerState.FENCED)
    system.run(lambda: active.metadata.committed.brokers[11].fenced)
    host.is_cut_off = False
    system.run(lambda: host.state(11) is BrokerState.RUNNING)
    assert not active.metadata.committed.brokers[11].fenced


def test_an_earlier_incarnation_registers_again_when_its_epoch_is_stale() -> None:
    """After another one took its id while it was cut off: it waits until that one has ended."""
    system = _two_hosts(19)
    first = system.hosts[0]
    first.is_cut_off = True
    system.run(lambda: first.state(11) is BrokerState.FENCED)
    system.run(limit_ms=3_000)
    other = broker(11, KIP, ranges=ranges(1, 30), incarnation_id="Z" * 21 + "A")
    usurper = system.add_host(other)
    system.run(lambda: usurper.state(11) is BrokerState.RUNNING)
    first.is_cut_off = False
    system.run(limit_ms=15_000)
    assert first.state(11) is BrokerState.STARTING
    usurper.shut_down(11)
    system.run(lambda: first.state(11) is BrokerState.RUNNING, 60_000)


def test_an_ended_broker_can_start_again() -> None:
    """Under its id, as a new incarnation."""
    system = _two_hosts(19)
    host = system.hosts[0]
    host.shut_down(11)
    system.run(lambda: host.state(11) is None)
    assert [it.is_failure for it in host.of(BrokerEnded)] == [False]
    again = broker(11, KIP, ranges=ranges(1, 30), incarnation_id="Y" * 21 + "A")
    host.receive(StartBrokers((again,)))
    system.run(lambda: host.state(11) is BrokerState.RUNNING, 60_000)


def test_settings_and_other_records_reach_the_brokers() -> None:
    """What the product's image leaves out is in the state that a snapshot is made of."""
    from featurewatch.reference.kraft.machines.controller.requests import (
        AlterableConfig,
        AlterConfigsResource,
    )

    system = _two_hosts(19)
    _create_topic(system, 11)
    setting = AlterConfigsResource(2, "t", (AlterableConfig("retention.ms", 0, "77"),))
    assert system.ask(IncrementalAlterConfigs((setting,))).responses[0].error_code == 0
    system.run(limit_ms=500)
    image = system.hosts[1].brokers.image
    assert image is not None
    assert image.state.setting(2, "t", "retention.ms") == "77"
