"""Level 0 of the early draft's features znode is a finalized level, wherever levels are shown
(F-03); the other forms, and KRaft, have no level 0.
"""

from io import StringIO
from typing import Any

import orjson
import pytest
from jsonschema_rs import validate
from rich.console import Console

from featurewatch.agents.published_outputs import PublishedOutputs
from featurewatch.cli.commands.readiness.rendering import view
from featurewatch.cli.output.rendering import change_line, snapshot_line, state_view
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import StepResult
from featurewatch.pipeline.history.differences import LevelDiff
from featurewatch.streams.codec.outputs import Output, encode_output, encode_state, topic_of
from featurewatch.streams.outputs import Alert, ChangeKind, FeatureChange
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import STATE
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.web.documents import levels as levels_document
from featurewatch.web.history.differences import differences
from tests.agents.gauges import values_of
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.engine import Engine
from tests.simulation.records import CLUSTER

pytestmark = pytest.mark.form("document")

GROUP, TXN = FeatureName("group"), FeatureName("txn")
ZERO = FeatureLevel(0)


class Recorder(Engine):
    """Keeps what was published as it was before it was encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs: list[Output] = []

    def apply(self, *arguments: Any, **options: Any) -> StepResult:
        """Applies an event."""
        result = super().apply(*arguments, **options)
        self.outputs += result.outputs
        return result


def watched(**levels: int) -> Recorder:
    """An early draft's cluster: broker 1 supports group from 0 on, broker 2 nothing."""
    engine = Recorder()
    znodes = [z.broker(1, {GROUP: (0, 2)}, 10), z.broker(2, {}, 11), z.early_features(0, **levels)]
    engine.apply_all([*z.reading("s1", znodes, 50), z.following(600)])
    return engine


def changes_of(engine: Recorder) -> list[tuple[int, int, str]]:
    """The changes of the feature, in order."""
    return [
        (output.before, output.after, output.kind)
        for output in engine.outputs
        if isinstance(output, FeatureChange)
    ]


def text_of(*parts: object) -> str:
    """The text that people see."""
    shown = StringIO()
    console = Console(width=200, file=shown)
    for part in parts:
        console.print(part)
    return shown.getvalue()


def test_it_is_finalized_in_snapshots() -> None:
    """The snapshot has it, with another digest than without, and its schema allows it (F-03)."""
    zero, none = (snapshot(engine.state.image, 1) for engine in (watched(group=0), watched()))
    assert (zero.finalized, none.finalized) == ({GROUP: 0}, {})
    assert (zero.revision, none.revision) == (1, 0)
    assert zero.digest != none.digest
    value = encode_state(zero).value
    assert value is not None
    validate(schema_of(STATE), orjson.loads(value))


def test_the_kind_of_a_change_distinguishes_it_from_a_removal() -> None:
    """Each change from or to level 0 has its own kind (F-03)."""
    engine = watched(group=0)
    steps: list[dict[str, int]] = [{"group": 2}, {"group": 0}, {}, {"group": 0}]
    for version, levels in enumerate(steps, 1):
        engine.apply(z.change(z.early_features(version, **levels), 60 + version))
    engine.apply(z.deleted(z.DRAFT, 70))
    assert changes_of(engine) == [
        (0, 0, "finalized"),
        (0, 2, "upgraded"),
        (2, 0, "downgraded"),
        (0, 0, "removed"),
        (0, 0, "finalized"),
        (0, 0, "removed"),
    ]
    assert engine.state.image.features.revision == 6
    for output in engine.outputs:
        value = encode_output(output).value
        assert value is not None
        validate(schema_of(topic_of(output)), orjson.loads(value))


@pytest.mark.parametrize("levels", [{"group": 0}, {"group": 2}, {}])
def test_it_is_read_back_from_topics_and_rows(levels: dict[str, int]) -> None:
    """A worker that lost its tables, or starts again, knows what was finalized at 0 (F-03)."""
    engine = watched(group=0, txn=0)
    engine.apply(z.change(z.early_features(1, **levels), 60))
    published = PublishedOutputs()
    for output in engine.outputs:
        if isinstance(output, FeatureChange | Alert):  # without a snapshot, the changes show it
            published.add(topic_of(output), encode_output(output).value)
    assert published.state(CLUSTER).image.features == engine.state.image.features
    published.add(STATE, encode_state(snapshot(engine.state.image, 1)).value)
    assert published.state(CLUSTER).image.features == engine.state.image.features
    features = engine.state.image.features
    engine.restart()
    assert engine.state.image.features == features


