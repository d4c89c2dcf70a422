"""The fleet: every cluster of a lake, and its differences from the desired levels."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.fleet import fleet as fleet_group
from featurewatch.cli.errors import UsageError
from featurewatch.pipeline.fleet.clusters import Fleet, fleet
from featurewatch.pipeline.fleet.desired import DesiredError, DesiredLevels
from featurewatch.pipeline.fleet.drift import DriftKind, drift
from featurewatch.pipeline.lake.reader import LakeReader
from tests.pipeline.fleet.desired_text import desired_of
from tests.pipeline.history.lakes import DAY, FEATURE, HOUR, Story, lake_of

START = datetime.now(UTC) - 2 * HOUR
DESIRED = """
clusters:
  4L6g3nShT-eMCtK--X86sw: {name: orders-eu, labels: {tier: gold}}
  uJyR2Uy8R7mPp1jWn7tDqg: {name: orders-us}
environments:
  production:
    clusters: [orders-*]
    levels: {metadata.version: 4.0, kraft.version: 1, transaction.version: 2}
  staging:
    clusters: stage
    levels: {metadata.version: 3.9-IV0, group.version: 0}
"""
EU, US = "4L6g3nShT-eMCtK--X86sw", "uJyR2Uy8R7mPp1jWn7tDqg"


def cluster(name: str, release: str, *levels: tuple[str, int]) -> Story:
    """A cluster with a combined node, a broker, some levels, and a recent heartbeat."""
    story = Story(name, START)
    for role, node in (("controller", 1), ("broker", 1), ("broker", 2)):
        story.node(role, node, release, timedelta(seconds=1))
    for feature, level in levels:
        story.finalize(feature, level, timedelta(seconds=1))
    story.heartbeat(START + HOUR)
    return story


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with clusters in all states."""
    behind = cluster(EU, "3.9", (FEATURE, 21), ("kraft.version", 1))
    good = cluster(US, "4.0", (FEATURE, 25), ("kraft.version", 1), ("transaction.version", 2))
    ahead = cluster("stage", "3.9", (FEATURE, 21), ("group.version", 1))
    ahead.node("broker", 3, "3.7", timedelta(seconds=1))
    silent = cluster("lost", "3.9")
    silent.rows["source_states"].clear()
    return lake_of(tmp_path_factory.mktemp("lake"), behind, good, ahead, silent)


@pytest.fixture(scope="module")
def summary(root: Path) -> Fleet:
    """The fleet of the lake."""
    return fleet(LakeReader(str(root)))


def desired(text: str = DESIRED) -> DesiredLevels:
    """Parses the desired levels."""
    return desired_of(text)


def test_a_line_has_levels_nodes_and_what_is_wrong(summary: Fleet) -> None:
    """Combined nodes count once; incompatible nodes and firing alerts are counted."""
    stage = summary.clusters["stage"]
    assert stage.levels == {FEATURE: 21, "group.version": 1}
    assert (stage.nodes, stage.releases) == (3, {"3.7": 1, "3.9": 2})
    assert (stage.incompatible, stage.alerts) == (1, {"critical": 1})
    assert (stage.revision, stage.last_seen) == (2, START + HOUR)
    lost = summary.clusters["lost"]
    assert (lost.levels, lost.revision, lost.nodes, lost.last_seen) == ({}, 0, 2, None)
    assert summary.clusters[US].incompatible == 0
    assert [*summary.clusters] == sorted([EU, US, "stage", "lost"])


def test_levels_are_numbers_or_names_of_releases() -> None:
    """A level may be a release's newest one, a level's own name, or for other features the
    default."""
    text = "environments: {e: {levels: {metadata.version: %s, kraft.version: 4.0, x: 3}}}"
    levels = [
        desired(text % level).environments["e"].levels[FEATURE]
        for level in ("4.0", "4.0-IV1", "3.9.1", "25", "0")
    ]
    assert levels == [25, 23, 21, 25, 0]
    assert desired(text % "4.0").environments["e"].levels == {
        FEATURE: 25,
        "kraft.version": 1,
        "x": 3,
    }


