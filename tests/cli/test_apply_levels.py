"""`features apply`: the levels of a file, for one cluster or for many."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.cli.errors import UsageError
from featurewatch.reference.zookeeper.machines.requests import (
    ErrorCode,
    FeaturesResponse,
    UpdateResponse,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.stack.kafka.cluster import Cluster
from tests.admin.scripted import Node, ScriptedCluster
from tests.cli.commands import featurewatch

GV, KV, MV = "group.version", "kraft.version", "metadata.version"
SUPPORTED = {GV: (0, 1), KV: (0, 1), MV: (7, 33)}


class Controller(Node):
    """A node that validates, and applies what is requested, as a controller of 4.x does."""

    def __init__(self, **finalized: int) -> None:
        levels = {name.replace("_", "."): level for name, level in finalized.items()}
        super().__init__(self._answer, FeaturesResponse(SUPPORTED, levels, 7))
        self.refuses = False
        self.vanishes = False

    @property
    def real_updates(self) -> list[dict[str, int]]:
        """The levels of each update that was no dry run."""
        bodies = [call.body for call in self.updates if not call.body.validate_only]
        return [
            {item.feature: item.max_version_level for item in b.feature_updates} for b in bodies
        ]

    def _answer(self, call: WireRequest) -> UpdateResponse | None:
        if self.refuses:
            return UpdateResponse(ErrorCode.INVALID_REQUEST, "no such luck")
        if call.body.validate_only:
            return UpdateResponse()
        if self.vanishes:
            return None
        levels = dict(self.features.finalized)
        for item in call.body.feature_updates:
            levels[item.feature] = item.max_version_level
        self.features = FeaturesResponse(SUPPORTED, levels, 8)
        return UpdateResponse()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Controller, Controller, tuple[str, ...]]]:
    """Two clusters, called first and second, and the options that name them."""
    nodes = Controller(metadata_version=25), Controller(metadata_version=30, group_version=1)
    with ExitStack() as stack:
        clusters = [
            stack.enter_context(ScriptedCluster(node, cluster_id=name))
            for name, node in zip(("first", "second"), nodes, strict=True)
        ]
        sections = [
            {"cluster_id": cluster.cluster_id, "servers": str(cluster.address())}
            for cluster in clusters
        ]
        (tmp_path / "featurewatch.yaml").write_text(json.dumps({"clusters": sections}))
        yield *nodes, ("--config", str(tmp_path / "featurewatch.yaml"))


def apply(tmp_path: Path, content: Any, *options: str) -> Result:
    """Runs the command with a file of this content."""
    file = tmp_path / "levels.yaml"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return CliRunner().invoke(app, ["features", "apply", "-f", str(file), *options])


def test_two_clusters_get_their_levels_once(
    two: tuple[Controller, Controller, tuple[str, ...]], tmp_path: Path
) -> None:
    """What is there is said and not requested; kraft.version comes last, alone."""
    first, second, at = two
    file = {"version": 1, "levels": {MV: 30, GV: 1, KV: 1}}
    result = apply(tmp_path, file, *at)
    assert result.exit_code == 0, result.output
    assert first.real_updates == [{GV: 1, MV: 30}, {KV: 1}]
    assert second.real_updates == [{KV: 1}]
    assert f"  {MV}: 25 (4.0-IV3) -> 30 (4.3-IV0)\n" in result.output
    assert f"  {MV}: 30 (4.3-IV0), already there\n" in result.output
    assert result.output.count("applied") == 2
    again = apply(tmp_path, file, *at, "--json")
    documents = [json.loads(line) for line in again.stdout.splitlines()]
    assert [document["outcome"] for document in documents] == ["unchanged"] * 2
    assert len(first.real_updates) == 2


def test_a_dry_run_asks_the_controllers_and_changes_nothing(
    two: tuple[Controller, Controller, tuple[str, ...]], tmp_path: Path
) -> None:
    """--dry-run ends after the controllers' validation."""
    first, second, at = two
    result = apply(tmp_path, {"levels": {MV: 33}}, *at, "--dry-run")
    assert result.exit_code == 0
    assert result.output.count("the controller would accept it") == 2
    assert first.updates
    assert first.real_updates == second.real_updates == []


