"""The bus is away, or what lies between it and a worker is broken: the worker waits and goes on."""

import asyncio
import contextlib
import os
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import pytest

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.cli.output.topic_reader import TopicReader
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.specs import single_bus
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.bus.transactions import TransactionalPublisher
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.errors import FencedError
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, METADATA_LOG
from tests.agents.events import CLUSTER
from tests.agents.publishing import LevelTraffic
from tests.faulty_link import SLOW_BYTES_S, Fault, FaultyLink
from tests.process_logs import started
from tests.processes import Process, free_port, wait_ready
from tests.waiting import eventually, until_async

pytestmark = pytest.mark.stack

BACK_S = 8.0
"""How soon a worker follows again: 5 s, and what two loaded cores add."""

REPEAT = int(os.environ.get("OUTAGES_REPEAT", "1"))

BACK_ANEW_S = 20.0
"""How soon a worker that begins anew follows again."""


@dataclass(frozen=True)
class LinkedBus:
    """A bus with a listener behind a link; ``settings`` are those of the one beside it."""

    cluster: Cluster
    link: FaultyLink
    settings: BusSettings

    @property
    def linked(self) -> BusSettings:
        """The bus as it is reached through the link."""
        return replace(self.settings, bootstrap_servers=f"127.0.0.1:{self.link.port}")


@pytest.fixture
def bus(
    stack_cache: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LinkedBus]:
    """A bus of this test."""
    del stack_cache
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", "2")
    inner, spec = free_port(), single_bus()
    cluster = Cluster(spec, tmp_path / "bus", temporary=True)
    broker, controller = cluster.addresses[1].broker, cluster.addresses[1].controller
    with FaultyLink(inner) as link:
        listeners = {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller},"
            f"LINK://127.0.0.1:{inner}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker},LINK://127.0.0.1:{link.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "LINK:PLAINTEXT",
        }
        cluster.change(replace(spec, nodes=[replace(spec.nodes[0], properties=listeners)]))
        with started(cluster):
            settings = BusSettings(
                cluster.bootstrap_servers,
                prefix=f"outages-{uuid.uuid4().hex[:8]}",
                partitions=2,
                replication_factor=1,
            )
            ensure_topics(settings)
            yield LinkedBus(cluster, link, settings)


def _worker(bus: BusSettings, directory: Path, name: str = "worker", *options: str) -> Process:
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    return Process(name, ["worker", *on_bus, *options], directory)


