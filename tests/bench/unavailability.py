"""``unavailability``: how long a message with ``acks=all`` waits while brokers and controllers end.

The same steps are done to three brokers of Kafka 3.9.1 under our controllers, and to three under
Kafka's own: two more brokers, which host no replica, are its controllers, so that the death of one
is that of a controller alone. A producer and a consumer run throughout. The value is the longest
wait of a message in the step, and every acknowledged message must have been read in the end.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.java.jars import Cache, default_cache
from tests.conformance.kafka_tools import kafka_tools
from tests.paths import SRC
from tests.stack.controlled_cluster import TOPIC, ControlledCluster
from tests.stack.controlled_steps import PARTITIONS, RECOVERY_S, lose_broker, reassign
from tests.stack.traffic import Traffic
from tests.waiting import eventually

_STACK: Final = (sys.executable, "-c", "from featurewatch.cli.main import main; main()", "stack")
_OURS: Final = ("--controlled-brokers", "3")
_KAFKA: Final = ("--zookeeper-kafka", "5")
_KAFKA_CONTROLLERS: Final = (4, 5)
_LISTS: Final = "1:2,2:3,3:1,1:3"
_START_S: Final = 300.0
_PAUSE_S: Final = 0.002
"""Between two messages: no wait is known more exactly."""


def run() -> Iterator[dict[str, Any]]:
    """A measure for each step."""
    waits = [_measured(options) for options in (_OURS, _KAFKA)]
    for step, wait_s in waits[0].items():
        yield {
            "measure": f"unavailability_{step}",
            "value": round(wait_s, 2),
            "baseline": round(waits[1][step], 2),
            "unit": "s",
        }


def _measured(options: tuple[str, ...]) -> dict[str, float]:
    """The longest wait of a message in each step, in seconds."""
    waits: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        with _running(directory / "stack", options) as cluster:
            create = ("--create", "--topic", TOPIC, "--replica-assignment", _LISTS)
            cluster.tool("TopicCommand", *create)
            assert eventually(cluster.is_in_sync, RECOVERY_S)
            with Traffic(cluster.servers, TOPIC, PARTITIONS, _PAUSE_S) as traffic:
                assert eventually(lambda: traffic.acknowledged_count > 200, RECOVERY_S)
                for step, act in _steps(cluster, traffic, directory).items():
                    _move_controller(cluster, options)
                    traffic.longest_wait_s()
                    act()
                    assert eventually(cluster.is_in_sync, RECOVERY_S), step
                    waits[step] = traffic.longest_wait_s()
                traffic.end_writing()
                assert eventually(lambda: traffic.unread_count == 0, RECOVERY_S)
            assert not traffic.errors
            assert not traffic.order_errors()
    return waits


def _steps(
    cluster: ControlledCluster, traffic: Traffic, directory: Path
) -> dict[str, Callable[[], None]]:
    return {
        "broker_killed": lambda: lose_broker(cluster, "kill", 1, traffic),
        "broker_shut_down": lambda: lose_broker(cluster, "stop", 2, traffic),
        "partitions_reassigned": lambda: reassign(cluster, directory),
        "controller_killed": lambda: _lose_controller(cluster, traffic),
        "controller_and_broker_killed": lambda: _lose_controller(cluster, traffic, 3),
    }


def _lose_controller(
    cluster: ControlledCluster, traffic: Traffic, broker_id: int | None = None
) -> None:
    """Kills the controller, and a broker at once; starts them again when the next one works."""
    controller_id = cluster.controller()
    assert controller_id is not None
    name = f"controller-{controller_id - 100}" if controller_id > 100 else str(controller_id)
    cluster.node("kill", name)
    if broker_id is not None:
        lose_broker(cluster, "kill", broker_id, traffic)
    assert eventually(lambda: cluster.controller() not in (None, controller_id), RECOVERY_S)
    count = traffic.acknowledged_count
    assert eventually(lambda: traffic.acknowledged_count > count + 100, RECOVERY_S)
    cluster.node("start", name)


def _move_controller(cluster: ControlledCluster, options: tuple[str, ...]) -> None:
    """Elects until the controller is a node that hosts no replica."""
    if options == _OURS:
        return
    deadline = time.monotonic() + _START_S
    while (controller_id := cluster.controller()) not in _KAFKA_CONTROLLERS:
        assert time.monotonic() < deadline, "no other broker is elected"
        if controller_id is not None:
            cluster.zookeeper.delete("/controller")
        time.sleep(0.2)


@contextmanager
def _running(directory: Path, options: tuple[str, ...]) -> Iterator[ControlledCluster]:
    cache = Cache(default_cache())
    own = {"FEATUREWATCH_CACHE": str(cache.directory), "PYTHONPATH": str(SRC)}

    def stack(*arguments: str) -> None:
        command = [*_STACK, *arguments, "--directory", str(directory)]
        environment = dict(os.environ) | own
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            timeout=_START_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    stack("up", "--zookeeper", "1", *options)
    try:
        with kafka_tools("3.9.1", cache, directory.with_name("tools")) as tools:
            cluster = ControlledCluster(directory, tools)
            yield cluster
            cluster.close()
    finally:
        stack("down", "--remove")
