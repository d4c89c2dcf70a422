"""What a monitor says of a cluster, as JSON: ``monitored.py CONTROLLERS``.

The metadata log is read from its start, and two hours pass after its end.
"""

import sys
from dataclasses import replace

import orjson

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.runtime.cluster_image import LogReading, read_image
from featurewatch.monitor.readiness import Limits
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import Event, SourceStatus
from featurewatch.streams.outputs import Alert
from featurewatch.web.documents import ClusterFacts, cluster_document

HOUR_MS = 3_600_000
LIMITS = Limits(ghost_ms=1000, upgrade_ms=1000, refusal_ms=1000)


def main(controllers: str) -> None:
    """Prints the alerts that fire at the end or fired before, and the cluster on the page."""
    events: list[Event] = []
    reading = LogReading(frozenset(), frozenset(), events.append)
    image = read_image(ClusterSection(controllers=controllers), reading=reading)
    last = next(event for event in reversed(events) if isinstance(event, SourceStatus))
    later = [replace(last, seen_ms=last.seen_ms + HOUR_MS * hours) for hours in (1, 2)]
    state, fired = MonitorState.of(image.cluster), list[Alert]()
    for event in [*events, *later]:
        result = step(state, event, limits=LIMITS)
        state = result.state
        fired += [alert for alert in result.alerts if alert.state == "firing"]
    shown = snapshot(state.image, 0)
    firing = tuple(alert for alerts in state.firing.values() for alert in alerts)
    page = cluster_document(ClusterFacts(shown, firing, {}, shown.at_ms))
    alerts = {alert.rule: alert.summary for alert in fired}
    sys.stdout.buffer.write(orjson.dumps({"alerts": alerts, "page": page}, default=list))


if __name__ == "__main__":
    main(sys.argv[1])
