"""The real Prometheus: it scrapes what processes expose, and knows every query and every rule."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.common.tasks import start_background
from featurewatch.integrations.grafana.boards import DASHBOARDS
from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.prometheus.files import ALL_RULES, RulesFormat, rules_file
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import SourceState
from featurewatch.streams.health import HealthServer, HealthViews
from featurewatch.streams.metrics import SourceReport, exposition
from featurewatch.streams.topics import METADATA_LOG
from tests.agents.events import CLUSTER, following, levels, quorum, registration
from tests.integrations.tools import tool
from tests.processes import free_port
from tests.simulation import znodes as z
from tests.simulation.engine import Engine

DEADLINE_S = 90.0
VALUES = {
    "$kafka_cluster": ".+",
    "$feature": ".+",
    "$__rate_interval": "1m",
    "$__range": "1m",
}


def worker_metrics() -> WorkerMetrics:
    """Those of a worker after a registration, a change and an alert, with a second cluster.

    That one is in ZooKeeper, of the early draft, and has a feature at level 0: no other has the
    gauge of such levels.
    """
    metrics, state = WorkerMetrics(), MonitorState.of(CLUSTER)
    changed = levels(2, {"metadata.version": 30})
    for event in (registration(1, 1, (1, 19)), changed, following(2), quorum()):
        result = step(state, event)
        state = result.state
        metrics.observe(METADATA_LOG, result, 0.001)
    draft = Engine()
    znodes = [z.broker(1, {"group": (0, 2)}, 10), z.early_features(0, group=0)]
    draft.apply_all([*z.reading("s1", znodes, 50), z.following(600)])
    metrics.expose({CLUSTER: state, draft.cluster: draft.state})
    return metrics


@contextlib.asynccontextmanager
async def prometheus(directory: Path, targets: list[int]) -> AsyncIterator[aiohttp.ClientSession]:
    """A Prometheus that scrapes ports of this machine and has the rules, as a client of it."""
    program = tool("prometheus")
    name, text = rules_file(RulesFormat.PROMETHEUS, "https://r", "https://p")
    (directory / name).write_text(text)
    static = [{"targets": [f"127.0.0.1:{port}" for port in targets]}]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [name],
        "scrape_configs": [{"job_name": "featurewatch", "static_configs": static}],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            cwd=directory,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            yield client
    finally:
        process.kill()
        process.wait()


async def get(client: aiohttp.ClientSession, path: str, **parameters: str) -> Any:
    """The data of an answer of Prometheus; None while it starts."""
    try:
        async with client.get(path, params=parameters) as response:
            if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
                return None
            body = await response.json()
    except aiohttp.ClientConnectorError:
        return None
    assert body["status"] == "success", body
    return body["data"]


async def until_series(client: aiohttp.ClientSession, expression: str) -> Any:
    """The series of an expression, once there are any."""
    deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
    data = None
    while asyncio.get_running_loop().time() < deadline_s:
        data = await get(client, "/api/v1/query", query=expression)
        if data and data["result"]:
            return data["result"]
        await asyncio.sleep(0.3)
    raise AssertionError(f"{expression} gives no series: {data}")


async def _wait() -> None:
    await asyncio.Event().wait()


async def test_each_query_gives_a_series_and_each_rule_is_evaluated(tmp_path: Path) -> None:
    """On what a worker and a source expose; and the alert of the incompatible node arrives."""
    worker, report = worker_metrics(), SourceReport(CLUSTER, "kraft", SourceState.FOLLOWING)
    notify = NotifyMetrics()
    notify.add_target("oncall")
    views = [
        HealthViews(lambda: notify.render, lambda: (True, {})),
        HealthViews(worker.scrape, lambda: (True, {})),
        HealthViews(lambda: lambda: exposition([report]), lambda: (True, {})),
    ]
    async with contextlib.AsyncExitStack() as stack:
        # Any task: those of other tests in this process would hide that there is none.
        task = start_background("a task of this test", _wait)
        stack.push_async_callback(task.close)
        servers = [await stack.enter_async_context(HealthServer(view, port=0)) for view in views]
        client = await stack.enter_async_context(
            prometheus(tmp_path, [server.port for server in servers])
        )
        for board in DASHBOARDS:
            for panel in board.panels:
                for query in panel.queries.values():
                    for variable, value in VALUES.items():
                        query = query.replace(variable, value)
                    await until_series(client, query)
        await until_series(client, 'ALERTS{alertname="FeaturewatchIncompatibleNode"}')
        groups = (await get(client, "/api/v1/rules"))["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) == len(ALL_RULES)
        assert {(rule["health"], rule.get("lastError")) for rule in rules} == {("ok", None)}
        alerts = [alert for rule in rules for alert in rule["alerts"]]
        (incompatible,) = [
            alert["annotations"]
            for alert in alerts
            if alert["labels"]["alertname"] == "FeaturewatchIncompatibleNode"
        ]
        assert incompatible["page"] == f"https://p/?view=cluster&cluster={CLUSTER}"
        assert f"featurewatch alerts --cluster {CLUSTER}" in incompatible["description"]
