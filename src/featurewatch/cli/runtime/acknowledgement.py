"""Publishes acknowledgements of alerts, and waits until a worker has applied them."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from typing import Final

from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.cluster_states import ClusterStates
from featurewatch.common.text import quoted
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.events import Acknowledgement
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.tables.fold.acknowledgements import ACKNOWLEDGEABLE

_APPLIED_S: Final = 15.0


def acknowledge_alerts(bus: BusSettings, ids: Sequence[str], by: str, reason: str) -> bool:
    """Whether a worker ended all of these alerts in time.

    Raises:
        UsageError: One of them does not fire, or ends by its condition alone; nothing is published.
    """
    with contextlib.closing(ClusterStates(bus)) as states:
        alerts = [_acknowledgeable(states, alert_id) for alert_id in ids]
        asyncio.run(_publish(bus, alerts, quoted(by), quoted(reason)))
        deadline = time.monotonic() + _APPLIED_S
        while any(states.alerts[alert.id].state is AlertState.FIRING for alert in alerts):
            if time.monotonic() > deadline:
                return False
            for _ in states.poll(0.5):
                pass
    return True


def _acknowledgeable(states: ClusterStates, alert_id: str) -> Alert:
    alert = states.alerts.get(alert_id)
    if alert is None or alert.state is not AlertState.FIRING:
        raise UsageError(f"no alert {quoted(alert_id)} fires: `alerts --json` shows the ids")
    if alert.rule not in ACKNOWLEDGEABLE:
        raise UsageError(
            f"{quoted(alert_id)} ends when its condition does; only alerts about past events can "
            f"be acknowledged: {', '.join(ACKNOWLEDGEABLE)}"
        )
    return alert


async def _publish(bus: BusSettings, alerts: Iterable[Alert], by: str, reason: str) -> None:
    async with Publisher(bus) as publisher:
        for alert in alerts:
            event = Acknowledgement(alert.cluster, alert.id, by, reason, wall_clock_ms())
            await (await publisher.publish(METADATA_LOG, event))
