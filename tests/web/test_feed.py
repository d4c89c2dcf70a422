"""The page on a bus: what comes on a topic arrives by the stream."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.cli.config.settings import BusSection, Settings, WebSection
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.page import run_page, run_page_beside
from featurewatch.monitor.rows import rows_of_state
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, single_bus
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE
from featurewatch.tables.rows import WORKER_ROWS
from tests.common.http.ports import TOKEN, Files
from tests.streams.bus.mock_bus import MockBus
from tests.web.rolls import ROLLED, rolling
from tests.web.samples import alert_of, change_of, message_of, operation_of, state_of

DEADLINE_S = 60.0
TOPICS = {topic.short_name: topic for topic in (STATE, ALERTS, FEATURE_CHANGES)}
Put = Callable[[str, bytes, bytes | None], None]


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


def settings_of(bus: BusSettings, **web: Any) -> Settings:
    """Settings of a page on a bus."""
    section = BusSection(bootstrap_servers=bus.bootstrap_servers, prefix=bus.prefix)
    return Settings(bus=section, web=WebSection(page_port=0, **web))


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[ClientSession]:
    """A running page, as a client of it."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(run_page(settings, address.set_result))
    try:
        async with asyncio.timeout(DEADLINE_S):
            url = await address
        async with ClientSession(base_url=url) as client:
            yield client
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(client: ClientSession, path: str, is_done: Callable[[int, Any], bool]) -> Any:
    """The body of the first response that is as wished."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            response = await client.get(f"/api/v1/{path}")
            body = await response.json()
            if is_done(response.status, body):
                return body
            await asyncio.sleep(0.05)


def is_ok(status: int, _: Any) -> bool:
    """Whether a request succeeded."""
    return status == 200


async def test_an_absent_bus_is_reported_and_waited_for(closed_port: int) -> None:
    """The page is served at once, claims nothing, and names the reason."""
    settings = settings_of(BusSettings(f"127.0.0.1:{closed_port}"))
    async with served(settings) as client:
        fleet = await until(
            client, "fleet", lambda _, body: str(closed_port) in (body["error"] or "")
        )
        assert fleet["complete"] is False
        assert (await client.get("/api/v1/clusters")).status == 503


async def test_unreadable_messages_are_passed_over() -> None:
    """What comes after them is shown, on a bus in this process."""
    bus = MockBus(partitions=1)
    names = [bus.settings.topic(topic) for topic in TOPICS.values()]
    for name in (*names, bus.settings.topic(WORKER_ROWS)):
        for value in (b"", b"{}", b"\xff", b"[1]"):
            bus.put(name, b"\xff|cluster", value, 0)
    for output in (state_of(at_ms=now_ms()), alert_of(at_ms=now_ms())):
        topic, key, content = message_of(output)
        bus.put(bus.settings.topic(TOPICS[topic]), key, content or b"", 0)
    async with served(settings_of(bus.settings)) as client:
        clusters = await until(client, "clusters", is_ok)
        assert [row["cluster"] for row in clusters["items"]] == ["a-cluster"]
        response = await client.get("/api/v1/clusters/a-cluster/readiness")
        assert response.status == 503


async def test_a_public_address_is_refused(closed_port: int) -> None:
    """Unless it is allowed by name: the page has no login."""
    bus = BusSettings(f"127.0.0.1:{closed_port}")
    for host in ("0.0.0.0", "::", "10.0.0.1", "page.example.org"):  # noqa: S104 - it is refused
        settings = settings_of(bus, page_host=host)
        with pytest.raises(UsageError, match="page_without_login"):
            await run_page_beside(settings, lambda _: None, asyncio.Event())
        allowed = settings_of(bus, page_host=host, page_without_login=True)
        assert allowed.page_settings().host == host


def test_a_public_address_needs_a_login_that_can_be_used(tmp_path: Path) -> None:
    """TLS alone is not a login; errors in a file are reported before anything listens."""
    files, bus = Files(tmp_path), BusSettings("127.0.0.1:1")

    def settings(**web: Any) -> Settings:
        return settings_of(bus, page_host="0.0.0.0", **web)  # noqa: S104 - nothing listens

    tls = files.write(tls_server_config=files.tls())
    with pytest.raises(UsageError, match="has no login: set basic_auth_users"):
        settings(config_file=tls).page_settings()
    with pytest.raises(UsageError, match=r"web.token_file: .*/tokens cannot be read: No such file"):
        settings(token_file=tmp_path / "tokens").page_settings()
    tokens = files.write_tokens(TOKEN)
    page = settings(config_file=tls, token_file=tokens).page_settings()
    assert page.access.must_have_login
    assert settings(config_file=tls, page_without_login=True).page_settings().host == page.host
    with pytest.raises(ValueError, match="does not appear to be an IPv4 or IPv6 network"):
        settings(proxies=["nginx"])


async def test_a_taken_port_ends_nothing_else(
    closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Beside a worker the page is left out, with one line that names the setting."""
    bus = BusSettings(f"127.0.0.1:{closed_port}")
    settings = settings_of(bus)
    settings.web.page_port = closed_port
    task = asyncio.ensure_future(run_page_beside(settings, lambda _: None, asyncio.Event()))
    async with asyncio.timeout(DEADLINE_S):
        while "there is no page" not in caplog.text:
            await asyncio.sleep(0.02)
    assert "web.page_port" in caplog.text
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def own_bus(bus: Cluster) -> BusSettings:
    """The shared bus, under a prefix of this test."""
    prefix = f"page-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=2, replication_factor=1)
    ensure_topics(settings)
    # A worker makes it when it starts.
    rows = NewTopic(settings.topic(WORKER_ROWS), 1, 1, config={"cleanup.policy": "compact"})
    admin = AdminClient(settings.client())
    for made in admin.create_topics([rows]).values():
        made.result(DEADLINE_S)
    return settings


