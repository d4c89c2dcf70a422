"""What was: a cluster at a moment, what differs between two, its rolls."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.commands.history import history as app
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
def told() -> Story:
    """A cluster's year, and what is sent to its lake."""
    return year("orders", brokers=3)


@pytest.fixture(scope="module")
def root(told: Story, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of three clusters."""
    told.offset += 20  # read, and nothing of it was news
    told.heard(START + 364 * DAY)
    return lake_of(tmp_path_factory.mktemp("lake"), told, year("other", shift=9 * DAY), zookeeper())


@pytest.fixture(scope="module")
def lake(root: Path) -> LakeReader:
    """The same, opened."""
    return LakeReader(str(root))


def at(lake: LakeReader, moment: str, cluster: str = "orders") -> HistoricalState:
    """The cluster at a moment."""
    return state_at(lake, cluster, parse_moment(moment, NOW), NOW)


def releases(state: HistoricalState) -> dict[str, str | None]:
    """The release of each node."""
    return {f"{each.role}-{n}": each.release for each in state.classes for n in each.nodes}


def test_levels_and_nodes_of_a_time(lake: LakeReader, told: Story) -> None:
    """In the middle of a roll the level is the old one, and some nodes are new already."""
    roll = told.rows["upgrades"][0]
    third = roll["nodes"][2]["at"]
    state = at(lake, (third + HOUR).isoformat())
    assert state.levels == {FEATURE: 19}
    assert releases(state) == {
        **dict.fromkeys(("controller-1", "controller-2", "controller-3"), "3.9"),
        **dict.fromkeys(("broker-101", "broker-102", "broker-103"), "3.7"),
    }
    assert (state.revision, state.epoch, state.leader_id) == (1, 70, 1)
    assert (state.digest, state.provenance["offset"]) == (f"{1:064x}", 70)
    assert state.doubt is None


def test_an_instant_belongs_to_what_it_begins(lake: LakeReader, told: Story) -> None:
    """At the moment of a restart the node is new, a microsecond before it is not."""
    node = told.rows["upgrades"][0]["nodes"][0]
    just = node["at"]
    assert releases(at(lake, just.isoformat()))["controller-1"] == "3.9"
    before = just - timedelta(microseconds=1)
    assert releases(at(lake, before.isoformat()))["controller-1"] == "3.7"


def test_who_was_incompatible_and_what_fired(lake: LakeReader, told: Story) -> None:
    """An old broker that came back is both, from its start until it is gone, and not after it."""
    bad = told.rows["incompatibilities"][0]
    state = at(lake, (bad["since"] + HOUR).isoformat())
    assert [(row["node_id"], row["level"], row["why"]) for row in state.incompatible] == [
        (100, 25, bad["why"])
    ]
    assert [(row["rule"], row["since"]) for row in state.alerts] == [
        ("incompatible-node", bad["since"])
    ]
    after = at(lake, bad["until"].isoformat())
    assert (after.incompatible, after.alerts) == ((), ())
    assert "broker-100" not in releases(after)


def test_every_offset_is_what_the_log_said_by_then(lake: LakeReader, told: Story) -> None:
    """Each place in the log, inside and at the end of a commit, against the rows themselves."""
    intervals, epochs = told.rows["capability_intervals"], told.rows["epochs"]
    for offset in range(10, told.offset + 1, 25):
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
    """A new leader's clock is behind: what it wrote later counts as later; other sources' times
    still count."""
    cut = HistoryCut(NOW, 100)
    early, late = NOW - HOUR, NOW + HOUR
    assert cut.has(late, "c/kraft/91-100")
    assert not cut.has(early, "c/kraft/101-110")
    assert cut.has(early, "c/api-versions/broker-1/5")
    assert not cut.has(late, "c/kraft/following-5")
    assert not cut.has(None, None)
    assert [log_offset(each) for each in ("c/kraft/snapshot-51-3/0", "c/kraft/gap-1-2", None)] == [
        *(50, None, None)
    ]


def test_a_revision_is_the_moment_at_which_it_began(lake: LakeReader, told: Story) -> None:
    """The state has the levels and the digest of its snapshot."""
    for row in told.rows["epochs"]:
        state = at(lake, f"revision:{row['revision']}")
        assert (state.at, state.digest) == (row["at"], row["digest"])
        assert state.levels == row["finalized"]


def test_an_epoch_of_a_znode_holds_until_the_next(lake: LakeReader) -> None:
    """Between two versions of the znode that changed a level the first one's levels stand."""
    found = [at(lake, f"epoch:{epoch}", ZOOKEEPER).levels for epoch in (4, 6, 7)]
    assert found == [{"group_coordinator": 1}, {"group_coordinator": 1}, {"group_coordinator": 3}]
    assert releases(at(lake, "epoch:7", ZOOKEEPER)) == {"broker-1": "3.9"}


def test_an_alert_that_flickers_is_what_was_said_last(tmp_path: Path) -> None:
    """Within one millisecond it fires and is resolved, or is resolved and fires anew."""
    story, node = Story("flicker"), ("broker", 1)
    began = story.at
    story.alert("gone", node, "gone")
    story.alert("gone", node, "gone", since=began)
    story.alert("back", node, "back")
    story.at += HOUR
    story.alert("back", node, "back")
    story.alert("back", node, "back", since=began)
    story.finalize(FEATURE, 21)
    lake = LakeReader(str(lake_of(tmp_path, story)))
    assert [row["rule"] for row in at(lake, "revision:1", "flicker").alerts] == ["back"]


@pytest.mark.parametrize(
    ("cluster", "moment", "text"),
    [
        ("orders", "2025-11-21", "begins at 2025-11-21 08:00:05: 2025-11-21 00:00:00 is not in it"),
        ("orders", "2100-01-01", "2100-01-01 00:00:00 lies ahead"),
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
    """It is never taken for what was before or after."""
    with pytest.raises(UnknownMomentError, match=text):
        at(lake, moment, cluster)


def test_a_lake_that_ended_is_doubted(lake: LakeReader) -> None:
    """What is asked of a time after the last word of any source may be incomplete."""
    assert "ends at 2026-11-19 08:00:00" in str(at(lake, "now").doubt)
    assert at(lake, (START + 364 * DAY).isoformat()).doubt is None


def test_a_difference_has_levels_nodes_and_alerts(lake: LakeReader, told: Story) -> None:
    """Forward and backward it names the same; a moment does not differ from itself."""
    bad = told.rows["incompatibilities"][0]
    old, new = at(lake, "revision:1"), at(lake, (bad["since"] + HOUR).isoformat())
    found = diff(old, new)
    assert LevelDiff(FEATURE, 19, 25) in found.levels
    assert [level.feature for level in found.levels] == [
        *("group.version", "kraft.version", FEATURE, "transaction.version")
    ]
    nodes = [
        (each.role, each.nodes, each.before and each.before["release"]) for each in found.nodes
    ]
    assert nodes == [
        *(("broker", (100,), None), ("broker", (101, 102, 103), "3.7")),
        ("controller", (1, 2, 3), "3.7"),
    ]
    assert [each.after and each.after["release"] for each in found.nodes] == ["3.9", "4.0", "4.0"]
    assert [row["rule"] for row in found.alerts_began] == ["incompatible-node"]
    assert [row["node_id"] for row in found.incompatible_began] == [100]
    back = diff(new, old)
    assert (back.alerts_ended, back.incompatible_ended) == (
        *(found.alerts_began, found.incompatible_began),
    )
    assert [(each.before, each.after) for each in back.nodes] == [
        (each.after, each.before) for each in found.nodes
    ]
    assert diff(new, new).empty
    assert not found.empty


def test_rolls_are_told_in_order(lake: LakeReader, told: Story) -> None:
    """Of a cluster or of all, those that went on since a time."""
    mine = upgrades(lake, "orders", None)
    assert [roll["to_releases"] for roll in mine] == [["3.9"], ["4.0"], ["4.2"]]
    assert mine[0]["levels"] == {FEATURE: [19, 21]}
    assert len(mine[0]["nodes"]) == 6
    assert len(upgrades(lake, "", None)) == 6
    assert len(upgrades(lake, "orders", mine[1]["ended"])) == 2


def test_a_cluster_is_named_where_there_are_many(lake: LakeReader, tmp_path: Path) -> None:
    """Without a name the only one is meant; else the line lists them. One that was never heard of
    is unknown."""
    with pytest.raises(MomentError, match=r"name a cluster with --cluster: .* legacy, orders, ot"):
        cluster_of(lake, "")
    with pytest.raises(UnknownMomentError, match=r"no cluster 'order': it holds legacy, orders"):
        cluster_of(lake, "order")
    one = LakeReader(str(lake_of(tmp_path / "one", zookeeper())))
    assert cluster_of(one, "") == ZOOKEEPER
    none = LakeReader(str(lake_of(tmp_path / "none")))
    with pytest.raises(UnknownMomentError, match="holds no cluster yet"):
        cluster_of(none, "")


def test_a_missing_package_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what to install."""
    monkeypatch.setattr("featurewatch.cli.runtime.lake_reader.find_spec", lambda name: None)
    result = run(root, "show", "--cluster", "orders")
    assert isinstance(result.exception, UsageError)
    assert "pip install 'featurewatch[pipeline]'" in str(result.exception)


def run(root: Path, *arguments: str) -> Result:
    """A command on the lake."""
    return CliRunner().invoke(app, [*arguments, "--lake", str(root)], catch_exceptions=True)


def shown(root: Path, *arguments: str) -> Any:
    """What a command prints as JSON."""
    result = run(root, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_show_prints_a_screen_or_a_document(root: Path, told: Story) -> None:
    """Classes of nodes with their releases, who was incompatible, what fired; and as JSON."""
    moment = (told.rows["incompatibilities"][0]["since"] + HOUR).isoformat()
    result = run(root, "show", "--cluster", "orders", "--at", moment)
    assert result.exit_code == 0
    for words in ("brokers 101-103 (4.0)", "broker 100 supports", "25 (4.0-IV3)", "critical"):
        assert words in result.stdout
    assert "1-21 ✗" in result.stdout
    (document,) = shown(root, "show", "--cluster", "orders", "--at", moment)
    assert document["levels"][FEATURE] == 25
    assert datetime.fromisoformat(document["at"]) == datetime.fromisoformat(moment)
    assert datetime.fromisoformat(document["alerts"][0]["since"]).tzinfo is not None
    (same,) = shown(root, "show", "--cluster", "orders", "--offset", "240")
    assert same["levels"][FEATURE] == 25


def test_show_says_what_it_cannot(root: Path) -> None:
    """Unknown is an exit code of its own, and two moments are one too many."""
    early = run(root, "show", "--cluster", "orders", "--at", "2020-01-01")
    assert (early.exit_code, early.stdout) == (4, "")
    assert "begins at 2025-11-21 08:00:05" in early.stderr
    both = run(root, "show", "--at", "now", "--offset", "3")
    assert isinstance(both.exception, UsageError)
    assert isinstance(run(root, "show").exception, UsageError)  # of which cluster?
    word = run(root, "show", "--at", "offset:3")
    assert isinstance(word.exception, UsageError)


def test_diff_and_upgrades_are_printed(root: Path) -> None:
    """Lines for people, documents for programs."""
    result = run(root, "diff", "revision:1", "revision:3", "--cluster", "orders")
    assert "level   metadata.version 19 (3.7-IV4) → 21 (3.9-IV0)" in result.stdout
    assert "nodes   broker 101-103: 3.7 → 3.9" in result.stdout
    (document,) = shown(root, "diff", "revision:1", "revision:3", "--cluster", "orders")
    assert document["levels"][-1] == {"feature": FEATURE, "before": 19, "after": 21}
    rolls = run(root, "upgrades", "--cluster", "orders", "--nodes").stdout
    assert "upgrade 3.7 → 3.9  finalized  6 nodes  in 1 day, 4:00:00" in rolls
    assert "broker 103 on 3.9" in rolls
    assert "way back  not without loss to 3.7" in rolls
    assert [each["cluster"] for each in shown(root, "upgrades")].count("other") == 3
    late = run(root, "upgrades", "--since", datetime(2100, 1, 1, tzinfo=UTC).isoformat())
    assert "no upgrade is known" in late.stdout
