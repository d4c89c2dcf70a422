"""The real Alertmanager: alerts arrive in one notification, change, resolve, survive restarts."""

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson
import yaml

from featurewatch.cli.runtime.notify.run import send_trials
from featurewatch.monitoring.notify.alert_labels import TEST, WATCHDOG
from featurewatch.streams.outputs import AlertState, Severity
from tests.monitoring.notify.receivers import receiver
from tests.monitoring.notify.running import alert, notifying, now_ms, put, settings_of
from tests.monitoring.tools import alertmanager
from tests.processes import free_port
from tests.streams.mock_bus import MockBus
from tests.waiting import until_async

DEADLINE_S = 90.0


class AlertmanagerProcess:
    """A process of its own, which notifies a webhook; use as a context, and start it again."""

    def __init__(self, directory: Path, notified_url: str) -> None:
        self._command = alertmanager()
        self._directory = directory
        receivers = [
            {
                "name": "people",
                "webhook_configs": [{"url": notified_url, "send_resolved": True}],
            }
        ]
        route = {
            "receiver": "people",
            "group_by": ["kafka_cluster", "alertname"],
            "group_wait": "1s",
            "group_interval": "1s",
            "repeat_interval": "1h",
        }
        config = {"route": route, "receivers": receivers}
        (directory / "am.yml").write_text(yaml.safe_dump(config))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._command,
                    "--config.file=am.yml",
                    "--storage.path=data",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--cluster.listen-address=",
                ],
                cwd=self._directory,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    async def firing(self) -> dict[str, dict[str, Any]]:
        """The alerts about nodes that fire there, by node; empty while it starts."""
        url = f"{self.url}/api/v2/alerts?active=true"
        try:
            async with aiohttp.ClientSession() as http, http.get(url) as response:
                alerts = await response.json()
        except aiohttp.ClientError:
            return {}
        return {alert["labels"]["node"]: alert for alert in alerts if "node" in alert["labels"]}

    async def until_firing(self, *nodes: str) -> dict[str, dict[str, Any]]:
        """The alerts once they are about these nodes."""
        deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
        while (firing := await self.firing()).keys() != {*nodes}:
            log = (self._directory / "log").read_text()[-1000:]
            assert asyncio.get_running_loop().time() < deadline_s, (firing, log)
            await asyncio.sleep(0.2)
        return firing


def notifications(bodies: list[bytes], alertname: str) -> list[dict[str, Any]]:
    """What Alertmanager told people of one kind of alert."""
    groups = [orjson.loads(body) for body in bodies]
    return [group for group in groups if group["groupLabels"].get("alertname") == alertname]


def sizes(bodies: list[bytes], alertname: str) -> list[int]:
    """The numbers of alerts in the notifications of one kind."""
    return [len(group["alerts"]) for group in notifications(bodies, alertname)]


async def test_alerts_arrive_group_change_resolve_and_survive_restarts(tmp_path: Path) -> None:
    """Of Alertmanager and of this process; 50 alerts of one cluster are notified of together."""
    bus = MockBus()
    old_ms = now_ms() - 3_600_000
    alerts = [replace(alert(node), since_ms=old_ms) for node in range(50)]
    put(bus, *alerts)
    name = "FeaturewatchIncompatibleNode"
    async with receiver() as people:
        manager = AlertmanagerProcess(tmp_path, people.url)
        settings = settings_of(bus, tmp_path, alertmanagers=[manager.url], resend_s=1)
        with manager:
            async with notifying(settings):
                firing = await manager.until_firing(*(str(node) for node in range(50)))
                assert firing["7"]["labels"]["kafka_cluster"] == "a-cluster"
                assert firing["7"]["annotations"]["summary"] == "Broker 7 must be upgraded."
                # They came in one request. Alertmanager flushes what began long ago at once, and
                # may be in the middle of it: then the rest is in the next notification.
                await until_async(lambda: 50 in sizes(people.bodies, name))
                assert sizes(people.bodies, name).index(50) < 5

                # The severity is a label: the old one ends in the request that begins the new.
                ended = [
                    replace(each, state=AlertState.RESOLVED, at_ms=now_ms()) for each in alerts[2:]
                ]
                put(bus, replace(alerts[1], severity=Severity.WARNING), *ended)
                firing = await manager.until_firing("0", "1")
                assert firing["1"]["labels"]["severity"] == "warning"
        with manager:  # it was killed, and comes back without what it had not stored
            async with notifying(settings):
                await manager.until_firing("0", "1")
            put(bus, replace(alerts[0], state=AlertState.RESOLVED, at_ms=now_ms()))
            async with notifying(settings):  # what ended meanwhile ends there, too
                await manager.until_firing("1")
            # Nobody sends any more: what fires ends by itself after four intervals.
            await manager.until_firing()


async def test_the_trial_and_the_watchdog_arrive(tmp_path: Path) -> None:
    """Alertmanager accepts both as they are."""
    bus = MockBus()
    put(bus, alert(1))
    async with receiver() as people:
        manager = AlertmanagerProcess(tmp_path, people.url)
        settings = settings_of(bus, tmp_path, alertmanagers=[manager.url], resend_s=1)
        with manager:
            async with notifying(settings):
                await until_async(lambda: bool(notifications(people.bodies, WATCHDOG)))
            assert await send_trials(settings.notify_settings()) == {manager.url: ""}
            await until_async(lambda: bool(notifications(people.bodies, TEST)))
