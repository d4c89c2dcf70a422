"""A real Alertmanager, and what it notifies people of."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson
import yaml

from tests.integrations.tools import alertmanager
from tests.processes import free_port

DEADLINE_S = 90.0


class AlertmanagerProcess:
    """A separate process that notifies a webhook; use as a context, and start it again."""

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

    def end(self) -> None:
        """Ends it in order: it stores what it has notified of."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    async def alerts(self) -> list[dict[str, Any]]:
        """The alerts that fire there; none while it starts."""
        url = f"{self.url}/api/v2/alerts?active=true"
        try:
            async with aiohttp.ClientSession() as http, http.get(url) as response:
                return list(await response.json())
        except aiohttp.ClientError:
            return []

    async def firing(self) -> dict[str, dict[str, Any]]:
        """The alerts about nodes that fire there, by node."""
        alerts = await self.alerts()
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
