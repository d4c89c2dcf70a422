"""The history commands: a cluster at a moment, differences between two moments, rolls."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.commands.history import history
from featurewatch.cli.errors import UsageError
from featurewatch.pipeline.history.cuts import HistoryCut, log_offset
from featurewatch.pipeline.history.differences import LevelDiff, diff, upgrades
from featurewatch.pipeline.history.moments import MomentError, UnknownMomentError, parse_moment
from featurewatch.pipeline.history.point_in_time import HistoricalState, cluster_of, state_at
from featurewatch.pipeline.lake.reader import LakeReader
from tests.pipeline.history.lakes import DAY, FEATURE, HOUR, START, Story, lake_of, year

NOW = START + 365 * DAY
ZOOKEEPER = "legacy"


def zookeeper() -> Story:
    """A cluster without a metadata log, whose epochs are versions of a znode."""
    story = Story(ZOOKEEPER)
    story.node("broker", 1, "3.9")
    for level in (1, 3):
        story.finalize("group_coordinator", level)
    for number, row in enumerate(story.rows["epochs"]):
        path = f"{ZOOKEEPER}/zookeeper/feature/7-{number}"
        row.update(epoch=4 + 3 * number, provenance={"path": path, "version": number})
    for row in story.rows["capability_intervals"]:
        row["since_cause"] = f"{ZOOKEEPER}/zookeeper/brokers/ids/1/5-0"
    return story


@pytest.fixture(scope="module")
def story() -> Story:
    """A year of a cluster."""
    return year("orders", brokers=3)


@pytest.fixture(scope="module")
def root(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three clusters."""
    story.offset += 20  # read without any relevant record
    story.heartbeat(START + 364 * DAY)
    return lake_of(
        tmp_path_factory.mktemp("lake"), story, year("other", shift=9 * DAY), zookeeper()
    )


@pytest.fixture(scope="module")
def lake(root: Path) -> LakeReader:
    """A reader of the lake."""
    return LakeReader(str(root))


def at(lake: LakeReader, moment: str, cluster: str = "orders") -> HistoricalState:
    """Returns the state of a cluster at a moment."""
    return state_at(lake, cluster, parse_moment(moment, NOW), NOW)


def releases(state: HistoricalState) -> dict[str, str | None]:
    """The release of each node."""
    return {f"{cls.role}-{n}": cls.release for cls in state.classes for n in cls.nodes}


def test_levels_and_nodes_of_a_time(lake: LakeReader, story: Story) -> None:
    """In the middle of a roll the level is the old one and some nodes are new."""
    roll = story.rows["upgrades"][0]
    third = roll["nodes"][2]["at"]
    state = at(lake, (third + HOUR).isoformat())
    assert state.levels == {FEATURE: 19}
    assert releases(state) == {
        **dict.fromkeys(("controller-1", "controller-2", "controller-3"), "3.9"),
        **dict.fromkeys(("broker-101", "broker-102", "broker-103"), "3.7"),
    }
    assert (state.revision, state.epoch, state.leader_id) == (1, 70, 1)
    assert (state.digest, state.provenance["offset"]) == (f"{1:064x}", 70)
    assert state.uncertainty is None


def test_an_instant_belongs_to_what_it_begins(lake: LakeReader, story: Story) -> None:
    """At the moment of a restart the node is new, a microsecond before it is not."""
    node = story.rows["upgrades"][0]["nodes"][0]
    just = node["at"]
    assert releases(at(lake, just.isoformat()))["controller-1"] == "3.9"
    before = just - timedelta(microseconds=1)
    assert releases(at(lake, before.isoformat()))["controller-1"] == "3.7"


def test_who_was_incompatible_and_what_fired(lake: LakeReader, story: Story) -> None:
    """An old broker that came back is incompatible, and its alert fires, until it leaves."""
    exclusion = story.rows["incompatibilities"][0]
    state = at(lake, (exclusion["since"] + HOUR).isoformat())
    assert [(row["node_id"], row["level"], row["reason"]) for row in state.incompatible] == [
        (100, 25, exclusion["reason"])
    ]
    assert [(row["rule"], row["since"]) for row in state.alerts] == [
        ("incompatible-node", exclusion["since"])
    ]
    after = at(lake, exclusion["until"].isoformat())
    assert (after.incompatible, after.alerts) == ((), ())
    assert "broker-100" not in releases(after)


