"""Lost state is requested until it is published, and never more often than allowed."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from featurewatch.agents.resync_requests import FIRST_WAIT_S, MAX_WAIT_S, ResyncRequester
from featurewatch.controller.kraft import release_of
from featurewatch.kafka.releases import reread
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.rows import rows_of_state, states_of_rows
from featurewatch.monitor.step import MonitorState, step, step_lost
from featurewatch.streams.events import Event, ResyncRequest
from featurewatch.streams.kraft.records.schema import is_known
from featurewatch.streams.topics import METADATA_LOG, RESYNC_REQUESTS, ZOOKEEPER, Topic
from tests.agents.events import CLUSTER
from tests.learned_releases import made_up, without
from tests.simulation import records as r
from tests.simulation.records import MV


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


async def test_records_of_a_learned_release_are_requested_and_the_tables_stay(
    tmp_path: Path,
) -> None:
    """A worker that starts with the learned file asks for what it could not read before."""
    records = [r.level(MV, 29), r.register(1, release_of("4.2").ranges(), fenced=False)]
    unknown = "RECORD_TYPE_90-v1"
    last = r.commit(10, r.unknown_record(unknown))
    events: list[Event] = [r.commit(9, *records), r.following(9), last]
    state = MonitorState.of(r.CLUSTER)
    for event in events:
        state = step(state, event).state
    rows = rows_of_state(state)

    def restarted() -> MonitorState:
        return states_of_rows((key, value) for key, value in rows.items())[r.CLUSTER]

    with without("99.0", tmp_path) as learned:
        published: Any = Published()
        await ResyncRequester(lambda: {r.CLUSTER: restarted()}, published).check(0, 7)
        assert published.requests == []
        learned.mkdir()
        (learned / "9.1.json").write_text(json.dumps(made_up()))
        reread()
        state = restarted()
        states = {r.CLUSTER: state}
        requester = ResyncRequester(lambda: states, published)
        await requester.check(0, 7)
        (request,) = published.requests
        assert (request.cluster, request.source) == (r.CLUSTER, "kraft")
        assert request.reason == f"{unknown} was not known when it was read, and is known now"
        events = [r.resync(), r.commit(9, *records), r.commit(10), r.following(10)]
        for event in events:
            state = step(state, event).state
        assert (state.image.nodes, state.image.incomplete) == (restarted().image.nodes, ())
        states[r.CLUSTER] = state
        await requester.check(10_000, 7)
        assert len(published.requests) == 1


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("RECORD_TYPE_27-v0", True),
        ("RECORD_TYPE_27-v9", False),
        ("RECORD_TYPE_77-v0", False),
        ("FEATURE_LEVEL_RECORD-v0", True),
        ("FEATURE_LEVEL_RECORD-v1", False),
        ("CONTROL_TYPE_2", True),
        ("CONTROL_TYPE_99", False),
        ("KRAFT_VOTERS-v0", True),
        ("SNAPSHOT", False),
        ("UNREADABLE", False),
        ("RECORD_TYPE_-v0", False),
    ],
)
def test_a_kind_of_records_is_known_by_number_or_name(kind: str, known: bool) -> None:
    """In the version that was read."""
    assert is_known(kind) == known
