"""Level 0 of the early draft's features znode, as a user sees it: from a real ZooKeeper through the
topics, the page's API, the metrics and the commands to gold and its audit.
"""

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import orjson
import pytest
from kazoo.client import KazooClient

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.zookeeper.paths import CLUSTER_ID
from tests.cli.commands import featurewatch
from tests.integration.published import PublishedOutputs
from tests.integration.zookeeper.support import chroot, writer
from tests.processes import Process, free_port

pytestmark = pytest.mark.stack

CLUSTER = "early-draft"
CHANGES = [
    ("finalized", 0, 0, 1),
    ("upgraded", 0, 2, 2),
    ("downgraded", 2, 0, 3),
    ("removed", 0, 0, 4),
    ("finalized", 0, 0, 5),
]
"""Kind, before, after and revision of what `write` is made to do below."""


def draft(epoch: int, **levels: int) -> bytes:
    """``/features`` as the early draft has it."""
    features = {name: {"version": level} for name, level in levels.items()}
    return orjson.dumps({"version": 0, "data": {"epoch": epoch, "features": features}})


def make_cluster(zk: KazooClient, root: str) -> None:
    """The znodes of a broker that supports a feature from 0 on, and of one that lacks it."""
    zk.create(root + CLUSTER_ID, orjson.dumps({"version": "1", "id": CLUSTER}), makepath=True)
    zk.ensure_path(f"{root}/brokers/ids")
    supported: list[dict[str, Any]] = [{"group": {"minVersion": 0, "maxVersion": 2}}, {}]
    for node_id, features in enumerate(supported, 1):
        content = {"version": 5, "endpoints": ["PLAINTEXT://a:1"], "timestamp": "1", "rack": None}
        zk.create(f"{root}/brokers/ids/{node_id}", orjson.dumps({**content, "features": features}))
    zk.create(f"{root}/features", draft(0, group=0))