def test_one_refusal_leaves_all_clusters_alone(
    two: tuple[Controller, Controller, tuple[str, ...]], tmp_path: Path
) -> None:
    """The second controller refuses the dry run, so nothing is requested of the first."""
    first, second, at = two
    second.refuses = True
    result = apply(tmp_path, {"levels": {MV: 33}}, *at)
    assert result.exit_code == 1
    assert "first: not requested" in result.stderr
    assert "second: refused: no such luck" in result.stderr
    assert first.real_updates == []


def test_a_missing_response_is_an_unknown_outcome(
    two: tuple[Controller, Controller, tuple[str, ...]], tmp_path: Path
) -> None:
    """What was requested and not answered is named; the cluster after it is left alone."""
    first, second, at = two
    first.vanishes = True
    result = apply(tmp_path, {"levels": {MV: 33}}, *at)
    assert result.exit_code == 4
    assert "first: requested, and the outcome is not known" in result.stderr
    assert "second: not requested" in result.stderr
    assert "featurewatch features describe --bootstrap-server" in result.stderr
    assert len(first.real_updates) == 1
    assert second.real_updates == []


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ({"levels": {GV: 0}}, (), "would be lowered from 1 to 0: pass --downgrade"),
        ({"levels": {"group.versoin": 1}}, (), "no feature group.versoin (did you mean group"),
        ({"version": 2, "levels": {}}, (), "has the format 2, and this version"),
        ({"version": "x", "levels": {}}, (), "has the format x"),
        ({"levels": {MV: "4.9"}}, (), "metadata.version '4.9' is neither a number"),
        ({"environments": {"a": {"clusters": ["first"], "levels": {MV: 33}}}}, (),
         "has no levels for the cluster second"),
        ("levels: [", (), "levels.yaml"),
        ({"levels": {MV: 33}}, ("--cluster", "third"), "the configuration has no cluster third"),
        ({"levels": {MV: 33}}, ("--unsafe",), "--unsafe is about downgrades"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_nothing_is_sent(
    two: tuple[Controller, Controller, tuple[str, ...]],
    tmp_path: Path,
    content: Any,
    options: tuple[str, ...],
    message: str,
) -> None:
    """The file, the clusters and the options are checked before anything is sent."""
    first, second, at = two
    result = apply(tmp_path, content, *at, *options)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert first.updates == second.updates == []


def test_two_entries_for_one_cluster_are_refused(tmp_path: Path) -> None:
    """Else it would be changed twice."""
    with ScriptedCluster(Controller(), Controller()) as cluster:
        sections = [{"servers": str(cluster.address(node))} for node in (1, 2)]
        config = tmp_path / "featurewatch.yaml"
        config.write_text(json.dumps({"clusters": sections}))
        result = apply(tmp_path, {"levels": {MV: 33}}, "--config", str(config))
    assert "two entries of the configuration are the cluster" in str(result.exception)


def test_a_level_is_lowered_with_the_word_for_it(
    two: tuple[Controller, Controller, tuple[str, ...]], tmp_path: Path
) -> None:
    """As in `features downgrade`; --cluster chooses one."""
    first, second, at = two
    result = apply(tmp_path, {"levels": {GV: 0}}, *at, "--downgrade", "--cluster", "second")
    assert result.exit_code == 0, result.output
    assert second.real_updates == [{GV: 0}]
    assert first.updates == []


@pytest.mark.stack
def test_a_real_quorum_has_its_levels_already(quorum_430: Cluster, tmp_path: Path) -> None:
    """By name and by number; a lower level and another cluster's file are refused unsent."""
    (tmp_path / "levels.yaml").write_text("levels: {metadata.version: '4.3', group.version: 1}\n")
    at = ("features", "--bootstrap-server", quorum_430.bootstrap_servers, "apply")
    done = featurewatch(tmp_path, *at, "-f", "levels.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "metadata.version: 30 (4.3-IV0), already there" in done.stdout
    assert f"{quorum_430.cluster_id}: nothing to change" in done.stdout
    (tmp_path / "lower.yaml").write_text("levels: {metadata.version: 29}\n")
    lower = featurewatch(tmp_path, *at, "-f", "lower.yaml", "--downgrade", "--dry-run")
    assert lower.returncode == 1
    assert "refused: " in lower.stderr
    (tmp_path / "other.yaml").write_text(
        "environments: {production: {clusters: [orders-*], levels: {metadata.version: 30}}}\n"
    )
    other = featurewatch(tmp_path, *at, "-f", "other.yaml")
    assert other.returncode == 2
    assert other.stderr.count("\n") == 1
