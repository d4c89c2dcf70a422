"""The command lines of KIP-584's drafts, on the reference system over a real ensemble."""

import asyncio
import io
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient

from featurewatch.admin import (
    FeatureAdmin,
    FeatureDialect,
    FeatureUpdate,
    UpdateRefusedError,
)
from featurewatch.reference.zookeeper.machines.dialect import EARLY_DRAFT, LATER_DRAFT, Dialect
from featurewatch.reference.zookeeper.machines.encoding import encode_features
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.types import FeatureLevel, FeatureName
from tests.conformance.kafka_tools import CommandResult, OurCommand
from tests.reference.zookeeper.process import reference_process

pytestmark = pytest.mark.stack

GROUP, TRANSACTION, OFFSETS = (
    "group_coordinator",
    "transaction_coordinator",
    "consumer_offsets_topic_schema",
)
LEVELS = {GROUP: 1, TRANSACTION: 4}
EARLY = {GROUP: (1, 2), TRANSACTION: (0, 5), OFFSETS: (0, 0)}
LATE = {GROUP: (1, 2), TRANSACTION: (1, 5), OFFSETS: (1, 1)}


class DraftCluster:
    """A cluster in one draft at the levels of the example, and a person who uses the command."""

    def __init__(
        self,
        nodes: dict[int, str],
        dialect: str,
        ours: OurCommand,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.nodes = nodes
        self._dialect = dialect
        self._ours = ours
        self._monkeypatch = monkeypatch
        self.other = nodes[1]
        document = json.loads(self("describe", "--controller").out)
        self.controller = f"{document['host']}:{document['port']}"
        """Whom the command found; a node that was not asked must have named it."""
        (self.other,) = set(nodes.values()) - {self.controller}

    def __call__(self, *arguments: str, typed: str = "") -> CommandResult:
        """Runs a sub-command through the node that is not the controller, and types answers."""
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        command, *others = arguments
        where = ("--bootstrap-server", self.other)
        return self._ours(command, *where, "--dialect", self._dialect, *others)

    def finalized(self) -> tuple[int, dict[str, int]]:
        """The epoch and the levels, as the controller's document has them."""
        levels = json.loads(self("describe", "--controller").out)["finalized_features"]
        epoch = levels.pop("epoch")
        return epoch, {name: next(iter(level.values())) for name, level in levels.items()}


def running(
    dialect: Dialect,
    name: str,
    ranges: dict[str, tuple[int, int]],
    ensemble: Ensemble,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[DraftCluster]:
    """Starts a cluster of two."""
    chroot = f"/features-{name}-{time.time_ns()}"
    client = KazooClient(ensemble.connect_string)
    client.start(30)
    try:
        client.create(chroot + dialect.path, encode_features(dialect, LEVELS), makepath=True)
    finally:
        client.stop()
        client.close()
    features = [f"{feature}={low}-{high}" for feature, (low, high) in ranges.items()]
    arguments = ("--brokers", "2", "--dialect", dialect.name)
    with reference_process(
        ensemble.connect_string + chroot, *arguments, features=features
    ) as process:
        yield DraftCluster(process.ready(), name, OurCommand(monkeypatch, capsys), monkeypatch)


@pytest.fixture
def early(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[DraftCluster]:
    """A cluster in the early draft."""
    yield from running(EARLY_DRAFT, "early", EARLY, ensemble, monkeypatch, capsys)


@pytest.fixture
def late(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[DraftCluster]:
    """A cluster in the later draft."""
    yield from running(LATER_DRAFT, "late", LATE, ensemble, monkeypatch, capsys)


def document(
    ranges: dict[str, tuple[int, int]],
    levels: dict[str, int],
    epoch: int,
    address: str,
    keys: tuple[str, str, str],
) -> dict[str, Any]:
    """The document of the drafts' examples."""
    low, high, level = keys
    host, _, port = address.rpartition(":")
    return {
        "status": "OK",
        "supported_features": {
            name: {low: bounds[0], high: bounds[1]} for name, bounds in ranges.items()
        },
        "finalized_features": {
            "epoch": epoch,
            **{name: {level: value} for name, value in levels.items()},
        },
        "host": host,
        "port": int(port),
    }


EARLY_KEYS = ("minVersion", "maxVersion", "version")
LATE_KEYS = ("min_version", "max_version", "version_level")


@pytest.mark.form("document")
def test_the_early_drafts_example(early: DraftCluster) -> None:
    """From describe over update to disable: each prints the document, with the keys of the draft;
    upgrades and downgrades are confirmed separately, deletions too, by numbered lists, and the
    change goes to the controller, which the bootstrap server names; the epoch goes from 0 to 1 to 2
    and the third feature stays (F-72, F-73, F-75, F-76, F-77, F-78, F-79, F-80, F-82, F-84, F-86,
    F-88)."""
    described = early("describe")
    assert json.loads(described.out) == document(EARLY, LEVELS, 0, early.other, EARLY_KEYS)
    asked = json.loads(early("describe", "--controller").out)
    assert asked == document(EARLY, LEVELS, 0, early.controller, EARLY_KEYS)

    result = early(
        *("update", "--feature-upgrade", f"{GROUP}:2", "--feature-upgrade", f"{OFFSETS}:0"),
        *("--feature-force-downgrade", f"{TRANSACTION}:3"),
        typed="Y\nY\n",
    )
    levels = {GROUP: 2, TRANSACTION: 3, OFFSETS: 0}
    assert result.code == 0, result
    assert json.loads(result.out) == document(EARLY, levels, 1, early.controller, EARLY_KEYS)
    assert result.err.splitlines() == [
        "Please confirm before finalizing the upgrade of the following features:",
        f"1. {GROUP} from v1 (existing) to v2 (new)",
        f"2. {OFFSETS} from none (existing) to v0 (new)",
        "",
        "[Y/n]? ",
        "Please confirm before downgrading the following features:",
        f"1. {TRANSACTION} from v4 (existing) to v3 (new)",
        "",
        "[Y/n]? ",
    ]

    result = early("disable", "--features", f"{GROUP},{TRANSACTION}", typed="y\n")
    assert json.loads(result.out) == document(EARLY, {OFFSETS: 0}, 2, early.controller, EARLY_KEYS)
    warning, *asked_lines = result.err.splitlines()
    # The purpose of deletion is printed before the question.
    assert warning.startswith("featurewatch: deletion is for garbage collection")
    assert asked_lines == [
        "Please confirm deletion of the following features:",
        f"1. {GROUP}",
        f"2. {TRANSACTION}",
        "",
        "[Y/n] ",
    ]


@pytest.mark.form("document")
def test_the_early_drafts_api_returns_the_features(early: DraftCluster) -> None:
    """updateFeatures and deleteFeatures give the record after all updates, with the controller's
    ranges and address; a refusal is an error in the controller's words (F-72, F-73, F-75)."""

    group = FeatureName(GROUP)

    async def work() -> None:
        async with FeatureAdmin.connect(early.other, dialect=FeatureDialect.EARLY) as admin:
            raised = await admin.update_features([FeatureUpdate(group, FeatureLevel(2))])
            assert dict(raised.finalized) == {GROUP: 2, TRANSACTION: 4}
            assert (dict(raised.supported), str(raised.node)) == (EARLY, early.controller)
            with pytest.raises(UpdateRefusedError, match=GROUP):
                await admin.update_features([FeatureUpdate(group, FeatureLevel(9))])
            deleted = await admin.delete_features([group])
            assert dict(deleted.finalized) == {TRANSACTION: 4}
            assert (raised.epoch, deleted.epoch) == (1, 2)
            refused = await admin.delete([FeatureName("nothing")])
            assert [result.feature for result in refused.refused] == ["nothing"]
            assert (await admin.delete([FeatureName(TRANSACTION)])).refused == ()

    asyncio.run(work())


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "Y\nn\n"])
def test_the_early_draft_sends_nothing_without_two_yeses(early: DraftCluster, typed: str) -> None:
    """No, nothing, the end of the input, or a no to the second question: exit code 1, and the epoch
    is as it was (F-85)."""
    before = early.finalized()
    result = early(
        *("update", "--feature-upgrade", f"{GROUP}:2"),
        *("--feature-force-downgrade", f"{TRANSACTION}:3"),
        typed=typed,
    )
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith("nothing was sent, nothing is changed\n")
    assert early("delete", "--features", GROUP, typed="n\n").code == 1
    assert early.finalized() == before == (0, LEVELS)


@pytest.mark.form("document")
def test_the_early_drafts_struck_out_flags_and_failures(early: DraftCluster) -> None:
    """--features with a comma list and one --force-downgrade; a failure is the first failed item's,
    or a deletion's, in one line, and changes nothing (F-52, F-74, F-75, F-80)."""
    both = f"{GROUP}:1,{TRANSACTION}:3"
    assert early("update", "--features", both, "--force-downgrade", "--yes").code == 0
    before = early.finalized()
    assert before == (1, {GROUP: 1, TRANSACTION: 3})
    result = early("update", "--feature-upgrade", f"{GROUP}:9", "--yes")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert GROUP in result.err
    result = early("delete", "--features", "unheard", "--yes")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("featurewatch: deletion is for garbage collection")
    assert early.finalized() == before


@pytest.mark.form("document")
def test_the_later_drafts_example(late: DraftCluster) -> None:
    """The same with the later draft's flags and keys: only downgrades and deletions ask, the epochs
    are 1 and 2; then enable-latest sets every feature to the controller's maximum, in one request
    and without a question (F-74, F-77, F-78, F-79, F-81, F-83, F-84, F-86, F-87, F-89)."""
    assert json.loads(late("describe").out) == document(LATE, LEVELS, 0, late.other, LATE_KEYS)
    result = late(
        *("update", "--upgrade", f"{GROUP}:2,{OFFSETS}:1"),
        *("--allow-downgrade", f"{TRANSACTION}:3"),
        typed="Y\n",
    )
    levels = {GROUP: 2, TRANSACTION: 3, OFFSETS: 1}
    assert result.code == 0, result
    assert json.loads(result.out) == document(LATE, levels, 1, late.controller, LATE_KEYS)
    assert result.err.splitlines() == [
        "Please confirm before downgrading the following features:",
        f"1. {TRANSACTION} from v4 (existing) to v3 (new)",
        "",
        "[Y/n]? ",
    ]
    result = late("delete", "--features", f"{GROUP},{TRANSACTION}", typed="Y\n")
    assert json.loads(result.out) == document(LATE, {OFFSETS: 1}, 2, late.controller, LATE_KEYS)
    assert "Please confirm deletion of the following finalized features:" in result.err

    # Two features come back, one that is at its maximum already is in the way of the third draft's
    # rule that a level changes: so it is taken away first.
    assert late("delete", "--features", OFFSETS, "--yes").code == 0
    result = late("enable-latest")
    assert (result.code, result.err) == (0, ""), result
    newest = {name: high for name, (_, high) in LATE.items()}
    assert late.finalized() == (4, newest)
    refused = late("update", "--upgrade", f"{TRANSACTION}:9")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert TRANSACTION in refused.err


def test_a_cluster_of_a_draft_is_recognized(late: DraftCluster, ours: OurCommand) -> None:
    """Asked as released Kafka, it has no UpdateFeatures, and --dialect is offered."""
    result = ours("upgrade", "--feature", "a=1", "--bootstrap-server", late.controller)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "pass --dialect" in result.err


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OurCommand:
    """The command without a draft."""
    return OurCommand(monkeypatch, capsys)