def test_every_offset_is_what_the_log_had_by_then(lake: LakeReader, story: Story) -> None:
    """Each offset, inside and at the end of a commit, gives the state of the rows up to it."""
    intervals, epochs = story.rows["capability_intervals"], story.rows["epochs"]
    for offset in range(10, story.offset + 1, 25):
        state = at(lake, f"offset:{offset}")
        expected = {
            f"{row['role']}-{row['node_id']}": row["release"]
            for row in intervals
            if (log_offset(row["since_cause"]) or 0) <= offset
            and (log_offset(row["until_cause"]) or 10**9) > offset
        }
        levels = [row["finalized"] for row in epochs if row["epoch"] <= offset]
        assert releases(state) == expected, offset
        assert state.levels == (levels[-1] if levels else {}), offset
        if levels:
            assert at(lake, f"epoch:{offset}").levels == state.levels, offset


def test_places_decide_where_clocks_do_not_agree() -> None:
    """Offsets decide if a new leader's clock is behind; times decide for causes without an
    offset."""
    cut = HistoryCut(NOW, 100)
    early, late = NOW - HOUR, NOW + HOUR
    assert cut.has(late, "c/kraft/91-100")
    assert not cut.has(early, "c/kraft/101-110")
    assert cut.has(early, "c/api-versions/broker-1/5")
    assert not cut.has(late, "c/kraft/following-5")
    assert not cut.has(None, None)
    assert [log_offset(id_) for id_ in ("c/kraft/snapshot-51-3/0", "c/kraft/gap-1-2", None)] == [
        *(50, None, None)
    ]


def test_a_revision_is_the_moment_at_which_it_began(lake: LakeReader, story: Story) -> None:
    """The state has the levels and the digest of the revision's snapshot."""
    for row in story.rows["epochs"]:
        state = at(lake, f"revision:{row['revision']}")
        assert (state.at, state.digest) == (row["at"], row["digest"])
        assert state.levels == row["finalized"]


def test_an_epoch_of_a_znode_holds_until_the_next(lake: LakeReader) -> None:
    """Between two versions of the znode that changed a level, the levels are those of the first."""
    levels = [at(lake, f"epoch:{epoch}", ZOOKEEPER).levels for epoch in (4, 6, 7)]
    assert levels == [{"group_coordinator": 1}, {"group_coordinator": 1}, {"group_coordinator": 3}]
    assert releases(at(lake, "epoch:7", ZOOKEEPER)) == {"broker-1": "3.9"}


def test_an_alert_that_flickers_is_its_last_text(tmp_path: Path) -> None:
    """Within one millisecond an alert fires and is resolved, or is resolved and fires again."""
    story, node = Story("flicker"), ("broker", 1)
    since = story.at
    story.alert("gone", node, "gone")
    story.alert("gone", node, "gone", since=since)
    story.alert("back", node, "back")
    story.at += HOUR
    story.alert("back", node, "back")
    story.alert("back", node, "back", since=since)
    story.finalize(FEATURE, 21)
    lake = LakeReader(str(lake_of(tmp_path, story)))
    assert [row["rule"] for row in at(lake, "revision:1", "flicker").alerts] == ["back"]


@pytest.mark.parametrize(
    ("cluster", "moment", "text"),
    [
        ("orders", "2025-11-21", "begins at 2025-11-21 08:00:05: 2025-11-21 00:00:00 is not in it"),
        ("orders", "2100-01-01", "2100-01-01 00:00:00 is in the future"),
        ("orders", "offset:9", "begins at offset 10"),
        ("orders", "offset:100000", "ends at offset 360"),
        ("orders", "revision:99", "has no revision 99"),
        (ZOOKEEPER, "offset:4", "has no metadata log"),
        (ZOOKEEPER, "epoch:3", "begins after epoch 3"),
        (ZOOKEEPER, "epoch:99", "ends at epoch 7"),
    ],
)
def test_what_the_history_does_not_hold_is_unknown(
    lake: LakeReader, cluster: str, moment: str, text: str
) -> None:
    """It is never replaced by the state before or after."""
    with pytest.raises(UnknownMomentError, match=text):
        at(lake, moment, cluster)


def test_a_lake_that_ended_is_doubted(lake: LakeReader) -> None:
    """The state at a time after the newest heartbeat may be incomplete."""
    assert "ends at 2026-11-19 08:00:00" in str(at(lake, "now").uncertainty)
    assert at(lake, (START + 364 * DAY).isoformat()).uncertainty is None


