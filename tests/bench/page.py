"""``change_to_page_ms`` and ``page_1000_clusters_ms``: the page in Chromium.

The first is from the production of a cluster's state on its topic to the cell that shows its level,
in a list of 1,000 clusters that is open; the baseline is the same message at a bare consumer. The
second is from the request of the page by a browser that has stored nothing to the first row of that
list; the baseline is the request of the list alone, from the API. Both are medians. They need
Chromium on the PATH and the dependency group ``web``.
"""

import random
import statistics
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import encode_state
from featurewatch.streams.topics import STATE
from tests.bench.requirements import MissingRequirementError
from tests.processes import Process, wait_ready
from tests.web.chromium import ARGUMENTS, CHROMIUM, NO_CHROMIUM
from tests.web.samples import state_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CLUSTERS: Final = 1_000
CHANGES: Final = 60
LOADS: Final = 7
CHANGED: Final = "c-0000"
LEVELS: Final = {19: "19 (3.7-IV4)", 20: "20 (3.8-IV0)"}
PAUSE_S: Final = (0.2, 0.5)

_DEADLINE_S: Final = 60.0

_FIRST_ROW: Final = """
new MutationObserver((_, observer) => {
  if (document.querySelector('tbody th a')) {
    window.firstRowMs = performance.now();
    observer.disconnect();
  }
}).observe(document, { childList: true, subtree: true });
"""
"""Notes when the first row of the list is there, since the page was requested."""

_CELL: Final = """
(cluster) => {
  const row = document.querySelector(`tr[data-cluster="${cluster}"]`);
  window.changes = [];
  new MutationObserver(() => window.changes.push([Date.now(), row.textContent]))
    .observe(row, { childList: true, subtree: true, characterData: true });
}
"""
"""Notes each change of a cluster's row, and when it came."""


def run(bus: BusSettings, directory: Path) -> Iterator[dict[str, Any]]:
    """Both measures, with ``featurewatch web`` as a separate process."""
    if CHROMIUM is None:
        raise MissingRequirementError(NO_CHROMIUM)
    ensure_topics(bus)
    # Every process that collects the tests imports this module.
    from playwright.sync_api import sync_playwright

    producer = Producer(bus.client(linger_ms=0) | {"acks": "all"})
    for number in range(CLUSTERS):
        _publish(producer, bus, f"c-{number:04d}", 19)
    producer.flush(_DEADLINE_S)
    server = Process(
        "web", ["web", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix], directory
    )
    server.environment["FEATUREWATCH_WEB__PAGE_PORT"] = str(server.port)
    url = f"http://127.0.0.1:{server.port}/"
    try:
        server.start()
        wait_ready([server])
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
            yield _first_list(browser, url)
            yield _changes(browser, url, bus, producer)
            browser.close()
    finally:
        server.kill()


def _first_list(browser: "Browser", url: str) -> dict[str, Any]:
    lists, bare = [], []
    for _ in range(LOADS):
        bare.append(_load_ms(f"{url}api/v1/clusters?order=urgency"))
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script(_FIRST_ROW)
        page.goto(url)
        page.wait_for_selector("tbody th a", timeout=_DEADLINE_S * 1e3)
        lists.append(page.evaluate("window.firstRowMs"))
        context.close()
    return _measure("page_1000_clusters_ms", lists, bare)


def _load_ms(url: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=_DEADLINE_S) as response:  # noqa: S310 - loopback
        response.read()
    return (time.perf_counter() - began) * 1e3


def _changes(browser: "Browser", url: str, bus: BusSettings, producer: Producer) -> dict[str, Any]:
    """Each change goes to the page and to the bare consumer."""
    chance = random.Random(584)
    shown, bare = [], []
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(url)
    page.wait_for_selector(f'tr[data-cluster="{CHANGED}"]', timeout=_DEADLINE_S * 1e3)
    page.wait_for_selector(".fresh .good", timeout=_DEADLINE_S * 1e3)
    page.evaluate(_CELL, CHANGED)
    consumer = _consumer(bus)
    for number in range(CHANGES):
        level = 20 if number % 2 == 0 else 19
        time.sleep(chance.uniform(*PAUSE_S))
        began_ms = time.time() * 1e3
        _publish(producer, bus, CHANGED, level)
        producer.flush(_DEADLINE_S)
        bare.append(_arrived_ms(consumer) - began_ms)
        shown.append(_shown_ms(page, LEVELS[level]) - began_ms)
    consumer.close()
    return _measure("change_to_page_ms", shown, bare)


def _publish(producer: Producer, bus: BusSettings, cluster: str, level: int) -> None:
    now_ms = time.time_ns() // 1_000_000
    encoded = encode_state(state_of(cluster, level=level, revision=level, at_ms=now_ms))
    producer.produce(bus.topic(STATE), encoded.value, encoded.key)
    producer.poll(0)


def _consumer(bus: BusSettings) -> Consumer:
    consumer = Consumer(bus.client() | {"group.id": "bench", "enable.auto.commit": False})
    name = bus.topic(STATE)
    partitions = consumer.list_topics(name, timeout=10).topics[name].partitions
    consumer.assign([TopicPartition(name, number, -1) for number in partitions])
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        consumer.poll(0.1)
    return consumer


def _arrived_ms(consumer: Consumer) -> float:
    """The time at which the next message came, in milliseconds since the epoch."""
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return time.time() * 1e3
    raise TimeoutError("the bare consumer got nothing")


def _shown_ms(page: "Page", text: str) -> float:
    """The time at which the row had a text, in milliseconds since the epoch."""
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        for at_ms, content in page.evaluate("window.changes.splice(0)"):
            if text in content:
                return float(at_ms)
        time.sleep(0.02)
    raise TimeoutError(f"the page never showed {text}")


def _measure(name: str, values: list[float], baseline: list[float]) -> dict[str, Any]:
    value, bare = statistics.median(values), statistics.median(baseline)
    return {
        "measure": name,
        "unit": "ms",
        "value": round(value, 1),
        "baseline": round(bare, 1),
        "ratio": round(value / bare, 2),
        "worst": round(max(values), 1),
        "clusters": CLUSTERS,
    }
