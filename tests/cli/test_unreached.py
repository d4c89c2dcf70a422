"""A cluster that was never reached is published under its name, until its id is known."""

from typing import Any

import pytest

from featurewatch.cli.runtime.unreached import report_unreached
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import SourceStatus
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.topics import METADATA_LOG, Topic
from featurewatch.streams.types import ClusterId


class Recorder:
    """A sink that keeps what is published."""

    error = None

    def __init__(self) -> None:
        self.published: list[tuple[Topic, Any]] = []

    async def publish(self, topic: Topic, event: Any) -> None:
        """Keeps an event."""
        self.published.append((topic, event))

    async def flush(self) -> None:
        """Nothing waits."""


class Configured:
    """A configured cluster whose id becomes known after some time."""

    first_source = "kraft"

    def __init__(self, name: str, known_after_s: float) -> None:
        self.name = name
        self.known_after_s = known_after_s
        self.now_s = 0.0

    def unreached_reason(self) -> str | None:
        """As a cluster that nobody reaches until then."""
        return "nobody answers" if self.now_s < self.known_after_s else None

    async def sleep(self, wait_s: float) -> None:
        """Time passes."""
        self.now_s += wait_s

    def clock_ms(self) -> int:
        """The present time."""
        return int(self.now_s * 1000)


async def published(cluster: Configured) -> list[SourceStatus]:
    """The statuses that are published until the id of a cluster is known."""
    sink = Recorder()
    await report_unreached(cluster, sink, cluster.clock_ms, cluster.sleep)
    assert all(topic is METADATA_LOG for topic, _ in sink.published)
    return [status for _, status in sink.published]


async def test_it_is_stalled_until_its_id_is_known() -> None:
    """An alert fires for its name; when the id is known nothing is left of the name."""
    statuses = await published(Configured("b1:9092,b2:9092", 60))
    name = ClusterId("b1:9092,b2:9092")
    assert {status.cluster for status in statuses} == {name}
    assert len(statuses) == 11  # every 5 s, from 10 s on, and the retirement
    state = MonitorState.of(name)
    alerts: list[Alert] = []
    for status in statuses:
        result = step(state, status)
        state = result.state
        alerts += result.alerts
    assert [(alert.rule, alert.state) for alert in alerts] == [
        ("source-stalled", AlertState.FIRING),
        ("source-stalled", AlertState.RESOLVED),
    ]
    assert "nobody answers" in alerts[0].summary
    assert state.image.forgotten


@pytest.mark.parametrize("known_after_s", [0, 5, 10])
async def test_a_cluster_that_is_reached_soon_leaves_no_trace(known_after_s: float) -> None:
    """Nodes that start at the same time as the source are not reported."""
    assert await published(Configured("b1:9092", known_after_s)) == []


async def test_a_name_has_no_slash() -> None:
    """The ids of alerts are divided by slashes."""
    statuses = await published(Configured("zk:2181/chroot", 20))
    assert {status.cluster for status in statuses} == {"zk:2181:chroot"}
