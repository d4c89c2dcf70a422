"""``featurewatch notify`` on a bus: each target gets what comes, whatever the others do."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import aiohttp
import orjson
import pytest
from aiohttp import web

from featurewatch.cli.config.settings import load
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.notify.run import run_notify, run_notify_beside
from featurewatch.common.private_files import write_private
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.topics import ALERTS
from tests.cli.commands import featurewatch
from tests.integrations.notify.receivers import SECRETS, accept, receiver
from tests.integrations.notify.running import alert, notifying, now_ms, put, settings_of
from tests.streams.bus.mock_bus import MockBus
from tests.waiting import until_async


async def test_a_target_that_hangs_stops_nobody_else(tmp_path: Path) -> None:
    """Neither another webhook nor another Alertmanager; and /metrics and /readyz name it."""
    bus = MockBus()
    put(bus, alert(1))
    async with (
        receiver(None) as hanging,
        receiver() as good,
        receiver(None) as stuck,
        receiver(lambda _: web.Response(text="{}")) as member,
    ):
        members = [f"http://127.0.0.1:{each.port}" for each in (stuck, member)]
        hooks = ("hanging", hanging), ("good", good)
        settings = settings_of(bus, tmp_path, *hooks, alertmanagers=members, resend_s=1)
        async with notifying(settings):
            await until_async(lambda: bool(good.bodies and hanging.bodies and stuck.bodies))
            put(bus, alert(2), alert(3))
            await until_async(lambda: good.nodes() == [1, 2, 3])
            await until_async(lambda: any(b'"node":"3"' in body for body in member.bodies))
            assert member.paths[0] == "/api/v2/alerts"
            url = f"http://127.0.0.1:{settings.web.notify_port}"
            async with aiohttp.ClientSession(url) as http, http.get("/metrics") as response:
                text = await response.text()
    assert 'featurewatch_notify_sent_total{target="good"} 3.0' in text
    assert 'featurewatch_build_info{process="notify"' in text


async def test_each_target_keeps_its_place(tmp_path: Path) -> None:
    """After a restart it continues where it was: nothing is lost, and nothing delivered is sent
    again."""
    bus = MockBus()
    put(bus, alert(1), alert(2))
    is_refused = True

    def answer(_: int) -> web.Response:
        return web.Response(status=503 if is_refused else 204)

    async with receiver() as good, receiver(answer) as late:
        settings = settings_of(bus, tmp_path, ("good", good), ("late", late))
        async with notifying(settings):
            await until_async(lambda: good.nodes() == [1, 2] and bool(late.bodies))
        is_refused = False
        put(bus, alert(3))
        late.bodies.clear()
        ids = late.ids[:1]
        async with notifying(settings):
            await until_async(lambda: good.nodes() == [1, 2, 3] and late.nodes() == [1, 2, 3])
        assert late.ids[-3] == ids[0]


async def test_begins_changes_and_ends_are_delivered_in_order(tmp_path: Path) -> None:
    """Each message of an alert is a separate event; unreadable messages are skipped."""
    bus = MockBus()
    firing = alert(1)
    ended = replace(firing, state=AlertState.RESOLVED, at_ms=now_ms() + 1, summary="Resolved")
    put(bus, firing)
    bus.put(bus.settings.topic(ALERTS), b"k", b"nonsense", 0)
    put(bus, ended, alert(2))
    async with receiver(accept) as received:
        async with notifying(settings_of(bus, tmp_path, ("oncall", received))):
            await until_async(lambda: received.nodes() == [1, 1, 2])
        assert len(set(received.ids)) == 3
        assert [b'"resolved"' in body for body in received.bodies] == [False, True, False]


async def test_beside_other_work_it_waits_for_the_topics(tmp_path: Path) -> None:
    """As ``up`` runs it: nothing is read before the topics exist, and a taken port ends nothing."""
    bus, topics_exist = MockBus(), asyncio.Event()
    put(bus, alert(1))
    async with receiver() as received:
        settings = settings_of(bus, tmp_path, ("oncall", received))
        tasks = [asyncio.ensure_future(run_notify_beside(settings, topics_exist)) for _ in "12"]
        try:
            url = f"http://127.0.0.1:{settings.web.notify_port}/healthz"
            async with aiohttp.ClientSession() as http:
                while not await answers(http, url):
                    await asyncio.sleep(0.1)
            assert received.bodies == []
            topics_exist.set()
            await until_async(lambda: received.nodes() == [1])
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_beside_other_work_a_failure_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Sources, worker and page of ``up`` continue, and the notifications are started again."""

    async def fail(*_: object) -> None:
        raise TypeError("a fault")

    monkeypatch.setattr("featurewatch.cli.runtime.notify.run.run_notify", fail)
    settings = settings_of(MockBus(), tmp_path)
    task = asyncio.ensure_future(run_notify_beside(settings, asyncio.Event()))
    try:
        await until_async(lambda: "restarts in 15 s (TypeError: a fault)" in caplog.text)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def answers(http: aiohttp.ClientSession, url: str) -> bool:
    """Whether somebody listens."""
    try:
        async with http.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


