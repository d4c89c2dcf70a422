"""The long run: ``python -m tests.soak [--minutes 60] [--seed 1] [--json]``.

A real cluster whose nodes restart, levels that change, clients of the page that come and go, alerts
that fire and resolve, and a bus that is unavailable now and then; source, worker and page run
through all of it. Printed is what grew in each process and on the bus, at the end of the warm-up
and at the end of the run, and its slope. Ends with 1 if something grew by more than `BOUNDS`, if
a process ended, or if an output is missing.
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from tests.faults.servers import QUORUM_LINKS, running_servers
from tests.faults.stack import Stack
from tests.faults.traffic import Traffic
from tests.processes import Process
from tests.soak.samples import Growth, Sample, beyond, growth_of, sample

BOUNDS: Final = {"rss_mb": 20.0, "descriptors": 10.0, "threads": 4.0, "tasks": 20.0}
"""The growth of each process that is accepted, an hour."""

_SAMPLE_S: Final = 5.0
_QUIET_S: Final = (3.0, 12.0)
"""The seconds between two disturbances."""
_LAST_S: Final = 120.0
"""How long the outputs may take to be whole after the end."""


class SoakStack(Stack):
    """The faults' stack with a page, each process of which counts its tasks."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.page = self.add("page", "worker", ["web"])
        self.serving.append(self.page)

    def add(self, name: str, user: str, arguments: list[str]) -> Process:
        """A process that is started by `tests.soak.counted`."""
        process = super().add(name, user, arguments)
        process.run_as(("-m", "tests.soak.counted"))
        process.environment["SOAK_TASKS"] = str(self.counted(process))
        return process

    def counted(self, process: Process) -> Path:
        """The file with the number of a process's tasks."""
        return self.directory / f"{process.name}.tasks"


class Disturber:
    """Disturbs a stack in a thread, at random, until the block has ended."""

    def __init__(self, stack: SoakStack, seed: int) -> None:
        self._stack = stack
        self._chance = random.Random(seed)
        self._stop = threading.Event()
        self.counts: dict[str, int] = {}
        self._acts: tuple[Callable[[], None], ...] = (
            self._restart_node,
            self._cut_controllers,
            self._cut_bus,
            self._visit_page,
            self._visit_page,
        )

    @contextmanager
    def running(self) -> Iterator["Disturber"]:
        """Disturbs as long as the block; everything works again at its end."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._chance.uniform(*_QUIET_S)):
            act = self._chance.choice(self._acts)
            name = act.__name__.strip("_")
            self.counts[name] = self.counts.get(name, 0) + 1
            act()

    def _restart_node(self) -> None:
        node = self._chance.choice(self._stack.quorum.nodes)
        node.kill()
        self._stop.wait(self._chance.uniform(0, 8))
        node.start()

    def _cut_controllers(self) -> None:
        self._cut(QUORUM_LINKS, 8.0)

    def _cut_bus(self) -> None:
        self._cut((self._chance.choice(("source-bus", "worker-bus")),), 15.0)

    def _cut(self, links: tuple[str, ...], longest_s: float) -> None:
        for link in links:
            self._stack.proxy.set_mode(link, "cut")
        self._stop.wait(self._chance.uniform(1, longest_s))
        for link in links:
            self._stack.proxy.set_mode(link, "pass")

    def _visit_page(self) -> None:
        """Twenty clients read the page, its API and the event stream, and leave without a word."""
        for path in ("/", "/api/v1/clusters", "/api/v1/alerts", "/api/v1/events") * 5:
            connection = HTTPConnection("127.0.0.1", self._stack.page.port, timeout=2)
            with suppress(OSError, HTTPException):
                connection.request("GET", path)
                connection.getresponse().read(512)
            connection.close()


def soak(
    minutes: float, seed: int, report: Callable[[str], None]
) -> tuple[list[Growth], list[str]]:
    """Returns what grew, and what went wrong."""
    samples: dict[str, list[Sample]] = {}
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        with running_servers(directory / "servers") as servers:
            stack = SoakStack(servers, directory, {})
            with stack.running():
                start_s = time.monotonic()
                with Traffic(stack.set_level, seed), Disturber(stack, seed).running() as disturber:
                    while time.monotonic() < start_s + minutes * 60:
                        time.sleep(_SAMPLE_S)
                        at_s = time.monotonic() - start_s
                        for each, counts in _counts(stack):
                            samples.setdefault(each, []).append(Sample(at_s, counts))
                report(f"disturbances: {disturber.counts}")
                truth = stack.truth()
                stack.wait_outputs(truth, _LAST_S)
                outputs = stack.reader.outputs
                wrong = list(stack.ends)
                levels = {feature: level for feature, level in dict(truth).items() if level}
                if outputs.state is None or dict(outputs.state["finalized"]) != levels:
                    wrong.append(f"the state is {outputs.state}, and the levels are {levels}")
    growths = [each for name, of in samples.items() for each in growth_of(name, of)]
    return growths, wrong


def _counts(stack: SoakStack) -> Iterator[tuple[str, dict[str, float]]]:
    for process in stack.processes:
        yield process.name, sample(process.pid, process.log, stack.counted(process))
    sizes: dict[str, float] = {}
    for directory in stack.bus.nodes[0].data.glob(f"{stack.prefix}.*-[0-9]*"):
        topic = directory.name.removeprefix(f"{stack.prefix}.").rpartition("-")[0]
        with suppress(OSError):
            size = sum(file.stat().st_size for file in directory.glob("*.log"))
            sizes[topic] = sizes.get(topic, 0) + size / 1e6
    yield "bus", {f"{topic} MB": size for topic, size in sizes.items()}


def table(growths: list[Growth]) -> str:
    """The growths as lines of a table."""
    lines = [f"{'':10} {'':28} {'first':>10} {'last':>10} {'an hour':>10}"]
    lines += [
        f"{each.name:10} {each.what:28} {each.first:10.1f} {each.last:10.1f} {each.per_hour:10.1f}"
        for each in growths
    ]
    return "\n".join(lines)


def main() -> int:
    """Runs, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--seed", type=int, default=1, help="of disturbances and levels (1)")
    parser.add_argument("--json", action="store_true", help="a JSON document for each growth")
    options = parser.parse_args()
    growths, wrong = soak(options.minutes, options.seed, _report)
    documents = [json.dumps(each._asdict()) for each in growths]
    sys.stdout.write("\n".join(documents) + "\n" if options.json else table(growths) + "\n")
    wrong += [
        f"{each.name}: {each.what} grows by {each.per_hour:.1f} an hour"
        for each in beyond(growths, BOUNDS)
    ]
    for line in wrong:
        _report(line)
    return int(bool(wrong))


def _report(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
