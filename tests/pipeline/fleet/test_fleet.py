"""A fleet: every cluster of a lake, and where its levels are not as they shall be."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from featurewatch.cli.commands.fleet import fleet as app
from featurewatch.cli.errors import UsageError
from featurewatch.pipeline.fleet.clusters import Fleet, fleet
from featurewatch.pipeline.fleet.desired import DesiredError, DesiredLevels, desired_of
from featurewatch.pipeline.fleet.drift import DriftKind, drift
from featurewatch.pipeline.lake.reader import LakeReader
from tests.pipeline.history.lakes import DAY, FEATURE, HOUR, Story, lake_of

BEGAN = datetime.now(UTC) - 2 * HOUR
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
    """A cluster of a combined node, a broker, and levels; heard of now."""
    story = Story(name, BEGAN)
    for role, node in (("controller", 1), ("broker", 1), ("broker", 2)):
        story.node(role, node, release, timedelta(seconds=1))
    for feature, level in levels:
        story.finalize(feature, level, timedelta(seconds=1))
    story.heard(BEGAN + HOUR)
    return story


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of clusters in all states."""
    behind = cluster(EU, "3.9", (FEATURE, 21), ("kraft.version", 1))
    good = cluster(US, "4.0", (FEATURE, 25), ("kraft.version", 1), ("transaction.version", 2))
    ahead = cluster("stage", "3.9", (FEATURE, 21), ("group.version", 1))
    ahead.node("broker", 3, "3.7", timedelta(seconds=1))
    silent = cluster("lost", "3.9")
    silent.rows["source_states"].clear()
    return lake_of(tmp_path_factory.mktemp("lake"), behind, good, ahead, silent)


@pytest.fixture(scope="module")
def found(root: Path) -> Fleet:
    """What the lake says of them."""
    return fleet(LakeReader(str(root)))


def desired(text: str = DESIRED) -> DesiredLevels:
    """A file's content."""
    return desired_of(text, "desired.yaml")


def test_a_line_has_levels_nodes_and_what_is_wrong(found: Fleet) -> None:
    """Combined nodes count once; open incompatibilities and firing alerts are counted."""
    stage = found.clusters["stage"]
    assert stage.levels == {FEATURE: 21, "group.version": 1}
    assert (stage.nodes, stage.releases) == (3, {"3.7": 1, "3.9": 2})
    assert (stage.incompatible, stage.alerts) == (1, {"critical": 1})
    assert (stage.revision, stage.heard) == (2, BEGAN + HOUR)
    lost = found.clusters["lost"]
    assert (lost.levels, lost.revision, lost.nodes, lost.heard) == ({}, 0, 2, None)
    assert found.clusters[US].incompatible == 0
    assert [*found.clusters] == sorted([EU, US, "stage", "lost"])


def test_levels_are_numbers_or_names_of_releases() -> None:
    """A release's newest level, a level's own name, and for other features its default."""
    text = "environments: {e: {levels: {metadata.version: %s, kraft.version: 4.0, x: 3}}}"
    levels = [
        desired(text % given).environments["e"].levels[FEATURE]
        for given in ("4.0", "4.0-IV1", "3.9.1", "25", "0")
    ]
    assert levels == [25, 23, 21, 25, 0]
    assert desired(text % "4.0").environments["e"].levels == {
        FEATURE: 25,
        "kraft.version": 1,
        "x": 3,
    }


def test_a_feature_of_ones_own_has_a_number() -> None:
    """No release of Kafka knows it, and no name of one's is near; what a release had not yet is 0,
    and what it has follows the level where that is named."""
    text = "environments: {e: {levels: {ours: 0, x.version: 0, kraft.verison: 2, %s}}}"
    levels = desired(text % "group.version: 3.7").environments["e"].levels
    assert levels == {"ours": 0, "x.version": 0, "kraft.verison": 2, "group.version": 0}
    given = ("4.0", "4.0-IV0", "4.0-IV1")
    found = [desired(text % f"transaction.version: {name}").environments["e"] for name in given]
    assert [each.levels["transaction.version"] for each in found] == [2, 0, 0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must have the section environments"),
        ("environments: {}", "environments is wrong: dictionary should have at least 1 item"),
        (
            "environments: {e: {levels: {f: -1}}}",
            "environments.e.levels is wrong: f '-1' is neither",
        ),
        ("environments: {e: {levels: {f: 4.10}}}", "'4.10' is neither a number nor .*4.3"),
        ("environments: {e: {levels: {metadata.version: 4.0-IV9}}}", "Kafka 4.0 has no level"),
        ("environments: {e: {levels: {f: 99999}}}", "environments.e.levels.f is wrong: .* 32767"),
        ("environments: {e: {clusters: [a]}}", "environments.e.levels is wrong: field required"),
        ("environments: {e: {levels: {}, cluster: a}}", "there is no field environments.e.cluster"),
        ("environments: {e: [", "desired.yaml is no YAML in line 1: "),
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
            "in line 5: the key f stands there already, in line 4",
        ),
    ],
)
def test_what_is_wrong_with_a_file_names_the_field(text: str, says: str) -> None:
    """One line, with the file and the place in it."""
    with pytest.raises(DesiredError, match=says) as raised:
        desired(text)
    assert str(raised.value).startswith("desired.yaml")
    assert "\n" not in str(raised.value)