def configuration(directory: Path, text: str) -> None:
    """A configuration file and a good secret."""
    write_private(directory / "secret", "whsec_" + base64.b64encode(SECRETS[0]).decode())
    write_private(directory / "bad", "password")
    (directory / "c.yaml").write_text(text)


HOOK = "url: 'https://h/', secret_file: secret"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "there is no target: set notify.alertmanagers or notify.webhooks"),
        ("notify: {alertmanager: [x]}", "did you mean alertmanagers?"),
        ("notify: {alertmanagers: ['am:9093']}", "notify.alertmanagers.0"),
        ("notify: {alertmanagers: ['http://u:p@am:9093']}", "set authorization_file"),
        ("notify: {alertmanagers: ['http://am'], resend_s: 0}", "notify.resend_s"),
        ("notify: {webhooks: [{name: 'a b', " + HOOK + "}]}", "notify.webhooks.0.name"),
        ("notify: {webhooks: [{name: a, secret_file: secret}]}", "notify.webhooks.0.url"),
        (
            "notify: {webhooks: [{name: a, " + HOOK + "}, {name: a, " + HOOK + "}]}",
            "have the name a",
        ),
        ("notify: {webhooks: [{name: a, url: 'http://h/', secret_file: s}]}", "has https://"),
        (
            "notify: {webhooks: [{name: a, url: 'https://10.0.0.1/', secret_file: s}]}",
            "10.0.0.1 is a private address: set private: true",
        ),
        (
            "notify: {webhooks: [{name: a, url: 'https://h/', secret_file: missing}]}",
            "cannot be read",
        ),
        ("notify: {webhooks: [{name: a, url: 'https://h/', secret_file: bad}]}", "is not a secret"),
        (
            "notify: {alertmanagers: ['http://am'], authorization_file: /dev/null}",
            "does not hold one line",
        ),
    ],
)
async def test_each_mistake_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    """With the setting, what is wrong, and what to write; no secret is in it."""
    configuration(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        await run_notify(load(Path("c.yaml")))
    assert "\n" not in str(caught.value)
    assert reason in str(caught.value)
    assert "password" not in str(caught.value)


async def test_a_test_goes_to_each_target(tmp_path: Path) -> None:
    """Without a bus; each target has a line, and the exit code says whether one failed."""
    async with receiver() as good, receiver(lambda _: web.Response(status=404)) as bad:
        hook = {"name": "hook", "url": good.url, "secret_file": "secret", "private": True}
        members = [f"http://127.0.0.1:{bad.port}"]
        text = orjson.dumps({"notify": {"alertmanagers": members, "webhooks": [hook]}})
        configuration(tmp_path, text.decode())  # JSON is YAML
        arguments = ("notify", "--test", "--config", "c.yaml")
        ended = await asyncio.to_thread(featurewatch, tmp_path, *arguments)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines() == [
        f"http://127.0.0.1:{bad.port}: status 404",
        "hook: accepted",
    ]
    assert b"featurewatch.test" in good.bodies[0]
