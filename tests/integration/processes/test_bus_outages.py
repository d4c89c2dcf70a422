"""The bus, or the network between it and a worker, fails: the worker waits and continues."""

import asyncio
import contextlib
import logging
import os
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import orjson
import pytest

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.streams.bus.errors import FencedError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.bus.transactions import TransactionalPublisher
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, METADATA_LOG
from tests.agents.events import CLUSTER
from tests.agents.publishing import LevelTraffic
from tests.faulty_link import SLOW_BYTES_S, Fault, FaultyLink
from tests.process_logs import started
from tests.processes import Process, free_port, wait_ready
from tests.waiting import eventually, until_async, until_ended

pytestmark = pytest.mark.stack

BACK_S = 50.0
"""How soon a worker follows again: 10 s, and what loaded cores add. The timeout of a connection
that nobody noticed to be dead is 60 s, after 10 s of a fault."""

BACK_AFTER_RESTART_S = 60.0
"""Seconds until a worker that restarts follows again."""

REPEAT = int(os.environ.get("OUTAGES_REPEAT", "1"))

STOPPED_S = 15.0
"""How soon a worker stops; for a thread that does not tell of its end Faust waits for a minute."""

LINKS = 4

FAULTY_S = 10.0
"""How long a link is faulty."""


@dataclass(frozen=True)
class LinkedBus:
    """A bus with listeners behind links; ``settings`` are those of the one beside them."""

    cluster: Cluster
    links: list[FaultyLink]
    settings: BusSettings

    def linked(self, link: FaultyLink) -> BusSettings:
        """The bus as it is reached through a link."""
        return replace(self.settings, bootstrap_servers=f"127.0.0.1:{link.port}")


@pytest.fixture(scope="module")
def linked_bus(
    stack_cache: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, list[FaultyLink]]]:
    """The bus of this module, which a test may kill."""
    del stack_cache
    targets, spec = [free_port() for _ in range(LINKS)], single_bus()
    cluster = Cluster(spec, tmp_path_factory.mktemp("outages") / "bus", temporary=True)
    broker, controller = cluster.addresses[1].broker, cluster.addresses[1].controller
    with ExitStack() as stack:
        links = [stack.enter_context(FaultyLink(port)) for port in targets]
        names = [f"LINK{number}" for number in range(LINKS)]
        listening = zip(names, targets, strict=True)
        advertised = zip(names, (link.port for link in links), strict=True)
        listeners = {
            "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}"
            + "".join(f",{name}://127.0.0.1:{port}" for name, port in listening),
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}"
            + "".join(f",{name}://127.0.0.1:{port}" for name, port in advertised),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            + "".join(f",{name}:PLAINTEXT" for name in names),
        }
        cluster.change(replace(spec, nodes=[replace(spec.nodes[0], properties=listeners)]))
        stack.enter_context(started(cluster))
        yield cluster, links


