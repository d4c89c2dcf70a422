"""Takes the pictures of the page that are in the documents: ``python -m tests.web.screenshots``.

They show a fleet of a made-up company in the middle of a roll from 3.9 to 4.3, in both colour
schemes, served by the page's own server. `make screenshots` runs it.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.readiness.report import release_levels
from featurewatch.monitor.readiness.upgrade_state import UpgradeState
from featurewatch.streams.outputs import Alert, Severity, Snapshot
from featurewatch.streams.types import METADATA_VERSION, ClusterId, FeatureLevel
from featurewatch.web.model import FleetModel
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.monitor.readiness.clusters import cluster, controllers, nodes
from tests.paths import ROOT
from tests.tables.images import fold_all
from tests.web.chromium import CHROMIUM, NO_CHROMIUM, running_chromium
from tests.web.rolls import publish
from tests.web.samples import alert_of, change_of, message_of, nodes_on, state_of

IMAGES: Final = ROOT / "docs" / "images"
SCHEMES: Final = ("light", "dark")
ROLLED: Final = ClusterId("payments-eu")
VIEWS: Final = {"page-fleet": ("", 600), "page-roll": (f"?view=cluster&cluster={ROLLED}", 780)}
"""The names of the pictures, and what each shows, with its height."""

MAX_BYTES: Final = 150_000
_WIDTH: Final = 1440
_MINUTE_MS: Final = 60_000
_OTHERS: Final = (
    ("payments-us", "4.3", 6, 30),
    ("orders-eu", "4.3", 9, 30),
    ("orders-us", "4.1", 9, 27),
    ("telemetry-eu", "4.3", 120, 25),
    ("telemetry-us", "3.9", 96, 20),
    ("audit", "4.0", 3, 25),
    ("billing", "3.9", 5, 21),
    ("clickstream", "3.8", 48, 20),
    ("fraud", "4.2", 6, 29),
)
"""Clusters with their release, number of brokers, and metadata.version."""


def fleet(now_ms: int) -> Iterator[Snapshot | Alert]:
    """The clusters beside the one that is rolled, and what fires."""
    for name, release, count, level in _OTHERS:
        yield state_of(
            name,
            nodes_on(release, *range(1, count + 1)),
            level=level,
            revision=level - 14,
            at_ms=now_ms - 2_000,
            finalized={
                **release_levels(release_of(release)),
                METADATA_VERSION: FeatureLevel(level),
            },
        )
    yield state_of("legacy-crm", nodes_on("3.6", 1, 2, 3), level=14, at_ms=now_ms - 47 * _MINUTE_MS)
    yield alert_of(
        "telemetry-us",
        17,
        severity=Severity.WARNING,
        rule="finalization-forgotten",
        since_ms=now_ms - 90 * _MINUTE_MS,
        at_ms=now_ms,
    )
    yield alert_of(
        ROLLED,
        5,
        severity=Severity.WARNING,
        rule="upgrade-blocked",
        subject={"role": "broker", "node": 5},
        summary="The roll to 4.3 has not gone on for 26 h: brokers 4-6 still run 3.9.",
        since_ms=now_ms - 26 * 60 * _MINUTE_MS,
        at_ms=now_ms,
    )
    yield alert_of(
        "audit",
        2,
        summary="broker 2 is fenced and supports metadata.version 1-21: start it on 4.0 to 4.3.",
        since_ms=now_ms - 12 * _MINUTE_MS,
        at_ms=now_ms,
    )


def server(now_ms: int) -> PageServer:
    """The page of this fleet."""
    model, rows = FleetModel("pictures"), WorkerRows()
    rows.end_reading()
    releases = ("4.3", "4.3", "4.3", "3.9", "3.9", "3.9")
    image = fold_all(cluster(*nodes(*releases), *controllers("4.3", "4.3", "4.3"), level=21))
    publish(replace(image, cluster=ROLLED), model, rows, now_ms)
    for output in fleet(now_ms):
        model.apply(*message_of(output), now_ms)
    for days, (name, *_) in enumerate(_OTHERS, start=3):
        since_ms = now_ms - days * 1440 * _MINUTE_MS
        states = {str(state): since_ms for state in UpgradeState}
        model.set_times(ClusterId(name), states, now_ms)
    change = change_of(ROLLED, before=FeatureLevel(20), after=FeatureLevel(21), revision=7)
    model.apply(*message_of(replace(change, append_ms=now_ms - 40 * 1440 * _MINUTE_MS)), now_ms)
    model.error = None
    model.end_reading(now_ms)
    return PageServer(PageSettings(port=0), model, rows, _now_ms, lambda: 0.0)


async def take(directory: Path) -> list[Path]:
    """Writes the pictures to a directory, and returns their paths."""
    from playwright.async_api import expect

    served, paths = server(_now_ms()), []
    async with served.serving(), running_chromium() as browser:
        for scheme in SCHEMES:
            context = await browser.new_context(color_scheme=scheme)
            page = await context.new_page()
            for name, (query, height) in VIEWS.items():
                await page.set_viewport_size({"width": _WIDTH, "height": height})
                await page.goto(served.url + query)
                await expect(page.locator("tbody th").first).to_be_visible(timeout=30_000)
                await expect(page.locator(".fresh")).to_contain_text("live", timeout=30_000)
                paths.append(directory / f"{name}-{scheme}.png")
                await page.screenshot(path=paths[-1])
            await context.close()
    return paths


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def main() -> int:
    """Takes them into docs/images; 1 if there is no Chromium."""
    if CHROMIUM is None:
        sys.stderr.write(f"{NO_CHROMIUM}\n")
        return 1
    for path in asyncio.run(take(IMAGES)):
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
