"""A person without opinions: does what ``featurewatch upgrade`` prints, and nothing else."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec
from tests.cli.commands import featurewatch
from tests.stack.traffic import Traffic
from tests.waiting import eventually

DEADLINE_S: Final = 1200.0
"""For what takes seconds on a machine that is free."""
TOPIC: Final = "orders"
PARTITIONS: Final = 3
ROLLING: Final = ("roll-controllers", "roll-brokers")
PATIENT: Final = {
    "broker.session.timeout.ms": "15000",
    "controller.quorum.fetch.timeout.ms": "8000",
    "controller.quorum.election.timeout.ms": "4000",
    "controller.quorum.request.timeout.ms": "8000",
}
"""Properties of nodes that a busy machine stops for seconds: their own timeouts would fence them,
and elect another controller, where nothing has failed."""


@dataclass
class LedUpgrade:
    """The upgrade of a running cluster to the patch ``release``, led by a plan in ``directory``.

    ``printed`` are the command lines that were run, each with what it printed.
    """

    cluster: Cluster
    directory: Path
    release: str
    settings: dict[str, Any] = field(default_factory=dict)
    printed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def at(self) -> tuple[str, ...]:
        """The options that name the cluster."""
        file = self.directory / "featurewatch.yaml"
        if self.settings and not file.exists():
            file.write_text(yaml.safe_dump(self.settings))
        return (
            *("--bootstrap-controller", self.cluster.controllers),
            *("--bootstrap-server", self.cluster.bootstrap_servers),
            *(("--config", str(file)) if self.settings else ()),
        )

    def run(
        self, line: str, *more: str, codes: tuple[int, ...] = (0, 3, 4)
    ) -> subprocess.CompletedProcess[str]:
        """Runs a printed command line with further options; it ends with one of these codes."""
        program, *arguments = shlex.split(line)
        assert program == "featurewatch", line
        done = featurewatch(self.directory, *arguments, *more, timeout_s=DEADLINE_S, COLUMNS="500")
        self.printed.append((shlex.join([program, *arguments, *more]), done.stdout))
        assert done.returncode in codes, f"{line}\n{done.stdout}{done.stderr}"
        return done

    def upgrade(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of ``featurewatch upgrade`` on the cluster."""
        return self.run(shlex.join(["featurewatch", "upgrade", *words, *self.at]))

    def plan(self, target: str, soak_s: float) -> dict[str, Any]:
        """Makes the plan; nothing may be in the way."""
        soak = f"{soak_s / 3600:.4f}"
        words = ("plan", "--target", target, "--soak-hours", soak, "--out", "plan.yaml")
        made = self.upgrade(*words)
        assert made.returncode == 0, made.stdout
        plan: dict[str, Any] = yaml.safe_load((self.directory / "plan.yaml").read_text())
        return plan

    def status(self) -> dict[str, Any]:
        """Where the upgrade is."""
        told = self.upgrade("status", "--plan", "plan.yaml", "--json")
        return _document(told, {"current": "prepare", "next_node": None, "complete": False})

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status for which it holds."""
        found: list[dict[str, Any]] = []

        def holds() -> bool:
            found.append(self.status())
            return condition(found[-1])

        assert eventually(holds, DEADLINE_S), found[-1]
        return found[-1]

    def check_restart(self, node: int, *more: str) -> dict[str, Any]:
        """Whether a node may be restarted, now."""
        asked = self.upgrade("check", "restart", "--node", str(node), "--json", *more)
        found = _document(asked, {})
        assert asked.returncode == {"yes": 0, "no": 3, "unknown": 4}[found["verdict"]]
        return found

    def refusals(self, *more: str) -> dict[str, str]:
        """Why `finalize` sends nothing: the checks that do not say yes, and their texts."""
        done = self.upgrade("finalize", "--plan", "plan.yaml", "--yes", "--json", *more)
        report = json.loads(done.stdout)
        assert (done.returncode, report["outcome"]) == (3, "not-sent"), report
        return {one["name"]: one["text"] for one in report["checks"] if one["verdict"] != "yes"}

    def finalize(self, status: dict[str, Any]) -> dict[str, Any]:
        """Runs the command that a status prints for the last step, and confirms it."""
        done = self.run(status["commands"][0], "--yes", "--json")
        return _document(done, {"outcome": "not-sent"})

    def restart(self, node: int, release: str, line: str = "") -> None:
        """Restarts a node on a release once the check, or the printed ``line``, allows that."""
        check = f"featurewatch upgrade check restart --node {node} --wait {shlex.join(self.at)}"
        allowed = self.run(line or check)
        assert allowed.returncode == 0, allowed.stdout
        self.cluster.node(node).stop()
        self.start(node, release)

    def start(self, node: int, release: str | None = None) -> None:
        """Starts a node; Kafka refuses no step, so it becomes ready."""
        self.cluster.node(node).start(release, timeout_s=DEADLINE_S)
        self.cluster.wait_ready(DEADLINE_S)

    def roll_next(self) -> int | None:
        """Restarts the node that is next, once the status says so; None: no node is left."""
        found = self.until(
            lambda one: (
                one["verdict"] == "yes"
                if one["current"] in ROLLING
                else one["current"] != "prepare"
            )
        )
        node: int | None = found["next_node"]
        if node is not None:
            self.restart(node, self.release, found["commands"][0])
        return node

    def roll(self) -> dict[str, Any]:
        """Restarts every node that is left, and returns the status afterwards."""
        while self.roll_next() is not None:
            pass
        return self.status()

    def complete(self) -> None:
        """Waits for the soak, finalizes, and sees that the upgrade is complete."""
        report = self.finalize(
            self.until(lambda one: one["current"] == "finalize" and one["verdict"] == "yes")
        )
        assert report["outcome"] == "finalized", report
        assert self.status()["complete"]


def _document(done: subprocess.CompletedProcess[str], otherwise: dict[str, Any]) -> dict[str, Any]:
    """What a command printed with ``--json``, with ``otherwise`` if the cluster was not read."""
    found: dict[str, Any] = json.loads(done.stdout)
    return {**otherwise, **found}


@contextmanager
def running(spec: ClusterSpec, directory: Path, cache: Cache) -> Iterator[Cluster]:
    """A cluster of nodes that may take long to start."""
    properties = {**PATIENT, **spec.properties}
    cluster = Cluster(replace(spec, properties=properties), directory, cache=cache, temporary=True)
    try:
        cluster.start(DEADLINE_S)
        yield cluster
    finally:
        cluster.close()


def traffic_of(cluster: Cluster) -> Traffic:
    """A producer with ``acks=all`` and a consumer, on a topic of three replicas."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
    for future in admin.create_topics([topic]).values():
        future.result()
    return Traffic(cluster.bootstrap_servers, TOPIC, PARTITIONS, 0.05, timeout_ms=600_000)


def assert_nothing_lost(traffic: Traffic) -> None:
    """Everything that was acknowledged is read, and nothing was refused."""
    traffic.end_writing()
    assert eventually(lambda: traffic.unread_count == 0, DEADLINE_S), traffic.unread_count
    assert traffic.errors == []
    assert traffic.acknowledged_count > 0


def age_s(text: str) -> float:
    """The first time span of a text, as `monitor.upgrade.checks.span` writes it, in seconds."""
    words = text.partition(" for ")[2].partition(" of ")[0].split()
    units = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
    pairs = zip(words[::2], words[1::2], strict=True)
    return float(sum(int(count) * units[unit] for count, unit in pairs))