def test_a_feature_of_ones_own_has_a_number() -> None:
    """A feature unknown to Kafka takes a number unless its name resembles a known one; a feature
    that a release lacks is 0, and its default follows the level if that is given."""
    text = "environments: {e: {levels: {ours: 0, x.version: 0, kraft.verison: 2, %s}}}"
    levels = desired(text % "group.version: 3.7").environments["e"].levels
    assert levels == {"ours": 0, "x.version": 0, "kraft.verison": 2, "group.version": 0}
    names = ("4.0", "4.0-IV0", "4.0-IV1")
    environments = [
        desired(text % f"transaction.version: {name}").environments["e"] for name in names
    ]
    assert [environment.levels["transaction.version"] for environment in environments] == [2, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have the section environments"),
        ("environments: {}", "environments is wrong: dictionary should have at least 1 item"),
        (
            "environments: {e: {levels: {f: -1}}}",
            "environments.e.levels is wrong: f '-1' is neither",
        ),
        ("environments: {e: {levels: {f: 4.10}}}", "'4.10' is neither a number nor .*4.4"),
        ("environments: {e: {levels: {metadata.version: 4.0-IV9}}}", "Kafka 4.0 has no level"),
        ("environments: {e: {levels: {f: 99999}}}", "environments.e.levels.f is wrong: .* 32767"),
        ("environments: {e: {clusters: [a]}}", "environments.e.levels is wrong: field required"),
        ("environments: {e: {levels: {}, cluster: a}}", "there is no field environments.e.cluster"),
        ("environments: {e: [", "desired.yaml is not YAML in line 1: "),
        ("environments: {e: {levels: [1]}}", "environments.e.levels is wrong: "),
        ("environments: {e: {levels: {Group.version: 4.0}}}", "Group.version: .* group.version?"),
        (
            "environments: {e: {levels: {metadata_version: 4.0-IV3}}}",
            "no release of Kafka has a feature metadata_version: did you mean metadata.version",
        ),
        (
            "environments: {e: {levels: {nosuch.version: 4.3}}}",
            "a feature nosuch.version: give its level as a number",
        ),
        ("environments: {e: {levels: {kraft.verison: 0}}}", "did you mean kraft.version"),
        ("environments: {e: {levels: {group.version: 4.0-IV9}}}", "Kafka 4.0 has no level"),
        (
            "environments:\n  e:\n    levels:\n      f: 1\n      f: 2\n",
            "in line 5: the key f is already set in line 4",
        ),
    ],
)
def test_what_is_wrong_with_a_file_names_the_field(text: str, message: str) -> None:
    """The error is one line with the file and the field."""
    with pytest.raises(DesiredError, match=message) as raised:
        desired(text)
    assert "/desired.yaml" in str(raised.value).split()[0]
    assert "\n" not in str(raised.value)


def test_drift_is_every_level_that_differs(summary: Fleet) -> None:
    """Levels that are behind, missing or ahead; unlisted and silent clusters; nothing for good
    ones."""
    text = DESIRED.replace("clusters: stage", "clusters: [stage, lost, never, x*]")
    differences = drift(summary, desired(text), START + 2 * HOUR)
    assert [
        (each.cluster, each.verdict, each.feature, each.desired, each.actual)
        for each in differences
    ] == [
        (EU, DriftKind.BEHIND, FEATURE, 25, 21),
        (EU, DriftKind.MISSING, "transaction.version", 2, 0),
        ("lost", DriftKind.MISSING, FEATURE, 21, 0),
        ("lost", DriftKind.SILENT, None, None, None),
        ("stage", DriftKind.AHEAD, "group.version", 0, 1),
        ("never", DriftKind.UNSEEN, None, None, None),
        ("x*", DriftKind.UNSEEN, None, None, None),
    ]
    assert [each.environment for each in differences if each.name == "orders-eu"] == [
        "production"
    ] * 2
    stale = drift(summary, desired(text), START + 3 * DAY)
    assert (stale[-1].verdict, stale[:-1]) == (DriftKind.STALE, differences)
    unlisted = drift(summary, desired(), START + 2 * HOUR)
    assert [each.verdict for each in unlisted if each.cluster == "lost"] == [DriftKind.UNLISTED]