class Watch:
    """An `up` on the cluster, and commands on its topics."""

    def __init__(self, published: PublishedOutputs, directory: Path, zookeeper: str) -> None:
        self.published = published
        self._directory = directory
        self.lake = str(directory / "lake")
        self._page, self._worker = free_port(), free_port()
        ports = {"PAGE": self._page, "WORKER": self._worker, "SOURCE": free_port()}
        self.up = Process(
            "up",
            ["up", "--json", "--zookeeper", zookeeper, *published.flags],
            directory,
            {f"FEATUREWATCH_WEB__{name}_PORT": str(port) for name, port in ports.items()},
        )

    def until(self, revision: int, finalized: dict[str, int]) -> None:
        """Waits for a revision with these levels."""
        state = self.published.state(
            CLUSTER, lambda now, _: now.ready and now.revision == revision, [self.up]
        )
        assert dict(state.finalized) == finalized

    def run(self, *arguments: str, timeout_s: float = 900) -> CompletedProcess[str]:
        """A command that ends well."""
        done = featurewatch(self._directory, *arguments, timeout_s=timeout_s)
        assert done.returncode in (0, 3, 4), (arguments, done.stdout, done.stderr)
        return done

    def on_bus(self, *arguments: str) -> list[dict[str, Any]]:
        """The documents that a command on the topics prints."""
        lines = self.run(*arguments, "--json", *self.published.flags).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def on_lake(self, *arguments: str) -> list[dict[str, Any]]:
        """The documents that a command on the lake prints."""
        lines = self.run(*arguments, "--lake", self.lake, "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def api(self, path: str) -> Any:
        """A resource of the page."""
        return json.loads(self._get(self._page, f"/api/v1{path}"))

    def metrics(self) -> str:
        """The worker's."""
        return self._get(self._worker, "/metrics")

    @staticmethod
    def _get(port: int, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
            return str(response.read(), "utf-8")


def changes(documents: list[dict[str, Any]]) -> list[tuple[str, int, int, int]]:
    """Kind, before, after and revision, in order."""
    rows = [(it["kind"], it["before"], it["after"], it["revision"]) for it in documents]
    return sorted(rows, key=lambda row: row[3])


@pytest.fixture
def watch(ensemble: Ensemble, bus: Cluster, tmp_path: Path) -> Iterator[Watch]:
    """A watched cluster whose feature was finalized, changed and removed."""
    root = chroot()
    published = PublishedOutputs(bus, f"level-0-{time.time_ns()}")
    watch = Watch(published, tmp_path, ensemble.connect_string + root)
    with writer(ensemble.connect_string) as zk:
        make_cluster(zk, root)
        watch.up.start()
        try:
            watch.until(1, {"group": 0})
            steps: list[dict[str, int]] = [{"group": 2}, {"group": 0}, {}, {"group": 0}]
            for revision, levels in enumerate(steps, 2):
                zk.set(f"{root}/features", draft(revision, **levels))
                watch.until(revision, levels)
            yield watch
        finally:
            watch.up.kill()


@pytest.mark.form("document")
def test_level_0_is_finalized_from_the_znode_to_the_page(watch: Watch) -> None:
    """F-03: a feature finalized at 0 is another thing than one that is not finalized, for the
    topics, the commands on them, the page and the metrics."""
    assert changes(watch.on_bus("changes")) == CHANGES
    assert [it["finalized"] for it in watch.on_bus("epochs")] == [
        *({"group": 0}, {"group": 2}, {"group": 0}, {}, {"group": 0})
    ]
    (state,) = [it for it in watch.on_bus("state") if "finalized" in it]
    assert (state["finalized"], state["epoch"]) == ({"group": 0}, 4)
    assert [(it["node_id"], it["level"]) for it in state["incompatible"]] == [(2, 0)]
    (report,) = watch.on_bus("readiness")
    assert [(it["finalized"], it.get("is_finalized")) for it in report["features"]] == [(0, True)]
    assert watch.published.firing(CLUSTER) == {"missing-feature"}
    labels = f'feature="group",kafka_cluster="{CLUSTER}"'
    metrics = watch.metrics()
    assert f"featurewatch_finalized_level{{{labels}}} 0.0" in metrics
    assert f"featurewatch_finalized_at_zero{{{labels}}} 1.0" in metrics
    level = {"feature": "group", "level": 0, "name": "0"}
    assert watch.api(f"/clusters/{CLUSTER}")["levels"] == [level]
    assert changes(watch.api(f"/clusters/{CLUSTER}/changes")["items"]) == CHANGES
    differences = watch.api(f"/clusters/{CLUSTER}/differences?from=4&to=5")
    assert [(it["before_name"], it["after_name"]) for it in differences["levels"]] == [("off", "0")]


@pytest.mark.form("document")
@pytest.mark.nightly
def test_level_0_is_finalized_in_the_lake(watch: Watch) -> None:
    """F-03: gold and the commands on it tell both apart, too, and the audit finds no difference
    from what was published."""
    from deltalake import DeltaTable

    watch.run("pipeline", "run", "--once", *watch.published.flags, "--lake", watch.lake)
    table = DeltaTable(f"{watch.lake}/gold/feature_changes").to_pyarrow_table()
    assert changes(table.to_pylist()) == CHANGES
    (shown,) = watch.on_lake("history", "show", "--cluster", CLUSTER, "--revision", "3")
    assert shown["levels"] == {"group": 0}
    (found,) = watch.on_lake("history", "diff", "revision:3", "revision:4", "--cluster", CLUSTER)
    assert [(it["before"], it["after"], it["kind"]) for it in found["levels"]] == [
        (0, 0, "removed")
    ]
    *_, audit = watch.on_lake("pipeline", "audit")
    assert audit["verdicts"]["equal"] >= len(CHANGES), audit
    assert not audit["has_differences"], audit
    assert audit["is_conclusive"], audit
