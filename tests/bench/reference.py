"""``reference_updates_per_s``: feature updates through the reference controller, over the wire.

The baseline is what is left of an update without all that: conditional writes of such a znode, one
after the other, with kazoo. Both run against the same ensemble of three servers, in turns. Four
connections ask at once, each for its own feature, as a server's rate is measured: the controller
takes one update after the other all the same, writes it, and reads it back before it answers. The
requests are made before the time is taken, and the answers looked at after it.
"""

import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

from featurewatch.kafka.connection import request_frame
from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.messages import UpdateFeaturesRequestV1, UpdateFeaturesResponseV1
from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.stack.zookeeper.specs import EnsembleSpec
from tests.reference.zookeeper.process import reference_process

CLIENTS: Final = 4
UPDATES: Final = 250
"""Of each client in a round."""
ROUNDS: Final = 8
TIMEOUT_S: Final = 30.0
_HIGHEST: Final = 30_000
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


class Client:
    """Raises one feature level by level, over its own connection."""

    def __init__(self, address: str, feature: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")
        self._feature = feature
        self._level = 1
        self.send(self._request(_SAFE_DOWNGRADE))
        check(self.receive())

    def requests(self, count: int) -> list[bytes]:
        """The next so many, each a level higher."""
        made = []
        for _ in range(count):
            self._level += 1
            made.append(self._request(_UPGRADE))
        return made

    def send(self, request: bytes) -> None:
        """Ask."""
        self._socket.sendall(request)

    def receive(self) -> bytes:
        """The answer, without its length."""
        (size,) = struct.unpack(">i", self._answers.read(4))
        return self._answers.read(size)

    def close(self) -> None:
        """Hang up."""
        self._answers.close()
        self._socket.close()

    def _request(self, how: int) -> bytes:
        update = UpdateFeaturesRequestV1.FeatureUpdateKey(
            feature=self._feature, max_version_level=self._level, upgrade_type=how
        )
        return request_frame(UpdateFeaturesRequestV1(feature_updates=(update,)), 0, "bench")


def check(answer: bytes) -> None:
    """That an update was accepted."""
    # The correlation id, and no tags.
    response, _ = read_entity(UpdateFeaturesResponseV1, answer, 5)
    errors = [response.error_code, *(result.error_code for result in response.results)]
    assert not any(errors), response


def run() -> Iterator[dict[str, Any]]:
    """Takes the measure on a separate ensemble."""
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
        clients = [Client(address, name) for name in names]
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


def _rate_of(clients: list[Client]) -> float:
    requests = [client.requests(UPDATES) for client in clients]
    answers = []
    started = time.perf_counter()
    for client, mine in zip(clients, requests, strict=True):
        client.send(mine[0])
    for number in range(UPDATES):
        for client, mine in zip(clients, requests, strict=True):
            answers.append(client.receive())
            if number + 1 < UPDATES:
                client.send(mine[number + 1])
    seconds = time.perf_counter() - started
    for answer in answers:
        check(answer)
    return len(answers) / seconds
