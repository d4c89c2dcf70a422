"""The command lines of KIP-584's drafts on nodes that say what a test wants."""

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner, Result

from featurewatch.cli.app import app
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse, UpdateResponse
from featurewatch.reference.zookeeper.wire.api_keys import DRAFT_DELETE, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from tests.admin.scripted import Node, ScriptedCluster

pytestmark = pytest.mark.form("document")

SUPPORTED = {"a": (1, 5), "b": (1, 5), "c": (1, 5)}
LEVELS = {"a": 2, "b": 3}


class Draft:
    """A cluster of two nodes in one draft: the second is the controller and applies changes."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        speech = ApiDialect.EARLY_DRAFT if dialect == "early" else ApiDialect.LATER_DRAFT
        self.controller = Node(self._apply, FeaturesResponse(SUPPORTED, LEVELS, 7))
        other = Node(features=FeaturesResponse({"a": (1, 9)}, {"a": 1}, 6))
        self.cluster = ScriptedCluster(other, self.controller, controller=2, speech=speech)

    def __call__(self, command: str, *options: str, typed: str = "") -> Result:
        """Runs a command through the node that is not the controller, and types replies."""
        where = ("--dialect", self._dialect, "--bootstrap-server", str(self.cluster.address(1)))
        result = CliRunner().invoke(app, ["features", command, *where, *options], input=typed)
        assert self.cluster.nodes[1].updates == []
        return result

    def _apply(self, call: WireRequest) -> UpdateResponse:
        before = self.controller.features
        levels = {**before.finalized, **dict(_changes(call))}
        changed = {name: level for name, level in levels.items() if level > 0}
        self.controller.features = FeaturesResponse(SUPPORTED, changed, before.epoch + 1)
        return UpdateResponse()


def _changes(call: WireRequest) -> list[tuple[str, int]]:
    """The levels that a request sets; 0 for what it deletes."""
    body: Any = call.body
    if call.key == DRAFT_DELETE:
        return [(item.name, 0) for item in body.feature]
    return [
        (feature.name, feature.version_level)
        for update in body.feature_update
        for feature in update.feature
    ]


KEYS = {
    "early": ("minVersion", "maxVersion", "version"),
    "late": ("min_version", "max_version", "version_level"),
}


@pytest.mark.parametrize("draft", KEYS)
def test_describe_prints_the_document_of_the_draft(draft: str) -> None:
    """One JSON document with the controller's ranges, levels, epoch and address, in the draft's own
    words (F-72, F-76, F-77, F-78)."""
    low, high, level = KEYS[draft]
    ours = Draft(draft)
    with ours.cluster as cluster:
        document = json.loads(ours("describe", "--controller").stdout)
        address = cluster.address(2)
        first = json.loads(ours("describe").stdout)
        other = cluster.address(1)
    assert document == {
        "status": "OK",
        "supported_features": {name: {low: 1, high: 5} for name in SUPPORTED},
        "finalized_features": {"epoch": 7, "a": {level: 2}, "b": {level: 3}},
        "host": address.host,
        "port": address.port,
    }
    assert (first["finalized_features"]["epoch"], first["port"]) == (6, other.port)


def _numbered(text: str) -> list[str]:
    return re.findall(r"^\d+\. .*$", text, re.MULTILINE)


def test_the_early_draft_confirms_upgrades_and_downgrades_apart() -> None:
    """Each by a numbered list and a question; then the new levels are printed under the raised
    epoch (F-80, F-82, F-86)."""
    ours = Draft("early")
    with ours.cluster:
        how = ("--feature-upgrade", "a:3", "--feature-upgrade", "c:1")
        down = ("--feature-force-downgrade", "b:1")
        result = ours("update", *how, *down, typed="y\ny\n")
        assert ours("update", "--feature-upgrade", "a:4", typed="n\n").exit_code != 0
        (body,) = [call.body for call in ours.controller.updates]
    assert _numbered(result.stderr) == [
        "1. a from v2 (existing) to v3 (new)",
        "2. c from none (existing) to v1 (new)",
        "1. b from v3 (existing) to v1 (new)",
    ]
    assert result.stderr.count("[Y/n]?") == 2
    assert [item.feature_update_type for item in body.feature_update] == [0, 0, 1]
    assert json.loads(result.stdout)["finalized_features"] == {
        "epoch": 8,
        "a": {"version": 3},
        "b": {"version": 1},
        "c": {"version": 1},
    }


def test_the_later_draft_confirms_downgrades_alone() -> None:
    """Upgrades go ahead; each list of levels is taken whole, and the new levels are printed (F-81,
    F-83, F-86)."""
    ours = Draft("late")
    with ours.cluster:
        assert ours("update", "--upgrade", "a:3,c:2").exit_code == 0
        result = ours("update", "--allow-downgrade", "a:1,b:2", typed="y\n")
        bodies = [call.body for call in ours.controller.updates]
    assert _numbered(result.stderr) == [
        "1. a from v3 (existing) to v1 (new)",
        "2. b from v3 (existing) to v2 (new)",
    ]
    assert [[item.allow_downgrade for item in body.feature_update] for body in bodies] == [
        [False, False],
        [True, True],
    ]
    assert json.loads(result.stdout)["finalized_features"] == {
        "epoch": 9,
        "a": {"version_level": 1},
        "b": {"version_level": 2},
        "c": {"version_level": 2},
    }


@pytest.mark.parametrize(("draft", "command"), [("early", "disable"), ("late", "delete")])
def test_names_to_delete_are_numbered(draft: str, command: str) -> None:
    """A list and a question; without a yes nothing is sent (F-84)."""
    ours = Draft(draft)
    with ours.cluster:
        assert ours(command, "--features", "b,a", typed="n\n").exit_code != 0
        assert ours.controller.updates == []
        result = ours(command, "--features", "b,a", typed="y\n")
        assert len(ours.controller.updates) == 1
    assert _numbered(result.stderr) == ["1. b", "2. a"]
    assert "[Y/n]" in result.stderr
    assert json.loads(result.stdout)["finalized_features"] == {"epoch": 8}