def test_clusters_belong_to_an_environment_by_label(summary: Fleet) -> None:
    """All labels must match; a listed cluster that the lake lacks is named by its id."""
    text = """
clusters: {stage: {labels: {tier: gold, zone: b}}, gone: {name: old, labels: {tier: gold}}}
environments:
  gold: {labels: {tier: gold}, levels: {metadata.version: 21}}
  other: {labels: {tier: gold, zone: c}, levels: {metadata.version: 1}}
"""
    differences = drift(summary, desired(text), START + 2 * HOUR)
    assert desired(text).environment_of("stage") == "gold"
    assert [
        (each.cluster, each.name) for each in differences if each.verdict is DriftKind.UNSEEN
    ] == [("gone", "old")]
    assert not any(each.cluster == "stage" for each in differences)


def test_a_cluster_in_two_environments_is_an_error() -> None:
    """Its desired levels are ambiguous."""
    text = DESIRED.replace("clusters: stage", "clusters: orders-eu")
    with pytest.raises(DesiredError, match="orders-eu belongs to production and to staging"):
        desired(text).environment_of(EU)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("", ""), 3),
        (("clusters: [orders-*]", "clusters: [orders-us]"), 4),
        (("clusters: [orders-*]", "clusters: orders-us"), 4),
        (("clusters: stage", "clusters: [lost, orders-eu]"), 2),
    ],
)
def test_the_exit_code_distinguishes_drift_from_unknown(
    root: Path, tmp_path: Path, change: tuple[str, str], code: int
) -> None:
    """3 if a level differs, 4 if something is only unknown, 2 for an invalid file."""
    file = tmp_path / "desired.yaml"
    text = DESIRED.replace(*change) if change[0] else DESIRED
    if code == 4:
        text = text.replace("group.version: 0", "group.version: 1")
    file.write_text(text)
    result = CliRunner().invoke(fleet_group, ["drift", "--lake", str(root), "--desired", str(file)])
    if code == 2:
        assert isinstance(result.exception, UsageError)
    else:
        assert result.exit_code == code
    if code == 3:
        assert "orders-eu (4L6g3nShT-eMCtK--X86sw)  production   behind" in result.stdout
        assert "metadata.version is 21 (3.9-IV0), should be 25 (4.0-IV3)" in result.stdout


def test_no_drift_is_reported_and_is_good(tmp_path: Path) -> None:
    """Without drift the exit code is 0; JSON documents are one per line."""
    root = lake_of(tmp_path / "lake", cluster("stage", "3.9", (FEATURE, 21)))
    file = tmp_path / "desired.yaml"
    file.write_text("environments: {e: {clusters: [st*], levels: {metadata.version: 3.9}}}")
    arguments = ["drift", "--lake", str(root), "--desired", str(file)]
    result = CliRunner().invoke(fleet_group, arguments)
    assert (result.exit_code, result.stdout) == (*(0, "all clusters match their desired levels\n"),)
    file.write_text("environments: {e: {clusters: [st*], levels: {metadata.version: 4.0}}}")
    result = CliRunner().invoke(fleet_group, [*arguments, "--json"])
    assert result.exit_code == 3
    assert json.loads(result.stdout)["verdict"] == "behind"


def test_the_list_is_a_line_a_cluster(root: Path, tmp_path: Path) -> None:
    """With names and environments if a file has them; or JSON."""
    file = tmp_path / "desired.yaml"
    file.write_text(DESIRED)
    arguments = ["list", "--lake", str(root)]
    lines = (
        CliRunner().invoke(fleet_group, [*arguments, "--desired", str(file)]).stdout.splitlines()
    )
    assert len(lines) == 5
    (line,) = (line for line in lines if line.startswith("stage"))
    for text in ("staging", "3 (1 3.7, 2 3.9)", "1 critical", "metadata.version 21 (3.9-IV0)"):
        assert text in line
    assert any("orders-us (uJyR2Uy8R7mPp1jWn7tDqg)  production" in line for line in lines)
    assert any(line.startswith("lost") and "silent" in line for line in lines)
    documents = CliRunner().invoke(fleet_group, [*arguments, "--json"]).stdout.splitlines()
    assert {json.loads(line)["cluster"] for line in documents} == {EU, US, "stage", "lost"}
