"""What the commands that change levels ask, and what they send to the controller."""

import io
import re
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from featurewatch.admin.features.kip584_drafts import delete_request, update_request
from featurewatch.admin.features.metadata import FeatureDialect
from featurewatch.admin.features.update_request import update_request as released_request
from featurewatch.admin.features.updates import DowngradeType, FeatureUpdate
from featurewatch.cli.app import app
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.updates import (
    DOWNGRADE,
    UPGRADE,
    LevelOptions,
    parse_level_updates,
    release_version_note,
)
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.features import KafkaFeaturesTool
from featurewatch.cli.output.confirmation import confirm
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName
from tests.admin.scripted import Node, ScriptedCluster

RELEASES = pytest.mark.parametrize("release", ["3.9", "4.3"])


@pytest.mark.parametrize(
    "reply", ["", "\n", "n\n", "no\n", "yep\n", "yn\n", "yes please\n", "ja\n", "1\n"]
)
def test_any_reply_but_yes_ends_the_command(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it begins with; what would be sent comes after it (F-85)."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(reply))
    with pytest.raises(Exit):
        confirm(["1. a"])


@pytest.mark.parametrize("reply", ["y\n", "Y\n", "yes\n", "YES\n", " Yes \n", "y"])
def test_yes_continues(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In upper or lower case, alone or in full (F-85)."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(reply))
    confirm(["1. a"])


def sent(cluster: ScriptedCluster, *arguments: str) -> list[Any]:
    """The updates that a command sends to node 1, the controller; asked by way of node 2."""
    command, *others = arguments
    where = ("--bootstrap-server", str(cluster.address(2)))
    result = CliRunner().invoke(app, ["features", command, *where, *others, "--yes"])
    assert result.exit_code == 0, result.output
    assert cluster.nodes[2].updates == []
    return [call.body for call in cluster.nodes[1].updates]


def node(supported: dict[str, tuple[int, int]], finalized: dict[str, int]) -> Node:
    """A node with these ranges, in a cluster with these levels."""
    return Node(features=FeaturesResponse(supported, finalized, 7))


@pytest.mark.form("document")
def test_enable_latest_sets_the_maxima_of_the_controller() -> None:
    """Not those of the node that is asked first, in one request, whether they change or not
    (F-87)."""
    levels = {"alpha": 5, "beta": 2}
    controller = node({"alpha": (1, 5), "beta": (1, 2)}, levels)
    other = node({"alpha": (1, 9), "beta": (1, 9), "gamma": (1, 9)}, levels)
    with ScriptedCluster(controller, other, speech=ApiDialect.LATER_DRAFT) as cluster:
        (body,) = sent(cluster, "enable-latest", "--dialect", "late")
    items = {
        feature.name: (feature.version_level, update.allow_downgrade)
        for update in body.feature_update
        for feature in update.feature
    }
    assert items == {"alpha": (5, False), "beta": (2, False)}


@pytest.mark.form("document")
def test_the_early_drafts_flags_are_repeatable() -> None:
    """Each upgrade and each forced downgrade is sent, of its own type (F-80)."""
    levels = {"a": 2, "b": 3, "c": 1, "d": 2}
    ranges = dict.fromkeys(levels, (0, 9))
    with ScriptedCluster(
        node(ranges, levels), node(ranges, levels), speech=ApiDialect.EARLY_DRAFT
    ) as cluster:
        (body,) = sent(
            cluster,
            *("update", "--dialect", "early"),
            *("--feature-upgrade", "a:2", "--feature-upgrade", "b:3"),
            *("--feature-force-downgrade", "c:1", "--feature-force-downgrade", "d:2"),
        )
    items = {
        (feature.name, feature.version_level, update.feature_update_type)
        for update in body.feature_update
        for feature in update.feature
    }
    assert items == {("a", 2, 0), ("b", 3, 0), ("c", 1, 1), ("d", 2, 1)}


def test_the_early_drafts_deletion_says_what_it_is_for() -> None:
    """Garbage collection: before it is asked, and nothing is sent without a yes (F-52)."""
    features = node({"a": (0, 9)}, {"a": 2})
    with ScriptedCluster(features, speech=ApiDialect.EARLY_DRAFT) as cluster:
        where = ("--bootstrap-server", str(cluster.address()))
        command = ["features", "disable", "--dialect", "early", *where, "--features", "a"]
        result = CliRunner().invoke(app, command, input="n\n")
        assert cluster.nodes[1].updates == []
    assert result.stderr.index("garbage collection") < result.stderr.index("[Y/n]")


@pytest.mark.form("released")
@RELEASES
def test_describe_prints_a_line_for_each_feature(release: str) -> None:
    """Range, level and epoch, by tabs and in 4.x by columns (F-77 as released, F-78 as
    released, M-20 as released)."""
    nodes = node({"alpha": (1, 5), "beta": (0, 2)}, {"alpha": 3})
    with ScriptedCluster(nodes) as cluster:
        where = ("--bootstrap-server", str(cluster.address()))
        result = CliRunner().invoke(app, ["features", "--compat", release, "describe", *where])
    lines = re.sub(" {2,}", "\t", result.stdout) if release == "4.3" else result.stdout
    assert lines == (
        "Feature: alpha\tSupportedMinVersion: 1\tSupportedMaxVersion: 5\t"
        "FinalizedVersionLevel: 3\tEpoch: 7\n"
        "Feature: beta\tSupportedMinVersion: 0\tSupportedMaxVersion: 2\t"
        "FinalizedVersionLevel: 0\tEpoch: 7\n"
    )


def released(*arguments: str) -> list[tuple[str, int, int]]:
    """What a command of released Kafka sends in its one request: name, level and type."""
    features = node({"alpha": (1, 5), "beta": (1, 5)}, {"alpha": 3, "beta": 3})
    with ScriptedCluster(features) as cluster:
        command, *others = arguments
        where = ("--bootstrap-server", str(cluster.address()))
        result = CliRunner().invoke(app, ["features", command, *where, *others])
        assert result.exit_code == 0, result.output
        (body,) = (call.body for call in cluster.nodes[1].updates)
    return [(one.feature, one.max_version_level, one.upgrade_type) for one in body.feature_updates]


@pytest.mark.form("released")
def test_released_commands_name_features_one_by_one() -> None:
    """``--feature name=level`` is repeatable, and so is ``--feature name`` of a deletion
    (F-80 as released, F-84 as released)."""
    named = ("--feature", "alpha=5", "--feature", "beta=4")
    assert released("upgrade", *named) == [("alpha", 5, 1), ("beta", 4, 1)]
    assert released("downgrade", "--feature", "alpha=2") == [("alpha", 2, 2)]
    deleted = released("disable", "--feature", "alpha", "--feature", "beta")
    assert deleted == [("alpha", 0, 2), ("beta", 0, 2)]


@pytest.mark.form("released")
def test_a_release_stands_for_the_levels_of_its_defaults() -> None:
    """``--release-version``, which 4.x has in place of enable-latest (F-87 as released,
    M-21 as released): the levels
    that a new cluster of this release has, and not the maxima of a node."""
    levels = {name: level for name, level, _ in released("upgrade", "--release-version", "4.0")}
    assert levels[METADATA_VERSION] == 25
    assert {"alpha", "beta"}.isdisjoint(levels)
    assert levels["group.version"] == 1


@pytest.mark.form("document", "released")
def test_the_server_waits_for_a_minute_by_default() -> None:
    """``timeoutMs`` is 60000, in each form of the request (F-20, F-49, M-03)."""
    update = FeatureUpdate(FeatureName("a"), FeatureLevel(1))
    requests: list[Any] = [
        update_request(FeatureDialect.EARLY, [update]),
        update_request(FeatureDialect.LATE, [update]),
        delete_request([FeatureName("a")]),
        *(released_request([update], version) for version in (0, 1, 2)),
    ]
    assert [request.timeout_ms for request in requests] == [60_000] * 6


@pytest.mark.form("released")
@RELEASES
def test_the_tool_of_a_release_takes_integers_alone(release: str) -> None:
    """With ``--compat`` a name is refused with Kafka's text, and nothing is sent (M-22 as
    released)."""
    features = node({METADATA_VERSION: (1, 30)}, {METADATA_VERSION: 7})
    with ScriptedCluster(features) as cluster:
        where = ("--bootstrap-server", str(cluster.address()))

        def upgraded(*options: str) -> tuple[int, str]:
            level = ("upgrade", "--feature", "metadata.version=3.8", "--yes")
            result = CliRunner().invoke(app, ["features", *options, *where, *level])
            return result.exit_code, result.stderr

        code, refusal = upgraded("--compat", release)
        assert (code, cluster.nodes[1].updates) == (1, [])
        assert refusal.startswith("Can't parse feature=level string metadata.version=3.8: ")
        assert upgraded()[0] == 0
        (call,) = cluster.nodes[1].updates
        assert call.body.feature_updates[0].max_version_level == 20


@pytest.mark.form("document")
@pytest.mark.parametrize(
    ("command", "options", "changes"),
    [
        (
            "upgrade",
            ("--metadata", "3.3-IV3", "--feature", "a=2", "--feature", "b=3"),
            [("metadata.version", 7, 0), ("a", 2, 0), ("b", 3, 0)],
        ),
        ("disable", ("--feature", "a"), [("a", 0, 1)]),
        ("disable", ("--feature", "a", "--feature", "b", "--unsafe"), [("a", 0, 2), ("b", 0, 2)]),
    ],
)
def test_the_commands_of_kip_778_name_what_they_change(
    command: str, options: tuple[str, ...], changes: list[tuple[str, int, int]]
) -> None:
    """``upgrade`` takes a name of metadata.version and any number of features (M-21); ``disable``
    asks for level 0, with --unsafe as a downgrade does (M-24)."""
    nodes = [Node(versions=(0, 1)), Node(versions=(0, 1))]
    with ScriptedCluster(*nodes, speech=ApiDialect.KIP_778) as cluster:
        (body,) = sent(cluster, command, "--dialect", "kip-778", *options)
    assert [
        (item.feature, item.max_version_level, item.downgrade_type) for item in body.feature_updates
    ] == changes


@pytest.mark.form("document")
def test_disable_takes_no_name_of_metadata_version() -> None:
    """It has no --metadata (M-24)."""
    result = CliRunner().invoke(app, ["features", "disable", "--metadata", "3.3-IV3"])
    assert result.exit_code == 2
    assert "--metadata" in result.output


@pytest.mark.form("document")
def test_describe_shows_what_is_active_by_kip_778() -> None:
    """Each feature with its finalized level (M-20)."""
    nodes = node({"alpha": (1, 5), "beta": (0, 2)}, {"alpha": 3})
    with ScriptedCluster(nodes, speech=ApiDialect.KIP_778) as cluster:
        where = ("--bootstrap-server", str(cluster.address()))
        command = ["features", "--dialect", "kip-778", "describe", *where]
        result = CliRunner().invoke(app, command)
    levels = re.findall(r"Feature: (\S+) .*FinalizedVersionLevel: (\d+)", result.stdout)
    assert levels == [("alpha", "3"), ("beta", "0")]


@pytest.mark.form("document")
@pytest.mark.parametrize(
    ("command", "options", "downgrade_type"),
    [
        ("upgrade", ("--feature", "group.version=3"), 0),
        ("downgrade", ("--feature", "group.version=1", "--metadata", "3.7"), 1),
        ("downgrade", ("--feature", "group.version=1", "--unsafe"), 2),
        ("disable", ("--feature", "group.version"), 1),
        ("disable", ("--feature", "group.version", "--unsafe"), 2),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_changes_are_sent_as_kip_778_is_written(
    command: str, options: tuple[str, ...], downgrade_type: int, dry_run: bool
) -> None:
    """``--dialect kip-778`` sends DowngradeType 0, 1 and 2, and DryRun (M-05, M-08, M-23)."""
    nodes = [Node(versions=(0, 1)), Node(versions=(0, 1))]
    with ScriptedCluster(*nodes, speech=ApiDialect.KIP_778) as cluster:
        dry = ("--dry-run",) if dry_run else ()
        (body,) = sent(cluster, command, "--dialect", "kip-778", *options, *dry)
    assert {item.downgrade_type for item in body.feature_updates} == {downgrade_type}
    assert len(body.feature_updates) == 1 + ("--metadata" in options)
    assert body.dry_run is dry_run


@pytest.mark.form("released")
@RELEASES
def test_the_commands_of_a_downgrade_have_kafkas_types(release: str) -> None:
    """``--metadata`` and ``--feature`` send type 2, with ``--unsafe`` 3 (M-23 as released)."""
    tool = KafkaFeaturesTool(release)
    for unsafe, number in ((False, 1), (True, 2)):
        options = LevelOptions(["foo=2"], metadata="3.3", unsafe=unsafe)
        updates = parse_level_updates(tool, DOWNGRADE, options, lambda _: None)
        assert [update.feature for update in updates] == [METADATA_VERSION, "foo"]
        assert {update.kind for update in updates} == {DowngradeType(number).upgrade_type}
        assert {int(update.kind) for update in updates} == {number + 1}
        request: Any = released_request(updates, 1)
        sent_types = {int(item.upgrade_type) for item in request.feature_updates}
        assert sent_types == {number + 1}


@pytest.mark.form("document")
@RELEASES
def test_metadata_version_has_names(release: str) -> None:
    """The name of a level or of a release serves as its value, for metadata.version alone
    (M-22)."""
    tool = KafkaFeaturesTool(release)
    for text, level in (("3.3-IV3", 7), ("3.9-IV0", 21), ("3.7", 19), ("14", 14)):
        assert tool.named_level(f"metadata.version={text}") == (METADATA_VERSION, level)
    for text in ("metadata.version=3.3-IV9", "foo=3.3-IV3", "metadata.version="):
        with pytest.raises(KafkaToolError):
            tool.named_level(text)


@pytest.mark.parametrize(
    ("operation", "version", "is_known"),
    [
        (UPGRADE, "4.3", True),
        (UPGRADE, "3.9", True),
        (UPGRADE, "3.8", False),
        (DOWNGRADE, "4.3", False),
        (UPGRADE, None, False),
    ],
)
def test_the_known_fault_of_a_release_version(
    operation: str, version: str | None, is_known: bool
) -> None:
    """It raises kraft.version too where that release has a level of it by default (KAFKA-21426)."""
    features = None if version else ["kraft.version=1"]
    options = LevelOptions(features, release_version=version)
    updates = parse_level_updates(KafkaFeaturesTool("4.3"), operation, options, print)
    note = release_version_note(options, updates)
    assert (note is not None) is is_known
    if note is not None:
        assert note.startswith("known fault KAFKA-21426: An upgrade with --release-version also")
        assert "Name the levels with --feature" in note