def test_a_broker_must_support_it() -> None:
    """A range must include 0, and a broker without the feature lacks a finalized one; without the
    level neither is so (F-03, F-34)."""
    engine = watched(group=0)
    engine.apply(z.change(z.broker(3, {GROUP: (1, 2)}, 60), 60))
    summaries = {
        (output.rule, output.subject["node"]): output.summary
        for output in engine.outputs
        if isinstance(output, Alert) and output.severity == "critical"
    }
    assert summaries == {
        ("missing-feature", 2): "broker 2 does not support group, and level 0 is finalized: "
        "start it on a release that supports it.",
        ("incompatible-node", 3): "broker 3 supports group 1-2, and level 0 is finalized: "
        "start it on an older release, or raise group to 1 first.",
    }
    assert [item.node_id for item in snapshot(engine.state.image, 1).incompatible] == [2, 3]
    blockers = assess_readiness(engine.state.image, None, {GROUP: ZERO}).blockers
    assert sorted(blocker.node_id for blocker in blockers) == [2, 3]
    engine.apply(z.change(z.early_features(1), 61))
    assert not snapshot(engine.state.image, 1).incompatible
    assert not engine.state.firing


def test_people_see_it_as_0() -> None:
    """``0`` for the level, ``off`` without (F-03)."""
    zero, none = watched(group=0), watched()
    now, before = snapshot(zero.state.image, 1), snapshot(none.state.image, 1)
    assert "group 0;" in snapshot_line(now).plain
    assert "nothing finalized" in snapshot_line(before).plain
    assert "group      0  " in text_of(*state_view(now, []))
    assert "group      off  " in text_of(*state_view(before, []))
    removed = z.change(z.early_features(1), 60)
    zero.apply(removed)
    lines = [change_line(it).plain for it in zero.outputs if isinstance(it, FeatureChange)]
    assert "group finalized: off → 0 " in lines[0]
    assert "group removed: 0 → off " in lines[1]


def test_readiness_shows_it() -> None:
    """In the report for people and in JSON, which has one field more then (F-03)."""
    zero, none = (
        assess_readiness(it.state.image, now_ms=1) for it in (watched(group=0), watched())
    )
    assert "group     0 " in text_of(view(zero))
    assert "group     off " in text_of(view(none))
    (feature,), (other,) = (report.document()["features"] for report in (zero, none))
    assert (feature["finalized"], feature["is_finalized"]) == (0, True)
    assert other.keys() == feature.keys() - {"is_finalized"}
    assert other["finalized"] == 0


def test_the_api_has_it() -> None:
    """Among a cluster's levels, and as a difference between two revisions (F-03)."""
    now, before = (snapshot(engine.state.image, 1) for engine in (watched(group=0), watched()))
    assert levels_document(now) == [{"feature": GROUP, "level": 0, "name": "0"}]
    found = differences(before, now)
    assert found["levels"] == [
        {"feature": GROUP, "before": 0, "after": 0, "before_name": "off", "after_name": "0"}
    ]
    assert not found["unchanged_levels"]
    assert not differences(now, now)["levels"]


def test_history_distinguishes_level_zero_from_no_level() -> None:
    """A difference has a kind where 0 is a level, and no other field where it is not (F-03)."""
    assert LevelDiff("group", None, 0).document()["kind"] is ChangeKind.FINALIZED
    assert LevelDiff("group", 0, None).document()["kind"] is ChangeKind.REMOVED
    assert LevelDiff("group", 0, 2).document()["kind"] is ChangeKind.UPGRADED
    assert LevelDiff("group", None, 2).document() == {"feature": "group", "before": 0, "after": 2}


def test_a_gauge_distinguishes_level_zero_from_no_level() -> None:
    """``finalized_level`` is 0 for both (F-03)."""
    zero, none = (values_of(engine.state) for engine in (watched(group=0), watched()))
    feature = (("feature", GROUP),)
    assert (zero["finalized_level"][feature], none["finalized_level"][feature]) == (0, 0)
    assert zero["finalized_at_zero"] == {feature: 1}
    assert not none.get("finalized_at_zero")


@pytest.mark.form("released")
def test_the_other_forms_have_no_level_0() -> None:
    """A 0 in a released znode, or one of the later draft, finalizes nothing (F-03 as released)."""
    for path in (z.FEATURE, z.DRAFT):
        engine = Engine()
        engine.apply_all(z.reading("s1", [z.features({TXN: 1, GROUP: 0}, 5, path=path)], 50))
        assert dict(engine.state.image.features.levels) == {TXN: 1}


@pytest.mark.form("released")
def test_in_kraft_it_removes_the_feature() -> None:
    """So does the record, the change says, and the gauge has no other (F-03 as released)."""
    engine = Recorder()
    engine.apply_all([r.commit(1, r.level(TXN, 2)), r.following(1), r.commit(2, r.level(TXN, 0))])
    assert changes_of(engine) == [(0, 2, "finalized"), (2, 0, "removed")]
    assert snapshot(engine.state.image, 1).finalized == {}
    assert not values_of(engine.state).get("finalized_at_zero")
