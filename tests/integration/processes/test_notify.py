"""Notifications of ``featurewatch up`` on real Kafka: what the worker finds reaches people once."""

import asyncio
import base64
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import pytest
import yaml
from aiohttp import web

from featurewatch.common.private_files import write_private
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.streams.topics import METADATA_LOG
from tests.cli.commands import featurewatch
from tests.integration.published import PublishedOutputs
from tests.integrations.notify.alertmanager_process import AlertmanagerProcess
from tests.integrations.notify.receivers import SECRETS, Receiver, receiver
from tests.processes import Process, free_port
from tests.waiting import until_async

pytestmark = pytest.mark.stack

NAME = "FeaturewatchUnreadable"
RESEND_S = 20


def configuration(
    directory: Path, cluster: Cluster, managers: list[str], hooks: dict[str, Receiver]
) -> Path:
    """A file with the cluster and where its alerts go."""
    secret = directory / "secret"
    write_private(secret, "whsec_" + base64.b64encode(SECRETS[0]).decode())
    webhooks = [
        {"name": name, "url": hook.url, "secret_file": str(secret), "private": True}
        for name, hook in hooks.items()
    ]
    settings = {
        "clusters": [{"name": "orders", "servers": cluster.bootstrap_servers}],
        "notify": {"alertmanagers": managers, "webhooks": webhooks, "resend_s": RESEND_S},
    }
    file = directory / "featurewatch.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file


def notified(people: Receiver) -> list[tuple[str, str, int]]:
    """Notifications of one Alertmanager: state, cluster's name, number of alerts."""
    groups = [orjson.loads(body) for body in people.bodies]
    return [
        (group["status"], group["commonLabels"]["cluster_name"], len(group["alerts"]))
        for group in groups
        if group["groupLabels"].get("alertname") == NAME
    ]


def delivered(hook: Receiver) -> list[tuple[str, str]]:
    """The states and ids of the events that a webhook got."""
    return [
        (orjson.loads(body)["data"]["state"], event_id)
        for body, event_id in zip(hook.bodies, hook.ids, strict=True)
    ]


async def until_it_is(wanted: Callable[[], Awaitable[bool]], process: Process) -> None:
    """Waits for something that must be asked for."""
    deadline = asyncio.get_running_loop().time() + 120
    while not await wanted():
        assert asyncio.get_running_loop().time() < deadline, process.log.read_text()[-3000:]
        await asyncio.sleep(0.2)


async def test_an_alert_reaches_people_once_whoever_is_killed(
    bus: Cluster, quorum_430: Cluster, tmp_path: Path
) -> None:
    """Two real Alertmanagers and a webhook get what the worker finds, beside targets that hang and
    refuse. It is notified of once although `up` is killed and started again, ends everywhere
    although an Alertmanager was down at that moment, and one that was killed gets it again."""
    prefix = f"notify-{uuid.uuid4().hex[:8]}"
    published = PublishedOutputs(bus, prefix)
    on_bus = BusSettings(bus.bootstrap_servers, prefix=prefix, replication_factor=1)

    async def publish_unreadable() -> None:
        async with Publisher(on_bus) as publisher:
            key = quorum_430.cluster_id.encode()
            await publisher.send(on_bus.topic(METADATA_LOG), Message(key, b"{", []))

    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        people = [await enter(receiver()), await enter(receiver())]
        hook, hanging = await enter(receiver()), await enter(receiver(None))
        refusing = await enter(receiver(lambda number: web.Response(status=(500, 400)[number % 2])))
        managers = []
        for number, each in enumerate(people):
            directory = tmp_path / f"manager-{number}"
            directory.mkdir()
            managers.append(stack.enter_context(AlertmanagerProcess(directory, each.url)))
        urls = [f"http://127.0.0.1:{each.port}" for each in (hanging, refusing)]
        urls += [manager.url for manager in managers]
        hooks = {"hanging": hanging, "oncall": hook}
        config = configuration(tmp_path, quorum_430, urls, hooks)
        ports = {
            f"FEATUREWATCH_WEB__{name}_PORT": str(free_port()) for name in ("SOURCE", "NOTIFY")
        }
        up = Process(
            "up",
            ["up", "--config", str(config), *published.flags],
            tmp_path,
            {**ports, "FEATUREWATCH_WEB__PAGE_PORT": "0"},
        )
        stack.callback(up.kill)
        up.start()

        await asyncio.to_thread(
            published.state, quorum_430.cluster_id, lambda state, _: state.ready, [up]
        )
        await publish_unreadable()
        fired = [("firing", "orders", 1)]
        await until_async(lambda: [notified(each) for each in people] == [fired] * 2)
        await until_async(lambda: [state for state, _ in delivered(hook)] == ["firing"])

        # Killed and started again: the worker has nothing new, and so nobody hears anything.
        up.kill()
        marks = [len(each.bodies) for each in (hanging, refusing)]
        up.start()
        targets = hanging, refusing
        await until_async(
            lambda: all(len(one.bodies) > mark for one, mark in zip(targets, marks, strict=True))
        )
        assert [notified(each) for each in people] == [fired] * 2
        assert len({event_id for _, event_id in delivered(hook)}) == 1

        # It ends while one of them is down; that one was ended in order, and learns of it.
        managers[0].end()
        alert = f"{quorum_430.cluster_id}/unreadable/record/MESSAGE"
        flags = ["alerts", "acknowledge", alert, "--reason", "a test", *published.flags]
        done = await asyncio.to_thread(featurewatch, tmp_path, *flags)
        assert done.returncode == 0, done.stderr
        over = [*fired, ("resolved", "orders", 1)]
        await until_async(lambda: notified(people[1]) == over)
        await until_async(lambda: delivered(hook)[-1][0] == "resolved")
        managers[0].__enter__()
        await until_async(lambda: notified(people[0]) == over)

        # Killed without a chance to store anything: it gets what fires again.
        await publish_unreadable()
        again = over + fired
        await until_async(lambda: notified(people[1]) == again)
        managers[1].__exit__()
        managers[1].__enter__()

        async def fires() -> bool:
            return NAME in [alert["labels"]["alertname"] for alert in await managers[1].alerts()]

        await until_it_is(fires, up)
        states = [state for state, _ in delivered(hook)]
        assert sorted(set(states), key=states.index) == ["firing", "resolved"]
        assert len({event_id for _, event_id in delivered(hook)}) == 3
        assert notified(people[0]) == again
    assert "Traceback" not in up.log.read_text()
