"""A watched cluster in ZooKeeper mode: an ensemble behind the proxy, and the reference system."""

import itertools
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

from featurewatch.stack.java.jars import tool_command
from featurewatch.stack.kafka.specs import KAFKA_WITH_ZOOKEEPER
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.reference_nodes import ReferenceProcess, reference_nodes
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from featurewatch.streams.types import UpgradeType
from tests.faults.proxy import Proxy
from tests.faults.servers import Servers
from tests.faults.stack import Stack
from tests.faults.traffic import FLIPPED, MARKER, set_level
from tests.faults.verdict import Level, Value
from tests.process_logs import started

ENSEMBLE_LINKS: Final = ("ensemble-1", "ensemble-2", "ensemble-3")
_ROOT: Final = "/faults"
_LENGTH_CHARACTERS: Final = 6
_TOOL: Final = "org.apache.zookeeper.server.persistence.TxnLogToolkit"


@dataclass(frozen=True)
class WatchedEnsemble:
    """Three servers and one node of the reference system on them.

    ``connect`` is the connect string that featurewatch is given.
    """

    ensemble: Ensemble
    reference: ReferenceProcess
    connect: str
    cluster_id: str


@contextmanager
def running_ensemble(directory: Path, proxy: Proxy) -> Iterator[WatchedEnsemble]:
    """The servers and the node, running."""
    with started(Ensemble(directory / "ensemble", EnsembleSpec(3), temporary=True)) as ensemble:
        addresses = ensemble.connect_string.split(",")
        proxied = [
            f"{LOOPBACK}:{proxy.listen(link, 0, int(address.rpartition(':')[2]))}"
            for link, address in zip(ENSEMBLE_LINKS, addresses, strict=True)
        ]
        features = [f"{name}=1-{top}" for name, top in (*FLIPPED, MARKER)]
        (node,) = reference_nodes(
            1,
            directory,
            ensemble.connect_string + _ROOT,
            ("--features", *features, "--session-timeout", "4"),
            temporary=True,
        )
        node.start()
        try:
            zk = KazooClient(ensemble.connect_string)
            zk.start()
            cluster = json.loads(zk.get(f"{_ROOT}/cluster/id")[0])["id"]
            zk.stop()
            zk.close()
            yield WatchedEnsemble(ensemble, node, ",".join(proxied) + _ROOT, cluster)
        finally:
            node.kill()


class EnsembleStack(Stack):
    """Source and worker; the truth is what ZooKeeper's own tool reads from its log."""

    def __init__(
        self,
        servers: Servers,
        directory: Path,
        environment: Mapping[str, str],
        watched: WatchedEnsemble,
    ) -> None:
        self.ensemble = watched.ensemble
        self.reference = watched.reference
        self._watched = watched
        super().__init__(servers, directory, environment)
        # ZooKeeper shows no history: a source that starts now reads the newest state.
        self._first = max(self._states(), default=0)

    @property
    def cluster_id(self) -> str:
        """The id in ZooKeeper."""
        return self._watched.cluster_id

    @property
    def watched(self) -> list[str]:
        """The servers, by the proxy."""
        return ["--zookeeper", self._watched.connect]

    def set_level(self, feature: str, level: int) -> bool:
        """Asks the reference system's controller."""
        addresses = [self.reference.address] if self.reference.address else []
        return set_level(addresses, feature, level, UpgradeType.SAFE_DOWNGRADE)

    def truth(self) -> list[Level]:
        """The changes between all states of the features znode that were not reported as missed.

        A watch shows the newest state and not each: what featurewatch says that it has missed is
        not lost.
        """
        read = {version: one for version, one in self._states().items() if version >= self._first}
        return changes_between(read, missed_versions(self.reader.outputs.alerts))

    def _states(self) -> dict[int, dict[str, int]]:
        """The levels in each version of the features znode."""
        server = self.ensemble.servers[0]
        logs = {int(file.suffix[1:], 16): file for file in server.directory.rglob("log.*")}
        states: list[dict[str, int]] = []
        for _, log in sorted(logs.items()):
            command = tool_command(KAFKA_WITH_ZOOKEEPER, _TOOL, "-d", str(log))
            done = subprocess.run(command, capture_output=True, check=True)
            states += levels_in(done.stdout.decode(errors="replace"))
        return dict(enumerate(states))


def levels_in(text: str) -> Iterator[dict[str, int]]:
    """The levels in each write of the features znode, from the text of TxnLogToolkit."""
    for line in text.split("\n"):
        # In a multi, four bytes of a length are between the path and the data.
        _, found, rest = line.rpartition(f"{_ROOT}/feature")
        start = rest.find('{"version"')
        if not found or not 0 < start <= _LENGTH_CHARACTERS:
            continue
        content: dict[str, Any] = json.JSONDecoder().raw_decode(rest[start:])[0]
        features = content.get("features", {})
        yield {name: level["max_version_level"] for name, level in features.items()}


def changes_between(states: Mapping[int, Mapping[str, int]], missed: Iterable[int]) -> list[Level]:
    """The changes from each state to the next, without those that were missed."""
    skipped = set(missed)
    shown = [state for version, state in sorted(states.items()) if version not in skipped]
    return [
        (name, after.get(name, 0))
        for before, after in itertools.pairwise([{}, *shown])
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def missed_versions(alerts: Iterable[Value]) -> set[int]:
    """The versions of the features znode that alerts report as missed."""
    return {
        version
        for alert in alerts
        if alert["rule"] == "znode-missed" and alert["subject"].get("znode") == "/feature"
        for version in range(
            alert["evidence"]["version"] - alert["evidence"]["missed"],
            alert["evidence"]["version"],
        )
    }
