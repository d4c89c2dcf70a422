"""Measures speed and memory, each against a peer or a bare loop in the same run.

``python -m tests.bench [--write] [NAME …]`` prints one JSON object a measure on stdout; without
names all of `BENCHES` are taken, and ``--write`` puts the figures into docs/reference/bench.md.
A bench that lacks what it needs here, such as Chromium, is skipped: its object has the reason. One
that fails does not end the others, but the run fails.
"""

import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import orjson

from featurewatch.pipeline.errors import SparkMissingError
from featurewatch.stack.errors import ArtifactError, JavaError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.streams.bus.settings import BusSettings
from tests.bench.document import write
from tests.bench.requirements import MissingRequirementError

Measures = Iterator[dict[str, Any]]


def on_a_bus(measures: Callable[[BusSettings, Path], Measures], partitions: int = 1) -> Measures:
    """Measures with a separate bus, which ends with them."""
    yield from on_a_cluster(lambda bus, directory, _: measures(bus, directory), partitions)


def on_a_cluster(
    measures: Callable[[BusSettings, Path, Cluster], Measures], partitions: int
) -> Measures:
    """`on_a_bus` for measures that stop and start the bus."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        with Cluster(single_bus(), directory / "bus", temporary=True) as bus:
            settings = BusSettings(
                bus.bootstrap_servers,
                prefix=f"bench-{time.time_ns()}",
                partitions=partitions,
                replication_factor=1,
            )
            yield from measures(settings, directory, bus)


def _module(name: str) -> Any:
    """Imports a bench when it is its turn: what another one needs may be missing."""
    return import_module(f"tests.bench.{name}")


BENCHES: dict[str, Callable[[], Measures]] = {
    "decode": lambda: _module("decode").run(),
    "event-cost": lambda: iter([_module("event_cost").measure()]),
    "hostile": lambda: iter([_module("hostile").measure()]),
    "hostile-memory": lambda: on_a_bus(_module("hostile").memory, partitions=8),
    "worker": lambda: on_a_bus(lambda bus, _: _module("worker").run(bus)),
    "operations": lambda: on_a_bus(lambda bus, _: _module("operations").fold(bus)),
    "operations-memory": lambda: on_a_bus(_module("operations").memory, partitions=8),
    "latency": lambda: on_a_bus(lambda bus, _: _module("latency").run(bus), partitions=8),
    "restart": lambda: on_a_bus(_module("restart").run, partitions=8),
    "outage": lambda: on_a_cluster(_module("outage").run, partitions=8),
    "zookeeper": lambda: _module("zookeeper").first_image(),
    "znode-change": lambda: on_a_bus(
        lambda bus, _: _module("zookeeper").change_to_alert(bus), partitions=8
    ),
    "readiness": lambda: _module("readiness").run(),
    "conformance": lambda: _module("conformance").run(),
    "conformance-partitions": lambda: _module("conformance").partitions(),
    "conformance-raft": lambda: _module("conformance").raft(),
    "reference": lambda: _module("reference").run(),
    "controller-failover": lambda: _module("controller").failover(),
    "controller-changes": lambda: _module("controller").changes(),
    "kraft-commits": lambda: _module("kraft").commits(),
    "kraft-failover": lambda: _module("kraft").failover(),
    "kraft-start": lambda: _module("kraft").start(),
    "unavailability-kraft": lambda: _module("kraft_unavailability").run(),
    "unavailability": lambda: _module("unavailability").run(),
    "features": lambda: _module("features").run(),
    "releases": lambda: _module("releases").run(),
    "topics": lambda: _module("topics").run(),
    "upgrade": lambda: _module("upgrade").run(),
    "quorum": lambda: _module("quorum").run(),
    "startup": lambda: _module("startup").run(),
    "client": lambda: _module("client").light(),
    "client-latency": lambda: on_a_bus(lambda bus, _: _module("client").latency(bus)),
    "page": lambda: on_a_bus(_module("page").run, partitions=8),
    "roll-picture": lambda: _module("roll_picture").run(),
    "pipeline": lambda: _module("pipeline").run(),
    "pipeline-message": lambda: iter([_module("message_cost").measure()]),
    "replay": lambda: _module("replay").run(),
    "history": lambda: _module("history").run(),
    "audit": lambda: _module("audit").run(),
    "growth": lambda: _module("growth").run(),
    "thirty-days": lambda: on_a_bus(_module("thirty_days").run, partitions=2),
    "backfill": lambda: on_a_bus(_module("backfill").run, partitions=2),
    "executors": lambda: _module("executors").run(),
    "web": lambda: _module("web").not_modified(),
    "web-clients": lambda: on_a_bus(lambda bus, _: _module("web").followed(bus), partitions=8),
}
"""The benches by name, in the order in which they are taken."""

_MISSING: Final = (MissingRequirementError, SparkMissingError, JavaError, ArtifactError)


def main(arguments: list[str]) -> int:
    """Takes the named measures, or all; 1 if one fails, 2 if there is no such name."""
    names = [name for name in arguments if name != "--write"]
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.stderr.write(f"no such bench: {', '.join(unknown)}; there are {', '.join(BENCHES)}\n")
        return 2
    failed = False
    for name in names or BENCHES:
        sys.stderr.write(f"measuring: {name}\n")
        try:
            for measure in BENCHES[name]():
                _print(measure)
                # At once: a whole run takes more than an hour, and may be interrupted.
                if "--write" in arguments and not _written(measure):
                    failed = True
        except _MISSING as error:
            _print({"skipped": name, "reason": str(error)})
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and not _is_ours(error.name or ""):
                _print({"skipped": name, "reason": f"the package {error.name} is not installed"})
            else:
                traceback.print_exc()
                failed = True
    return int(failed)


def _written(measure: dict[str, Any]) -> bool:
    """Puts a figure into the page; one without a row is named, and does not end the others."""
    try:
        write([measure])
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return False
    return True


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("featurewatch", "scripts", "tests")


def _print(measure: dict[str, Any]) -> None:
    print(orjson.dumps(measure).decode(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