def test_a_difference_has_levels_nodes_and_alerts(lake: LakeReader, story: Story) -> None:
    """Both directions name the same changes; a moment does not differ from itself."""
    exclusion = story.rows["incompatibilities"][0]
    before, after = at(lake, "revision:1"), at(lake, (exclusion["since"] + HOUR).isoformat())
    difference = diff(before, after)
    assert LevelDiff(FEATURE, 19, 25) in difference.levels
    assert [level.feature for level in difference.levels] == [
        *("group.version", "kraft.version", FEATURE, "transaction.version")
    ]
    nodes = [
        (change.role, change.nodes, change.before and change.before["release"])
        for change in difference.nodes
    ]
    assert nodes == [
        *(("broker", (100,), None), ("broker", (101, 102, 103), "3.7")),
        ("controller", (1, 2, 3), "3.7"),
    ]
    assert [change.after and change.after["release"] for change in difference.nodes] == [
        "3.9",
        "4.0",
        "4.0",
    ]
    assert [row["rule"] for row in difference.alerts_began] == ["incompatible-node"]
    assert [row["node_id"] for row in difference.incompatible_began] == [100]
    reverse = diff(after, before)
    assert (reverse.alerts_ended, reverse.incompatible_ended) == (
        *(difference.alerts_began, difference.incompatible_began),
    )
    assert [(change.before, change.after) for change in reverse.nodes] == [
        (change.after, change.before) for change in difference.nodes
    ]
    assert diff(after, after).empty
    assert not difference.empty


def test_rolls_are_reported_in_order(lake: LakeReader, story: Story) -> None:
    """The rolls of one cluster or of all that overlap the time after ``since``."""
    rolls = upgrades(lake, "orders", None)
    assert [roll["to_releases"] for roll in rolls] == [["3.9"], ["4.0"], ["4.2"]]
    assert rolls[0]["levels"] == {FEATURE: [19, 21]}
    assert len(rolls[0]["nodes"]) == 6
    assert len(upgrades(lake, "", None)) == 6
    assert len(upgrades(lake, "orders", rolls[1]["ended"])) == 2


def test_a_cluster_is_named_where_there_are_many(lake: LakeReader, tmp_path: Path) -> None:
    """Without a name the only cluster is used; otherwise the line lists them. An unknown one is an
    error."""
    with pytest.raises(MomentError, match=r"name a cluster with --cluster: .* legacy, orders, ot"):
        cluster_of(lake, "")
    with pytest.raises(UnknownMomentError, match=r"no cluster 'order': it holds legacy, orders"):
        cluster_of(lake, "order")
    single = LakeReader(str(lake_of(tmp_path / "one", zookeeper())))
    assert cluster_of(single, "") == ZOOKEEPER
    empty = LakeReader(str(lake_of(tmp_path / "none")))
    with pytest.raises(UnknownMomentError, match="holds no cluster yet"):
        cluster_of(empty, "")