def test_drift_is_every_level_that_differs(found: Fleet) -> None:
    """Behind, missing and ahead by feature; unlisted and silent clusters; nothing of good ones."""
    text = DESIRED.replace("clusters: stage", "clusters: [stage, lost, never, x*]")
    told = drift(found, desired(text), BEGAN + 2 * HOUR)
    assert [
        (each.cluster, each.verdict, each.feature, each.wanted, each.found) for each in told
    ] == [
        (EU, DriftKind.BEHIND, FEATURE, 25, 21),
        (EU, DriftKind.MISSING, "transaction.version", 2, 0),
        ("lost", DriftKind.MISSING, FEATURE, 21, 0),
        ("lost", DriftKind.SILENT, None, None, None),
        ("stage", DriftKind.AHEAD, "group.version", 0, 1),
        ("never", DriftKind.UNHEARD, None, None, None),
        ("x*", DriftKind.UNHEARD, None, None, None),
    ]
    assert [each.environment for each in told if each.name == "orders-eu"] == ["production"] * 2
    stale = drift(found, desired(text), BEGAN + 3 * DAY)
    assert (stale[-1].verdict, stale[:-1]) == (DriftKind.STALE, told)
    unlisted = drift(found, desired(), BEGAN + 2 * HOUR)
    assert [each.verdict for each in unlisted if each.cluster == "lost"] == [DriftKind.UNLISTED]


def test_clusters_belong_to_an_environment_by_label(found: Fleet) -> None:
    """All labels must be there; a named cluster that was never heard of is told by its id."""
    text = """
clusters: {stage: {labels: {tier: gold, zone: b}}, gone: {name: old, labels: {tier: gold}}}
environments:
  gold: {labels: {tier: gold}, levels: {metadata.version: 21}}
  other: {labels: {tier: gold, zone: c}, levels: {metadata.version: 1}}
"""
    told = drift(found, desired(text), BEGAN + 2 * HOUR)
    assert desired(text).environment_of("stage") == "gold"
    assert [(each.cluster, each.name) for each in told if each.verdict is DriftKind.UNHEARD] == [
        ("gone", "old")
    ]
    assert not any(each.cluster == "stage" for each in told)


def test_a_cluster_in_two_environments_is_an_error() -> None:
    """Whose levels it shall have cannot be told."""
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
def test_the_exit_code_tells_drift_from_unknown(
    root: Path, tmp_path: Path, change: tuple[str, str], code: int
) -> None:
    """3 where a level differs, 4 where only something is not known, 2 for a wrong file."""
    file = tmp_path / "desired.yaml"
    text = DESIRED.replace(*change) if change[0] else DESIRED
    if code == 4:
        text = text.replace("group.version: 0", "group.version: 1")
    file.write_text(text)
    result = CliRunner().invoke(app, ["drift", "--lake", str(root), "--desired", str(file)])
    if code == 2:
        assert isinstance(result.exception, UsageError)
    else:
        assert result.exit_code == code
    if code == 3:
        assert "orders-eu (4L6g3nShT-eMCtK--X86sw)  production   behind" in result.stdout
        assert "metadata.version is 21 (3.9-IV0), shall be 25 (4.0-IV3)" in result.stdout


def test_no_drift_is_said_and_is_good(tmp_path: Path) -> None:
    """Every cluster as it shall be: exit code 0; and documents are one a line."""
    root = lake_of(tmp_path / "lake", cluster("stage", "3.9", (FEATURE, 21)))
    file = tmp_path / "desired.yaml"
    file.write_text("environments: {e: {clusters: [st*], levels: {metadata.version: 3.9}}}")
    arguments = ["drift", "--lake", str(root), "--desired", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout) == (
        *(0, "every cluster has the levels that it shall have\n"),
    )
    file.write_text("environments: {e: {clusters: [st*], levels: {metadata.version: 4.0}}}")
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 3
    assert json.loads(result.stdout)["verdict"] == "behind"


def test_the_list_is_a_line_a_cluster(root: Path, tmp_path: Path) -> None:
    """With names and environments where a file has them; JSON without."""
    file = tmp_path / "desired.yaml"
    file.write_text(DESIRED)
    arguments = ["list", "--lake", str(root)]
    lines = CliRunner().invoke(app, [*arguments, "--desired", str(file)]).stdout.splitlines()
    assert len(lines) == 5
    (line,) = (line for line in lines if line.startswith("stage"))
    for words in ("staging", "3 (1 3.7, 2 3.9)", "1 critical", "metadata.version 21 (3.9-IV0)"):
        assert words in line
    assert any("orders-us (uJyR2Uy8R7mPp1jWn7tDqg)  production" in line for line in lines)
    assert any(line.startswith("lost") and "silent" in line for line in lines)
    documents = CliRunner().invoke(app, [*arguments, "--json"]).stdout.splitlines()
    assert {json.loads(line)["cluster"] for line in documents} == {EU, US, "stage", "lost"}