class _Changes:
    """The changes that a worker has published: revisions 1, 2, …, each with one content."""

    def __init__(self, bus: BusSettings) -> None:
        self._reader = TopicReader(bus, FEATURE_CHANGES)
        self.by_revision: dict[int, int] = {}

    def __enter__(self) -> "_Changes":
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> float:
        """The seconds until a condition holds; reads meanwhile."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < timeout_s, f"after {timeout_s:g} s: {self.last}"
            for message in self._reader.poll(0.05):
                change = decode_change(message.value())
                level = self.by_revision.setdefault(change.revision, int(change.after))
                assert level == change.after
        return time.monotonic() - began

    @property
    def last(self) -> int:
        """The number of revisions without a hole."""
        last = len(self.by_revision)
        assert not self.by_revision or max(self.by_revision) == last
        return last


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.HALF_OPEN, Fault.DELAYED, Fault.GARBAGE])
def test_a_worker_follows_again_at_once_when_its_link_works(
    bus: LinkedBus, tmp_path: Path, fault: Fault
) -> None:
    """Nothing is lost or doubled, and the process that was started is the one that runs."""
    worker = _worker(bus.linked, tmp_path)
    try:
        worker.start()
        wait_ready([worker])
        with LevelTraffic(bus.settings) as traffic, _Changes(bus.settings) as changes:
            changes.wait(lambda: changes.last > 10, 20)
            bus.link.fault = fault
            with contextlib.suppress(AssertionError):
                changes.wait(lambda: False, 10)
            bus.link.fault = Fault.NONE
            before = traffic.sent
            limit_s = BACK_ANEW_S if fault is Fault.GARBAGE else BACK_S
            changes.wait(lambda: changes.last >= before, limit_s)
        assert worker.ended is None
        wait_ready([worker])
    finally:
        worker.kill()


@pytest.mark.parametrize(("fault", "for_s"), [(Fault.HALF_OPEN, 8), (Fault.GARBAGE, 10)])
def test_a_source_publishes_again_when_its_link_works(
    bus: LinkedBus, tmp_path: Path, fault: Fault, for_s: float
) -> None:
    """Its connections that swallowed something swallow all: it makes them anew by itself.

    The source follows the bus' own metadata log, in its files.
    """
    (log,) = (tmp_path / "bus").rglob("__cluster_metadata-0")
    options = ["--bus", bus.linked.bootstrap_servers, "--prefix", bus.settings.prefix]
    source = Process("source", ["watch", "--log-directory", str(log), *options], tmp_path)
    try:
        source.start()
        with contextlib.closing(TopicReader(bus.settings, METADATA_LOG)) as reader:

            def publishes() -> bool:
                return bool(list(reader.poll(0.1)))

            assert eventually(publishes, 60)
            bus.link.fault = fault
            eventually(lambda: False, for_s)
            bus.link.fault = Fault.NONE
            list(reader.poll(0.1))
            assert eventually(publishes, BACK_ANEW_S)
        assert (source.ended, source.starts) == (None, 1)
    finally:
        source.kill()


async def test_a_link_too_slow_for_a_message_gets_the_time_that_it_needs(bus: LinkedBus) -> None:
    """What is sent over and over on a link of 1 Mbit/s gets through with a longer timeout."""
    message = Message(b"key", bytes(17 * SLOW_BYTES_S), [])
    bus.link.fault = Fault.SLOW
    slow = replace(bus.linked, properties={"socket.timeout.ms": "60000"})
    async with Publisher(slow) as publisher:
        sent = await publisher.send(bus.settings.topic(METADATA_LOG), message)
        await asyncio.wait_for(sent, 50)


async def test_an_outage_longer_than_the_watchdog_ends_nothing(
    bus: LinkedBus, tmp_path: Path
) -> None:
    """Messages are read and cannot be committed for four times as long as that may last."""
    settings = WorkerSettings(
        bus.settings, worker_id="1", data_directory=tmp_path, silent_after_s=8, stuck_after_s=4
    )
    worker = Worker(settings)
    running = asyncio.ensure_future(worker.run())
    try:
        await asyncio.wait_for(worker.ready.wait(), 60)
        with LevelTraffic(bus.settings) as traffic:
            await until_async(lambda: worker.offset(CLUSTER) > 10, 20)
            bus.cluster.node(1).kill()
            with contextlib.suppress(TimeoutError):
                await until_async(running.done, 16)
            await asyncio.to_thread(bus.cluster.node(1).start)
            before = traffic.sent
            await until_async(lambda: worker.offset(CLUSTER) >= before, BACK_S)
        assert not running.done()
        with contextlib.closing(TopicReader(bus.settings, ALERTS)) as reader:
            alerts = [decode_alert(message.value() or b"") for message in reader.read_existing()]
        assert [alert for alert in alerts if alert.rule == "source-stalled"] == []
    finally:
        worker.stop()
        await asyncio.wait_for(running, 20)


async def test_a_run_that_failed_leaves_nothing_behind(bus: LinkedBus, tmp_path: Path) -> None:
    """A thread that went on reading would take the partitions from the run after it."""
    threads = set(threading.enumerate())
    settings = WorkerSettings(bus.settings, worker_id="1", data_directory=tmp_path)
    worker = Worker(settings)
    running = asyncio.ensure_future(worker.run())
    await asyncio.wait_for(worker.ready.wait(), 60)
    others = [
        TransactionalPublisher(bus.settings, f"{settings.app_id}-{partition}")
        for partition in range(bus.settings.partitions)
    ]
    for other in others:
        await other.start()  # fences the worker
        await other.stop()
    with LevelTraffic(bus.settings), pytest.raises(FencedError):
        await asyncio.wait_for(running, 30)
    pools = ("asyncio_", "ThreadPoolExecutor")
    left = [thread for thread in set(threading.enumerate()) - threads if thread.is_alive()]
    assert [thread.name for thread in left if not thread.name.startswith(pools)] == []


def test_a_worker_that_starts_while_the_bus_is_away_waits_for_it(
    bus: LinkedBus, tmp_path: Path
) -> None:
    """It says that it waits, on its page and in its log, and works as soon as the bus is there."""
    bus.cluster.node(1).kill()
    worker = _worker(bus.settings, tmp_path)
    try:
        worker.start()
        assert eventually(lambda: "waiting for the bus" in _page(worker.port), 30)
        assert eventually(lambda: "does not answer" in worker.log.read_text(), 30)
        assert worker.ended is None
        bus.cluster.node(1).start()
        with LevelTraffic(bus.settings), _Changes(bus.settings) as changes:
            changes.wait(lambda: changes.last > 3, 20)
        assert worker.ended is None
    finally:
        worker.kill()


@pytest.mark.parametrize("attempt", range(REPEAT))
def test_of_two_workers_of_one_id_the_one_that_joined_last_works(
    bus: LinkedBus, tmp_path: Path, attempt: int
) -> None:
    """The other one names the clash and its host, and takes over when that one has ended."""
    first, second = (
        _worker(bus.settings, tmp_path, name, "--id", "same") for name in ("first", "second")
    )
    try:
        first.start()
        wait_ready([first])
        with LevelTraffic(bus.settings) as traffic, _Changes(bus.settings) as changes:
            changes.wait(lambda: changes.last > 10, 20)
            second.start()
            assert eventually(lambda: _names_the_clash(first), 60)
            wait_ready([second])
            at = traffic.sent
            changes.wait(lambda: changes.last > at + 40, 30)
            assert _names_the_clash(first)
            assert "runs with the id same" not in second.log.read_text()
            second.kill()
            at = traffic.sent
            changes.wait(lambda: changes.last > at + 10, 40)
        assert (first.ended, first.starts) == (None, 1)
    finally:
        for worker in (first, second):
            worker.kill()


def _names_the_clash(worker: Process) -> bool:
    return "runs with the id same" in _page(worker.port)


def _page(port: int) -> str:
    """What /readyz answers; empty if nobody does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return str(orjson.loads(answer.read()))
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""