@pytest.fixture
def bus(
    linked_bus: tuple[Cluster, list[FaultyLink]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[LinkedBus]:
    """The running bus with a prefix of this test, and links that pass everything on."""
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", "2")
    cluster, links = linked_bus
    if not cluster.node(1).running:
        cluster.node(1).start()
    settings = BusSettings(
        cluster.bootstrap_servers,
        prefix=f"outages-{uuid.uuid4().hex[:8]}",
        partitions=2,
        replication_factor=1,
    )
    ensure_topics(settings)
    yield LinkedBus(cluster, links, settings)
    for link in links:
        link.fault = Fault.CUT
        link.fault = Fault.NONE


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

    def wait_for(self, revision: int, timeout_s: float, name: str = "") -> None:
        """Reads until there are so many changes."""
        self.wait(lambda: self.last >= revision, timeout_s, name)

    def wait(self, condition: Callable[[], bool], timeout_s: float, name: str = "") -> None:
        """Reads until a condition holds."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < timeout_s, f"{name} {timeout_s:g} s: {self.last}"
            for message in self._reader.poll(0.05):
                change = decode_change(message.value())
                level = self.by_revision.setdefault(change.revision, int(change.after))
                assert level == change.after

    @property
    def last(self) -> int:
        """The number of revisions without a hole."""
        last = len(self.by_revision)
        assert not self.by_revision or max(self.by_revision) == last
        return last


def test_workers_follow_again_at_once_when_their_links_work(bus: LinkedBus, tmp_path: Path) -> None:
    """Whatever was wrong with a link, nothing is lost or doubled, and the process that was started
    is the one that runs. One worker for each fault, side by side."""
    faults = dict(
        zip((Fault.CUT, Fault.HALF_OPEN, Fault.DELAYED, Fault.GARBAGE), bus.links, strict=True)
    )
    buses = {
        fault: replace(bus.linked(link), prefix=f"{bus.settings.prefix}-{fault.name.lower()}")
        for fault, link in faults.items()
    }
    workers = {fault: _worker(buses[fault], tmp_path, fault.name) for fault in faults}
    with ExitStack() as stack:
        for worker in workers.values():
            stack.callback(worker.kill)
            worker.start()
        wait_ready([*workers.values()])
        traffic, changes = {}, {}
        for fault in faults:
            direct = replace(bus.settings, prefix=buses[fault].prefix)
            traffic[fault] = stack.enter_context(LevelTraffic(direct, interval_s=0.2))
            changes[fault] = stack.enter_context(_Changes(direct))
        for read in changes.values():
            read.wait_for(11, 60)
        for fault, link in faults.items():
            link.fault = fault
        time.sleep(FAULTY_S)
        for link in faults.values():
            link.fault = Fault.NONE
        before = {fault: traffic[fault].sent for fault in faults}
        for fault, read in changes.items():
            limit_s = BACK_AFTER_RESTART_S if fault is Fault.GARBAGE else BACK_S
            read.wait_for(before[fault], limit_s, fault.name)
        for worker in workers.values():
            assert (worker.ended, worker.starts) == (None, 1), worker.log.read_text()
        wait_ready([*workers.values()])


def _has_messages(reader: TopicReader) -> bool:
    return bool(list(reader.poll(0.1)))


def _is_read(reader: TopicReader) -> bool:
    return not _has_messages(reader)


@pytest.mark.nightly
def test_sources_publish_again_when_their_links_work(bus: LinkedBus, tmp_path: Path) -> None:
    """Connections that swallowed something swallow all: a source reopens them automatically.

    The sources follow the bus' own metadata log, in its files, side by side.
    """
    log = bus.cluster.node(1).metadata_log
    faults = dict(zip((Fault.HALF_OPEN, Fault.GARBAGE), bus.links, strict=False))
    with ExitStack() as stack:
        readers: dict[Fault, TopicReader] = {}
        sources = []
        for fault, link in faults.items():
            direct = replace(bus.settings, prefix=f"{bus.settings.prefix}-{fault.name.lower()}")
            ensure_topics(direct)
            on_bus = ["--bus", bus.linked(link).bootstrap_servers, "--prefix", direct.prefix]
            source = Process(fault.name, ["watch", "--log-directory", str(log), *on_bus], tmp_path)
            stack.callback(source.kill)
            source.start()
            sources.append(source)
            reader = TopicReader(direct, METADATA_LOG)
            readers[fault] = stack.enter_context(contextlib.closing(reader))
        for reader in readers.values():
            assert eventually(partial(_has_messages, reader))
        for fault, link in faults.items():
            link.fault = fault
        time.sleep(FAULTY_S)
        for reader in readers.values():
            assert eventually(partial(_is_read, reader))
        for link in faults.values():
            link.fault = Fault.NONE
        for fault, reader in readers.items():
            assert eventually(partial(_has_messages, reader), BACK_AFTER_RESTART_S), fault
        for source in sources:
            assert (source.ended, source.starts) == (None, 1), source.log.read_text()


@pytest.mark.nightly
async def test_a_link_too_slow_for_a_message_gets_the_time_that_it_needs(bus: LinkedBus) -> None:
    """A message that is repeated on a link of 1 Mbit/s gets through with a longer timeout."""
    message = Message(b"key", bytes(17 * SLOW_BYTES_S), [])
    link = bus.links[0]
    link.fault = Fault.SLOW
    slow = replace(bus.linked(link), properties={"socket.timeout.ms": "60000"})
    async with Publisher(slow) as publisher:
        sent = await publisher.send(bus.settings.topic(METADATA_LOG), message)
        await asyncio.wait_for(sent, 55)


@pytest.mark.nightly
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
        await asyncio.wait_for(worker.ready.wait(), 180)
        with LevelTraffic(bus.settings) as traffic:
            await until_async(lambda: worker.offset(CLUSTER) > 10)
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
        await until_ended(running, 60)


async def test_a_run_that_failed_leaves_nothing_behind(bus: LinkedBus, tmp_path: Path) -> None:
    """A thread that kept reading would take the partitions from the run after it."""
    threads = set(threading.enumerate())
    settings = WorkerSettings(bus.settings, worker_id="1", data_directory=tmp_path)
    worker = Worker(settings)
    running = asyncio.ensure_future(worker.run())
    await asyncio.wait_for(worker.ready.wait(), 180)
    others = [
        TransactionalPublisher(bus.settings, f"{settings.app_id}-{partition}")
        for partition in range(bus.settings.partitions)
    ]
    for other in others:
        await other.start()  # fences the worker
        await other.stop()
    with LevelTraffic(bus.settings), pytest.raises(FencedError):
        await until_ended(running, 60)
    pools = ("asyncio_", "ThreadPoolExecutor")

    def left() -> list[str]:
        names = (thread.name for thread in set(threading.enumerate()) - threads)
        return [name for name in names if not name.startswith(pools)]

    await asyncio.to_thread(eventually, lambda: left() == [])
    assert left() == []


async def test_a_worker_stops_while_a_fetch_waits_to_be_tried_again(
    bus: LinkedBus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """aiokafka lets the cancellation of such a fetch end the reading thread, unknown to Faust."""
    link = bus.links[0]
    caplog.set_level(logging.ERROR, "aiokafka")
    settings = WorkerSettings(bus.linked(link), worker_id="1", data_directory=tmp_path)
    worker = Worker(settings)
    running = asyncio.ensure_future(worker.run())
    await asyncio.wait_for(worker.ready.wait(), 180)
    worker._app.reader._consumer._fetcher._retry_backoff = 600
    link.fault = Fault.CUT
    await until_async(lambda: "Failed fetch messages" in caplog.text)
    link.fault = Fault.NONE
    worker.stop()
    await until_ended(running, STOPPED_S)


@pytest.mark.nightly
def test_a_worker_that_starts_while_the_bus_is_unavailable_waits_for_it(
    bus: LinkedBus, tmp_path: Path
) -> None:
    """It says that it waits, on its page and in its log, and works as soon as the bus is there."""
    bus.cluster.node(1).kill()
    worker = _worker(bus.settings, tmp_path)
    try:
        worker.start()
        assert eventually(lambda: "waiting for the bus" in _page(worker.port))
        assert eventually(lambda: "does not answer" in worker.log.read_text())
        assert worker.ended is None
        bus.cluster.node(1).start()
        with LevelTraffic(bus.settings), _Changes(bus.settings) as changes:
            changes.wait(lambda: changes.last > 3, 60)
        assert worker.ended is None
    finally:
        worker.kill()


@pytest.mark.nightly
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
            changes.wait(lambda: changes.last > 10, 60)
            second.start()
            assert eventually(lambda: _names_the_clash(first), 60)
            wait_ready([second])
            at = traffic.sent
            changes.wait(lambda: changes.last > at + 40, 60)
            assert _names_the_clash(first)
            assert "runs with the id same" not in second.log.read_text()
            second.kill()
            at = traffic.sent
            changes.wait(lambda: changes.last > at + 10, 60)
        assert (first.ended, first.starts) == (None, 1)
    finally:
        for worker in (first, second):
            worker.kill()


def _names_the_clash(worker: Process) -> bool:
    return "runs with the id same" in _page(worker.port)


def _page(port: int) -> str:
    """The response of /readyz; empty if nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return str(orjson.loads(answer.read()))
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""