@pytest.mark.stack
async def test_a_change_on_the_topic_arrives_by_the_stream(own_bus: BusSettings) -> None:
    """On a real bus: a state, an alert, readiness from the rows of a worker, and a retired cluster.

    Messages that have expired are passed over.
    """
    producer = Producer(own_bus.client())

    def put(name: str, key: bytes, value: bytes | None) -> None:
        producer.produce(name, value, key, partition=0)
        assert producer.flush(DEADLINE_S) == 0

    def publish(output: Any) -> None:
        topic, key, value = message_of(output)
        put(own_bus.topic(TOPICS[topic]), key, value)

    publish(change_of(ROLLED))
    place = TopicPartition(own_bus.topic(FEATURE_CHANGES), 0, 1)
    admin = AdminClient(own_bus.client())
    for done in admin.delete_records([place]).values():
        done.result(DEADLINE_S)
    publish(change_of(ROLLED, revision=2))
    image = rolling("4.0", "3.9", "3.9")
    publish(snapshot(image, now_ms()))
    for key, row in rows_of_state(MonitorState(image)).items():
        put(own_bus.topic(WORKER_ROWS), key.encode(), row)

    for topic, output in (
        (EPOCHS, state_of(ROLLED, revision=2)),
        (OPERATIONS, operation_of(ROLLED)),
    ):
        encoded = encode_output(output)
        put(own_bus.topic(topic), encoded.key, encoded.value)

    reader = TopicReader(own_bus, FEATURE_CHANGES)
    assert len([*reader.read_existing()]) == 1
    reader.close()
    async with served(settings_of(own_bus)) as client:
        changes = await until(client, f"clusters/{ROLLED}/changes", is_ok)
        assert [change["revision"] for change in changes["items"]] == [2]
        epochs = await until(client, f"clusters/{ROLLED}/epochs", is_ok)
        assert [row["revision"] for row in epochs["items"]] == [2]
        operations = await until(client, f"clusters/{ROLLED}/operations", is_ok)
        assert [row["topic"] for row in operations["items"]] == ["orders"]
        report = await until(client, f"clusters/{ROLLED}/readiness?target=4.0", is_ok)
        assert (report["verdict"], len(report["blockers"])) == ("no", 4)
        stream = await client.get("/api/v1/events", params={"after": changes["position"]})

        async def event_of(kind: str, is_wanted: Callable[[Any], bool]) -> Any:
            async with asyncio.timeout(DEADLINE_S):
                current = ""
                while True:
                    line = (await stream.content.readline()).decode().strip()
                    if line.startswith("event: "):
                        current = line.removeprefix("event: ")
                    elif line.startswith("data: ") and current == kind:
                        content = json.loads(line.removeprefix("data: "))
                        if is_wanted(content):
                            return content

        publish(alert_of(ROLLED, at_ms=now_ms()))
        await event_of("state", lambda row: row.get("health") == "critical")
        publish(alert_of(ROLLED, state=AlertState.RESOLVED, at_ms=now_ms()))
        publish(snapshot(rolling("4.0", "4.0", "4.0"), now_ms()))
        row = await event_of("state", lambda row: row.get("nodes_on_newest") == 3)
        assert row["state"] == "ready"
        put(own_bus.topic(STATE), ROLLED.encode(), None)
        await event_of("state", lambda row: bool(row.get("removed")))
        assert (await client.get(f"/api/v1/clusters/{ROLLED}")).status == 404
        stream.close()


@pytest.mark.stack
@pytest.mark.nightly
async def test_a_bus_that_comes_back_is_followed_again(
    make_cluster: Callable[[ClusterSpec], Cluster],
) -> None:
    """While it is unreachable the page shows the last known state and says so; then the new one."""
    bus = make_cluster(single_bus())
    settings = BusSettings(bus.bootstrap_servers, prefix="page", partitions=1, replication_factor=1)
    ensure_topics(settings)
    producer = Producer(settings.client())

    def publish(revision: int) -> None:
        topic, key, value = message_of(state_of(revision=revision, at_ms=now_ms()))
        producer.produce(settings.topic(TOPICS[topic]), value, key)
        assert producer.flush(DEADLINE_S) == 0

    publish(1)
    async with served(settings_of(settings)) as client:
        await until(client, "clusters/a-cluster", lambda _, body: body.get("revision") == 1)
        (node,) = bus.nodes
        await asyncio.to_thread(node.kill)
        await until(client, "fleet", lambda _, body: "does not answer" in (body["error"] or ""))
        assert (await client.get("/api/v1/clusters/a-cluster")).status == 200
        await asyncio.to_thread(node.start)
        await asyncio.to_thread(publish, 2)
        await until(client, "clusters/a-cluster", lambda _, body: body.get("revision") == 2)
        await until(client, "fleet", lambda _, body: body["error"] is None)
