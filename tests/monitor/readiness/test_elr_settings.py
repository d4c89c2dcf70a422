"""What becomes of min.insync.replicas when eligible.leader.replicas.version is finalized."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from immutables import Map

from featurewatch.cli.commands.readiness.min_isr import MinIsrLog
from featurewatch.cli.commands.readiness.rendering import view
from featurewatch.cli.output.rendering import console
from featurewatch.controller.kraft import release_of
from featurewatch.controller.kraft.requests import ConfigRecord, LevelUpdate, UpdateRequest
from featurewatch.controller.kraft.state import MinInsync
from featurewatch.controller.kraft.updates import decide_update
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.monitor.readiness.elr_settings import ELR_VERSION, MinIsrFacts, elr_settings
from featurewatch.streams.events import RecordJson
from featurewatch.streams.types import FeatureLevel, NodeId, UpgradeType
from featurewatch.tables.partitions.minimums import SETTING, MinIsr
from tests.controller.kraft.states import broker, state
from tests.monitor.readiness.clusters import controllers, image, nodes, ranges
from tests.simulation import records as r


def facts(settings: str, files: Mapping[int, int]) -> MinIsrFacts:
    """Settings as in ``b/1=2 t/orders=3``; the topics are orders and payments."""
    found = dict(item.split("=") for item in settings.split())
    return MinIsrFacts(
        Map({key: MinIsr(int(value), 1) for key, value in found.items()}),
        frozenset({"orders", "payments"}),
        {NodeId(node): value for node, value in files.items()},
    )


@pytest.mark.parametrize(
    ("settings", "files", "cluster", "brokers", "unread"),
    [
        # Nothing is set and no file was read: the cluster gets what the controller's file says.
        ("", {}, (None, None), [], [1, 2, 3]),
        # All files say the same.
        ("", {1: 2, 2: 2, 3: 2}, (None, 2), [], []),
        # The file of broker 3 differs from that of the active controller, which is 1.
        ("", {1: 2, 2: 2, 3: 1}, (None, 2), [(3, 1, 2, False)], []),
        # A setting of a single broker is removed, and the cluster's counts, whatever files say.
        ("b/=3 b/2=1", {1: 2, 3: 1}, (3, 3), [(2, 1, 3, True)], []),
        # The same where the cluster has none, and that of the controller is not known.
        ("b/2=1 b/9=4", {}, (None, None), [(2, 1, None, True), (9, 4, None, True)], [1, 3]),
    ],
)
def test_what_changes(
    settings: str,
    files: dict[int, int],
    cluster: tuple[int | None, int | None],
    brokers: list[tuple[int, int, int | None, bool]],
    unread: list[int],
) -> None:
    """Brokers 1 to 3 are registered, and 1 is the active controller."""
    ids = [NodeId(node) for node in (1, 2, 3)]
    elr = elr_settings(facts(settings, files), NodeId(1), ids)
    assert (elr.cluster_before, elr.cluster_after) == cluster
    found = [(item.broker, item.before, item.after, item.removed) for item in elr.brokers]
    assert found == brokers
    assert [*elr.unread_brokers] == unread


@pytest.mark.parametrize("settings", ["", "b/=3", "b/=3 b/1=2", "b/1=2 b/3=1"])
def test_the_model_of_the_controller_writes_the_same(settings: str) -> None:
    """The records that Kafka's controller writes, by the model that is compared with Kafka's."""
    known = facts(settings, {1: 2, 2: 2, 3: 2})
    own = [NodeId(int(key[2:])) for key in known.settings if key not in ("b/", "t/")]
    controller = replace(
        state("4.3", 30, *(broker(node, ranges("4.3")) for node in (1, 2, 3))),
        min_insync=MinInsync(2, "b/" in known.settings, tuple(own)),
    )
    update = LevelUpdate(ELR_VERSION, FeatureLevel(1), UpgradeType.UPGRADE)
    decision = decide_update("4.3", controller, UpdateRequest((update,), dry_run=False))
    written = [record for record in decision.records if isinstance(record, ConfigRecord)]
    elr = elr_settings(known, NodeId(1), [NodeId(1), NodeId(2), NodeId(3)])
    expected = [] if elr.cluster_before else [ConfigRecord("", SETTING, "2")]
    expected += [
        ConfigRecord(str(item.broker), SETTING, None) for item in elr.brokers if item.removed
    ]
    assert {*written} == {*expected}
    assert len(written) == len(expected)


def test_topics_and_settings_of_a_log() -> None:
    """A removed topic takes its setting along; a topic without one follows the brokers."""
    log = MinIsrLog()
    reading = log.reading()
    records = [
        *(r.record("TOPIC_RECORD", {"name": name, "topicId": name.upper()}) for name in "abc"),
        *(_config(2, name, "2") for name in "ab"),
        _config(4, "1", "3"),
        r.record("REMOVE_TOPIC_RECORD", {"topicId": "A"}),
    ]
    reading.observe(r.commit(7, *records))
    found = log.facts({})
    assert found.topics == {"b", "c"}
    assert set(found.settings) == {"t/b", "b/1"}


def test_the_report_says_what_changes() -> None:
    """In readiness of that level, and not where it is finalized already."""
    members = (*controllers(*["4.3"] * 3), *nodes("4.3", "4.3", "4.3"))
    known = facts("b/2=1 t/orders=3", {1: 2, 3: 2})
    report = assess_readiness(image(*members, level=25), release_of("4.3"), min_isr=known)
    shown = console()
    with shown.capture() as captured:
        shown.print(view(report))
    text = captured.get()
    assert "of the cluster: not set -> 2, what the file of the active controller 1 says" in text
    assert "broker 2: 1 -> 2, its setting is removed" in text
    assert "topics that follow these brokers: 1 (payments)" in text
    unread = assess_readiness(image(*members, level=25), release_of("4.3"))
    assert (unread.elr, unread.elr_unread) == (None, True)
    done = image(*members, r.level(ELR_VERSION, 1), level=30)
    assert not assess_readiness(done, release_of("4.3")).elr_unread


def _config(kind: int, name: str, value: str) -> RecordJson:
    data = {"resourceType": kind, "resourceName": name, "name": SETTING, "value": value}
    return r.record("CONFIG_RECORD", data)
