"""Lost state is requested until it is published, and never more often than allowed."""

from itertools import pairwise
from typing import Any

from featurewatch.agents.resync_requests import FIRST_WAIT_S, MAX_WAIT_S, ResyncRequester
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.step import MonitorState, step_lost
from featurewatch.streams.events import ResyncRequest
from featurewatch.streams.topics import METADATA_LOG, RESYNC_REQUESTS, ZOOKEEPER, Topic
from tests.agents.events import CLUSTER


class Published:
    """Notes what is published."""

    def __init__(self) -> None:
        self.requests: list[ResyncRequest] = []

    async def publish(self, topic: Topic, event: ResyncRequest) -> None:
        """Notes an event."""
        assert topic is RESYNC_REQUESTS
        self.requests.append(event)


def lost(state: MonitorState, topic: Topic) -> MonitorState:
    """A state after messages of a topic were lost."""
    return step_lost(state, topic.short_name, "expired", Cause("c", 1)).state


async def test_requests_are_repeated_ever_less_often_until_the_state_is_whole() -> None:
    """At once, then after 20 s, 40 s and so on, at most ten minutes."""
    whole = MonitorState.of(CLUSTER)
    states = {CLUSTER: lost(whole, METADATA_LOG)}
    published: Any = Published()
    requester = ResyncRequester(lambda: states, published)
    times = []
    for now_s in range(0, 4000, 2):
        before = len(published.requests)
        await requester.check(now_s, now_s * 1000)
        times += [now_s] * (len(published.requests) - before)
    waits = [after - before for before, after in pairwise(times)]
    assert times[0] == 0 and waits[0] == FIRST_WAIT_S and max(waits) == MAX_WAIT_S
    assert waits == sorted(waits)
    states[CLUSTER] = whole
    await requester.check(5000, 5_000_000)
    assert len(published.requests) == len(times)
    states[CLUSTER] = lost(whole, METADATA_LOG)
    await requester.check(5002, 5_002_000)
    assert len(published.requests) == len(times) + 1


async def test_the_source_of_each_topic_is_named() -> None:
    """A request names the source whose messages are lost, and why."""
    states = {CLUSTER: lost(lost(MonitorState.of(CLUSTER), METADATA_LOG), ZOOKEEPER)}
    published: Any = Published()
    await ResyncRequester(lambda: states, published).check(0, 7)
    assert published.requests == [
        ResyncRequest(CLUSTER, source, "expired", 7) for source in ("kraft", "zookeeper")
    ]
