"""``reference_updates_per_s``: feature updates through the reference controller, over the wire.

The baseline is what is left of an update without all that: conditional writes of such a znode, one
after the other, with kazoo. Both run against the same ensemble of three servers. Some clients ask
at once, each for its own feature, as a server's rate is measured: the controller takes one update
after the other all the same, writes it, and reads it back before it answers.
"""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v1.response import MetadataResponse
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v1.response import UpdateFeaturesResponse
from kio.static.primitive import i8, i16

from deploy.ensemble_specs import EnsembleSpec
from deploy.wire import Connection
from deploy.zookeeper import Ensemble
from tests.reference.process import reference_process

CLIENTS: Final = 4
UPDATES: Final = 250
"""Of each client in a round."""
ROUNDS: Final = 8
_HIGHEST: Final = 30_000
_UPGRADE, _SAFE_DOWNGRADE = i8(1), i8(2)


class Client:
    """Raises one feature level by level."""

    def __init__(self, connection: Connection, feature: str) -> None:
        self._connection = connection
        self._feature = feature
        self._level = 1
        self._set(_SAFE_DOWNGRADE)

    def updates(self, count: int) -> None:
        """That many updates, each of them accepted."""
        for _ in range(count):
            self._level += 1
            self._set(_UPGRADE)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _set(self, how: i8) -> None:
        update = FeatureUpdateKey(
            feature=self._feature, max_version_level=i16(self._level), upgrade_type=how
        )
        answer = self._connection.ask(
            UpdateFeaturesRequest(feature_updates=(update,)), UpdateFeaturesResponse
        )
        errors = [answer.error_code, *(result.error_code for result in answer.results)]
        assert all(code is ErrorCode.none for code in errors), answer


def run() -> Iterator[dict[str, Any]]:
    """Takes the measure on an ensemble of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as name,
        Ensemble(Path(name) / "ensemble", EnsembleSpec(3), temporary=True) as ensemble,
    ):
        yield measure(ensemble.connect_string)


def measure(connect: str) -> dict[str, Any]:
    """Updates a second against writes a second; the best round of each, taken in turns."""
    chroot = f"{connect}/bench-{time.time_ns()}"
    names = [f"bench.version.{number}" for number in range(CLIENTS)]
    features = [f"{name}=1-{_HIGHEST}" for name in names]
    with reference_process(chroot, features=features) as process:
        (address,) = process.ready().values()
        clients = [Client(_controller(address), name) for name in names]
        writer = Writer(chroot)
        rates = [(_rate_of(clients), writer.rate()) for _ in range(ROUNDS)]
        writer.close()
        for client in clients:
            client.close()
    value, baseline = (max(column) for column in zip(*rates, strict=True))
    return {
        "measure": "reference_updates_per_s",
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "ratio": round(value / baseline, 3),
    }


class Writer:
    """Writes a znode like the one of the finalized features, version by version."""

    def __init__(self, connect: str) -> None:
        self._client = KazooClient(connect)
        self._client.start()
        self._content, _ = self._client.get("/feature")
        self._client.create("/bare", self._content)
        self._version = 0

    def rate(self) -> float:
        """Writes a second, over as many as there are updates in a round."""
        count = CLIENTS * UPDATES
        started = time.perf_counter()
        for _ in range(count):
            self._version = self._client.set("/bare", self._content, self._version).version
        return count / (time.perf_counter() - started)

    def close(self) -> None:
        """End its session."""
        self._client.stop()
        self._client.close()


def _controller(address: str) -> Connection:
    host, port = address.rsplit(":", 1)
    with Connection(host, int(port)) as any_node:
        known = any_node.ask(MetadataRequest(topics=()), MetadataResponse)
    chosen = next(each for each in known.brokers if each.node_id == known.controller_id)
    return Connection(chosen.host, int(chosen.port))


def _rate_of(clients: list[Client]) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(len(clients)) as pool:
        for done in [pool.submit(client.updates, UPDATES) for client in clients]:
            done.result()
    return len(clients) * UPDATES / (time.perf_counter() - started)
