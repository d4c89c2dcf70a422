"""The real Alertmanager: alerts arrive in one notification, change, resolve, survive restarts."""

from dataclasses import replace
from pathlib import Path

from featurewatch.cli.runtime.notify.run import send_trials
from featurewatch.integrations.notify.alert_labels import TEST, WATCHDOG
from featurewatch.streams.outputs import AlertState, Severity
from tests.integrations.notify.alertmanager_process import AlertmanagerProcess, notifications, sizes
from tests.integrations.notify.receivers import receiver
from tests.integrations.notify.running import alert, notifying, now_ms, put, settings_of
from tests.streams.bus.mock_bus import MockBus
from tests.waiting import until_async


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
            # Nobody sends any more: Alertmanager ends firing alerts after four intervals.
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