def test_a_missing_package_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what to install."""
    monkeypatch.setattr("featurewatch.cli.runtime.lake_reader.find_spec", lambda name: None)
    result = run(root, "show", "--cluster", "orders")
    assert isinstance(result.exception, UsageError)
    assert "pip install 'featurewatch[pipeline]'" in str(result.exception)


def run(root: Path, *arguments: str) -> Result:
    """A command on the lake."""
    return CliRunner().invoke(history, [*arguments, "--lake", str(root)], catch_exceptions=True)


def shown(root: Path, *arguments: str) -> Any:
    """Returns the JSON documents that a command prints."""
    result = run(root, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_show_prints_a_screen_or_a_document(root: Path, story: Story) -> None:
    """It prints classes of nodes with their releases, incompatible nodes and alerts; or JSON."""
    moment = (story.rows["incompatibilities"][0]["since"] + HOUR).isoformat()
    result = run(root, "show", "--cluster", "orders", "--at", moment)
    assert result.exit_code == 0
    for text in ("brokers 101-103 (4.0)", "broker 100 supports", "25 (4.0-IV3)", "critical"):
        assert text in result.stdout
    assert "1-21 ✗" in result.stdout
    (document,) = shown(root, "show", "--cluster", "orders", "--at", moment)
    assert document["levels"][FEATURE] == 25
    assert datetime.fromisoformat(document["at"]) == datetime.fromisoformat(moment)
    assert datetime.fromisoformat(document["alerts"][0]["since"]).tzinfo is not None
    (same,) = shown(root, "show", "--cluster", "orders", "--offset", "240")
    assert same["levels"][FEATURE] == 25


def test_an_offset_that_caused_nothing_has_the_time_of_its_heartbeat(
    lake: LakeReader, story: Story
) -> None:
    """A record that nothing follows from was read long after the last one that something did."""
    assert at(lake, f"offset:{story.offset}").at == START + 364 * DAY
    last = at(lake, f"offset:{story.offset - 20}").at
    assert last < START + 364 * DAY
    first, second = story.rows["epochs"][:2]
    between = at(lake, f"offset:{second['provenance']['offset'] - 1}").at
    assert first["at"] <= between <= second["at"]


def test_show_says_what_it_cannot(root: Path) -> None:
    """An unknown moment has its own exit code; two moments, or an ambiguous cluster, are wrong
    usage."""
    early = run(root, "show", "--cluster", "orders", "--at", "2020-01-01")
    assert (early.exit_code, early.stdout) == (4, "")
    assert "begins at 2025-11-21 08:00:05" in early.stderr
    both = run(root, "show", "--at", "now", "--offset", "3")
    assert isinstance(both.exception, UsageError)
    assert isinstance(run(root, "show").exception, UsageError)  # the cluster is ambiguous
    as_time = run(root, "show", "--at", "offset:3")
    assert isinstance(as_time.exception, UsageError)


def test_diff_and_upgrades_are_printed(root: Path) -> None:
    """Lines for people, JSON documents for programs."""
    result = run(root, "diff", "revision:1", "revision:3", "--cluster", "orders")
    assert "level   metadata.version 19 (3.7-IV4) → 21 (3.9-IV0)" in result.stdout
    assert "nodes   broker 101-103: 3.7 → 3.9" in result.stdout
    (document,) = shown(root, "diff", "revision:1", "revision:3", "--cluster", "orders")
    assert document["levels"][-1] == {"feature": FEATURE, "before": 19, "after": 21}
    assert "the lake ends at" in run(root, "diff", "revision:1", "--cluster", "orders").stdout
    rolls = run(root, "upgrades", "--cluster", "orders", "--nodes").stdout
    assert "upgrade 3.7 → 3.9  finalized  6 nodes  in 1 day, 4:00:00" in rolls
    assert "broker 103 on 3.9" in rolls
    assert "way back  not without loss to 3.7" in rolls
    assert [roll["cluster"] for roll in shown(root, "upgrades")].count("other") == 3
    late = run(root, "upgrades", "--since", datetime(2100, 1, 1, tzinfo=UTC).isoformat())
    assert "no upgrade is known" in late.stdout


def test_operations_are_printed_as_on_the_topic(root: Path, tmp_path: Path) -> None:
    """Oldest first, of one cluster or all, in a range of time; without any, the line says how they
    come into a lake."""
    moved, other = Story("moved"), Story("other", START + DAY)
    for story in (moved, other):
        story.finalize(FEATURE, 19, HOUR)
        story.operation("began", "Partition payments-0 moves from 1 to 4,5")
        story.operation("completed", "Partition payments-0 has moved to 4,5")
    lake = lake_of(tmp_path / "lake", other, moved)
    steps = shown(lake, "operations")
    assert [(step["cluster"], step["phase"]) for step in steps] == [
        ("moved", "began"),
        ("moved", "completed"),
        ("other", "began"),
        ("other", "completed"),
    ]
    assert steps[0]["details"] == {"target": [4, 5]}
    assert steps[0]["append_ms"] == (START + 2 * HOUR).timestamp() * 1000
    one = run(lake, "operations", "--since", (START + DAY).isoformat()).stdout
    assert "other  reassignment completed: Partition payments-0 has moved to 4,5" in one
    assert len(one.splitlines()) == 2
    until = (START + 2 * HOUR).isoformat()
    assert len(shown(lake, "operations", "--until", until)) == 1
    assert len(shown(lake, "operations", "--cluster", "other")) == 2
    assert "no operation is known: pipeline run" in run(root, "operations").stdout
    assert run(root, "operations", "--cluster", "nobody").exit_code == 4
