"""A real cluster is rolled from Kafka 3.9.1 to 4.3.0, and the open page follows it to its end."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, combined
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.types import FeatureName
from tests.integration.processes.level_flips import update_level
from tests.processes import Process, wait_ready
from tests.web.chromium import ARGUMENTS, CHROMIUM, NO_CHROMIUM

OLD, NEW = "3.9.1", "4.3.0"
DEADLINE_MS = 90_000

pytestmark = [
    pytest.mark.stack,
    pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM),
]


@contextmanager
def followed(cluster: Cluster, bus: Cluster, directory: Path) -> Iterator[str]:
    """A source, a worker and the page of a cluster; gives the address of the page."""
    settings = BusSettings(
        bus.bootstrap_servers, prefix=f"page-roll-{cluster.cluster_id}", replication_factor=1
    )
    ensure_topics(settings)
    on_bus = ["--bus", settings.bootstrap_servers, "--prefix", settings.prefix]
    watched = ["--controllers", cluster.controllers, "--cluster-id", cluster.cluster_id]
    page = Process("page", ["web", *on_bus], directory)
    page.environment["FEATUREWATCH_WEB__PAGE_PORT"] = str(page.port)
    worker = Process("worker", ["worker", *on_bus], directory)
    processes = [Process("watch", ["watch", *watched, *on_bus], directory), worker, page]
    try:
        for process in processes:
            process.start()
        wait_ready(processes)
        yield f"http://127.0.0.1:{page.port}/?view=cluster&cluster={cluster.cluster_id}"
    finally:
        for process in processes:
            process.kill()


def test_a_real_roll_is_followed_without_a_reload(
    make_cluster: Callable[[ClusterSpec], Cluster], bus: Cluster, tmp_path: Path
) -> None:
    """Each node, the verdict that turns to ready, the level that is raised, and its change."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: install the dependency group web"
    )
    cluster = make_cluster(combined([OLD] * 3, "3.9-IV0"))
    with followed(cluster, bus, tmp_path) as address, api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()

        def shows(place: str, text: str) -> None:
            api.expect(page.locator(place).first).to_contain_text(text, timeout=DEADLINE_MS)

        page.goto(address)
        shows("dl.facts", "3 of 3 nodes on 3.9")
        page.evaluate("window.isSamePage = true")
        for count, node in enumerate(cluster.nodes, start=1):
            node.stop()
            node.start(NEW)
            shows("dl.facts", f"{count} of 3 nodes on 4.3")
        shows("#left dd", "none")
        shows("dl.facts", "ready to finalize")
        shows(".verdict .good", "ready")
        # Playwright has the event loop of this thread.
        with ThreadPoolExecutor() as threads:
            threads.submit(update_level, cluster, FeatureName("metadata.version"), 30).result()
        shows("tr.strong", "30 (4.3-IV0)")
        api.expect(page.get_by_text("21 (3.9-IV0) → 30 (4.3-IV0)")).to_be_visible(
            timeout=DEADLINE_MS
        )
        page.get_by_role("link", name="History").click()
        shows("tbody th", "2")
        assert page.evaluate("window.isSamePage") is True
        browser.close()
