"""The page: ``api_state_304_per_s``, ``web_rss_mb_1000_clusters_200_clients`` and
``web_cpu_200_clients_5_events``.

The first is how often a second a cluster that has not changed is requested with its ETag, against a
bare aiohttp handler that responds 304 at once; both are loaded in turns, by the same client. The
others are of ``featurewatch web`` on a bus with 1,000 clusters. 200 clients follow it that
have read the first page of the list, and five states a second are published: its resident memory,
and its share of a core.
"""

import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession, TCPConnector
from confluent_kafka import Producer

from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, STATE
from featurewatch.web.openapi import ROOT
from tests.bench.turns import FEATUREWATCH
from tests.paths import ROOT as REPOSITORY
from tests.processes import popen
from tests.web.samples import message_of, state_of
from tests.web.served_page import memory_mb, served_page

_CLUSTERS: Final = 1_000
_CLIENTS: Final = 200
_EVENTS_PER_S: Final = 5.0
_TURNS: Final = 5
_TURN_S: Final = 2.0
_CPU_S: Final = 15.0
_READ_S: Final = 60.0
_CONNECTIONS: Final = 8
_PIPELINED: Final = 8
_PATH: Final = f"{ROOT}/clusters/cluster-0000"

_BARE: Final = """
import asyncio, sys
from aiohttp import web

async def show(_):
    return web.Response(status=304)

app = web.Application()
app.router.add_get("/{path:.*}", show)

async def run():
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(run())
"""


def not_modified() -> Iterator[dict[str, Any]]:
    """How often a second nothing has changed."""
    with served_page(_CLUSTERS) as (page, _), _bare_handler() as bare:
        etag = asyncio.run(_etag(page))
        rates: dict[int, list[float]] = {page: [], bare: []}
        for _ in range(_TURNS):
            for port, found in rates.items():
                found.append(asyncio.run(_rate(port, etag)))
    ours, baseline = (statistics.median(found) for found in rates.values())
    yield {
        "measure": "api_state_304_per_s",
        "value": round(ours),
        "baseline": round(baseline),
        "ratio": round(ours / baseline, 2),
    }


@contextlib.contextmanager
def _bare_handler() -> Iterator[int]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with popen([sys.executable, "-c", _BARE], cwd=REPOSITORY, **pipes) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


async def _etag(port: int) -> str:
    async with ClientSession() as client, client.get(f"http://127.0.0.1:{port}{_PATH}") as found:
        return found.headers["ETag"]


async def _rate(port: int, etag: str) -> float:
    """Responses a second, over a few connections that always have some requests open."""
    head = f"GET {_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nIf-None-Match: {etag}\r\n\r\n".encode()
    end = time.perf_counter() + _TURN_S

    async def ask() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head * _PIPELINED)
        count = 0
        while time.perf_counter() < end:
            data = await reader.readuntil(b"\r\n\r\n")
            assert data.startswith(b"HTTP/1.1 304 "), data
            writer.write(head)
            count += 1
        writer.close()
        return count

    return sum(await asyncio.gather(*(ask() for _ in range(_CONNECTIONS)))) / _TURN_S


def followed(bus: BusSettings) -> Iterator[dict[str, Any]]:
    """What the page takes with many clients."""
    ensure_topics(bus, (STATE, ALERTS, FEATURE_CHANGES))
    publisher = _Publisher(bus)
    for _ in range(_CLUSTERS):
        publisher.publish()
    with _web(bus) as (address, pid):
        cpu, received = asyncio.run(_follow(address, pid, publisher))
        peak_mb, rss_mb = memory_mb(pid, "VmHWM"), memory_mb(pid, "VmRSS")
    yield {
        "measure": "web_rss_mb_1000_clusters_200_clients",
        "value": round(rss_mb),
        "peak": round(peak_mb),
    }
    yield {
        "measure": "web_cpu_200_clients_5_events",
        "value": round(cpu, 3),
        "mb_received": round(received / 1e6, 1),
    }


class _Publisher:
    """Publishes the states of all clusters, one after the other."""

    def __init__(self, bus: BusSettings) -> None:
        self._topic = bus.topic(STATE)
        self._producer = Producer(bus.client())
        self._count = 0

    def publish(self) -> None:
        """The next state."""
        name = f"cluster-{self._count % _CLUSTERS:04}"
        self._count += 1
        state = state_of(name, at_ms=time.time_ns() // 1_000_000, revision=self._count)
        _, key, value = message_of(state)
        self._producer.produce(self._topic, value, key)
        self._producer.flush()

    async def run(self) -> None:
        """Goes on until cancelled."""
        while True:
            await asyncio.sleep(1 / _EVENTS_PER_S)
            await asyncio.to_thread(self.publish)


@contextlib.contextmanager
def _web(bus: BusSettings) -> Iterator[tuple[str, int]]:
    """The command; gives its address and the id of its process."""
    environment = {
        **os.environ,
        "FEATUREWATCH_WEB__MAX_STREAMS_PER_CLIENT": str(_CLIENTS),
        "FEATUREWATCH_WEB__MAX_REQUESTS_PER_S": "1e9",
    }
    command = [*FEATUREWATCH, "web", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    command += ["--port", "0"]
    how = {"cwd": REPOSITORY, "env": environment, "stderr": subprocess.PIPE}
    with popen(command, **how) as process:
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"the page: (http://\S+)/", line)
            if found:
                yield found[1], process.pid
                return
    raise RuntimeError("featurewatch web did not start")


async def _follow(address: str, pid: int, publisher: _Publisher) -> tuple[float, int]:
    """The share of a core that the page takes while clients follow it, and what they received."""
    received = 0

    async def follow(client: ClientSession) -> None:
        nonlocal received
        async with client.get(f"{ROOT}/events") as stream:
            async for part in stream.content.iter_any():
                received += len(part)

    connector = TCPConnector(limit=0)
    async with ClientSession(address, connector=connector) as client:
        await _wait_until_read(client)
        publishing = asyncio.ensure_future(publisher.run())
        for _ in range(_CLIENTS):
            async with client.get(f"{ROOT}/clusters?order=urgency") as response:
                assert len((await response.json())["items"]) == 100
        followers = [asyncio.ensure_future(follow(client)) for _ in range(_CLIENTS)]
        await asyncio.sleep(2)
        before, received = _cpu_s(pid), 0
        began = time.perf_counter()
        await asyncio.sleep(_CPU_S)
        share = (_cpu_s(pid) - before) / (time.perf_counter() - began)
        assert not any(task.done() for task in followers)
        assert received > _CLIENTS * _EVENTS_PER_S * _CPU_S * 100, "the clients follow"
        for task in (publishing, *followers):
            task.cancel()
        await asyncio.gather(publishing, *followers, return_exceptions=True)
    return share, received


async def _wait_until_read(client: ClientSession) -> None:
    async with asyncio.timeout(_READ_S):
        while True:
            async with client.get(f"{ROOT}/fleet") as response:
                if (await response.json())["health"]["good"] == _CLUSTERS:
                    return
            await asyncio.sleep(0.2)


def _cpu_s(pid: int) -> float:
    """Seconds of all cores that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
