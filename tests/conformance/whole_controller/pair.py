"""Kafka's controller and ours on one ZooKeeper server, which perform the same steps."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import zookeeper_mode
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conformance.whole_controller.actions import Step, list_reassignments, start_brokers
from tests.conformance.whole_controller.cluster import BROKERS, CONTROLLER, DrivenCluster
from tests.conformance.whole_controller.compare import differences
from tests.conformance.whole_controller.znode_log import ZnodeLog
from tests.process_logs import started
from tests.reference.zookeeper.process import reference_process

QUIET_S: Final = 0.3
"""A step is over when both have done the same and nothing else happens for this long."""
STEP_S: Final = 15.0
_SESSION_S: Final = 30
"""Neither controller loses its session on a busy machine."""
_PROPERTIES: Final = {
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "zookeeper.session.timeout.ms": str(_SESSION_S * 1000),
}
_OPTIONS: Final = (
    "--control-topics",
    *("--node-id", str(CONTROLLER), "--controller-ids", str(CONTROLLER)),
    *("--balance-interval", "0", "--session-timeout", str(_SESSION_S)),
)


class Pair:
    """Both controllers, which perform each step at the same time."""

    def __init__(self, kafka: DrivenCluster, ours: DrivenCluster, log: ZnodeLog) -> None:
        self.kafka, self.ours = kafka, ours
        self._log = log

    async def perform(self, step: Step) -> list[str]:
        """The differences between what both did in a step."""
        both = (self.kafka, self.ours)
        self._activity()
        for cluster in both:
            cluster.begin_step()
        results = await asyncio.gather(*(step.action(cluster) for cluster in both))
        for cluster, result in zip(both, results, strict=True):
            cluster.result = result
        # Goes through a controller's queue, so it has performed by then what it knew of before.
        await asyncio.gather(*(list_reassignments()(cluster) for cluster in both))
        end = time.monotonic() + STEP_S
        activity, quiet_since = self._activity(), time.monotonic()
        while True:
            await asyncio.sleep(0.02)
            now = time.monotonic()
            if activity != (latest := self._activity()):
                activity, quiet_since = latest, now
            found = differences(self.kafka.observe(), self.ours.observe())
            if not found and now - quiet_since > QUIET_S:
                return self._idleness(step)
            if now > end:
                return found

    def _idleness(self, step: Step) -> list[str]:
        """A line if a script does not cause what it is there for."""
        seen = self.kafka.observe()
        is_idle = not seen.writes and not any(seen.requests.values())
        if is_idle == step.is_idle:
            return []
        return [f"both do {'nothing' if is_idle else 'something'}; response: {seen.result}"]

    def _activity(self) -> Any:
        for write in self._log.read():
            for cluster in (self.kafka, self.ours):
                cluster.add_write(write)
        return self.kafka.activity, self.ours.activity


@contextmanager
def running_pair(runner: asyncio.Runner, cache: Cache, directory: Path) -> Iterator[Pair]:
    """Both controllers, elected, and brokers that have started."""
    with ExitStack() as stack:
        ensemble = Ensemble(directory / "zookeeper", cache=cache, temporary=True)
        server = stack.enter_context(started(ensemble)).server(1)
        chroots = {name: f"{server.address}/{name}" for name in ("kafka", "ours")}
        ours = stack.enter_context(reference_process(chroots["ours"], *_OPTIONS))
        spec = zookeeper_mode(1, chroots["kafka"], properties=_PROPERTIES)
        kafka = stack.enter_context(
            started(Cluster(spec, directory / "kafka", cache=cache, temporary=True))
        )
        clusters = (
            DrivenCluster(chroots["kafka"], kafka.bootstrap_servers),
            DrivenCluster(chroots["ours"], ours.ready()[CONTROLLER]),
        )
        for cluster in clusters:
            stack.callback(_close, runner, cluster)
            runner.run(cluster.start())
        pair = Pair(*clusters, ZnodeLog(server.directory / "data"))
        found = runner.run(pair.perform(Step("brokers start", start_brokers(*BROKERS))))
        assert not found, "\n".join(found)
        yield pair


def _close(runner: asyncio.Runner, cluster: DrivenCluster) -> None:
    runner.run(cluster.close())
