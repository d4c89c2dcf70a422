"""``roll_picture_ms``: the picture of a year of a cluster with 300 nodes, in Chromium.

It is the median time from the click on the view's link to the frame after the bands were drawn, and
has the request, the answer, and all work of the page. The baseline is the request of the document
alone. Every node is restarted in each of 12 rolls, seen fenced, away and back, beside four changes
of a level and a hundred alerts. It needs Chromium on the PATH and the dependency group ``web``.
"""

import statistics
import time
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

from tests.bench.requirements import MissingRequirementError
from tests.web.chromium import ARGUMENTS, CHROMIUM, NO_CHROMIUM
from tests.web.served_roll import CLUSTER, served_roll

NODES: Final = 300
LOADS: Final = 7
_DEADLINE_S: Final = 60.0

_DRAW: Final = """
async () => {
  const link = [...document.querySelectorAll('.tabs a')].find((a) => a.textContent === 'Picture');
  const began = performance.now();
  link.click();
  await new Promise((resolve) => {
    const isDrawn = () => document.querySelector('.picture path.band');
    const look = () => (isDrawn() ? resolve() : setTimeout(look, 1));
    look();
  });
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
  return performance.now() - began;
}
"""
"""Goes to the picture; the milliseconds until it was painted."""


def run() -> Iterator[dict[str, Any]]:
    """The measure, with the page as a separate process."""
    if CHROMIUM is None:
        raise MissingRequirementError(NO_CHROMIUM)
    # Every process that collects the tests imports this module.
    from playwright.sync_api import sync_playwright

    drawn, bare, spans = [], [], 0
    with served_roll(NODES) as port, sync_playwright() as playwright:
        url = f"http://127.0.0.1:{port}/"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        for _ in range(LOADS):
            bare.append(_load_ms(f"{url}api/v1/clusters/{CLUSTER}/picture"))
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(f"{url}?view=migration&cluster={CLUSTER}")
            page.wait_for_selector(".verdict", timeout=_DEADLINE_S * 1e3)
            drawn.append(page.evaluate(_DRAW))
            page.context.close()
        with urllib.request.urlopen(  # noqa: S310 - loopback
            f"{url}api/v1/clusters/{CLUSTER}/picture", timeout=_DEADLINE_S
        ) as response:
            spans = response.read().count(b"],[")
        browser.close()
    value, baseline = statistics.median(drawn), statistics.median(bare)
    yield {
        "measure": "roll_picture_ms",
        "unit": "ms",
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "ratio": round(value / baseline, 2),
        "worst": round(max(drawn), 1),
        "nodes": NODES,
        "spans": spans,
    }


def _load_ms(url: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=_DEADLINE_S) as response:  # noqa: S310 - loopback
        response.read()
    return (time.perf_counter() - began) * 1e3
