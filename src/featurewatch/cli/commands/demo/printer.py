"""Prints the demo: as text for people, or as one JSON line per event."""

import time
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from featurewatch.cli.commands.readiness.rendering import essence
from featurewatch.cli.output import rendering
from featurewatch.monitor.readiness import ReadinessReport
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot


class DemoPrinter:
    """Prints events in order; may be called from several threads, a line at a time."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console: Console = rendering.console()
        self._began = time.monotonic()

    def step(self, title: str) -> None:
        """Prints the beginning of a new act."""
        self._print({"event": "step", "title": title}, Text(f"\n● {title}", style="bold cyan"))

    def did(self, text: str) -> None:
        """Prints an action on the cluster, or an observation of it."""
        self._print({"event": "progress", "text": text}, Text(f"  {text}"))

    def refused(self, request: str, message: str, blockers: list[dict[str, Any]]) -> None:
        """Prints a refusal of Kafka: its text, and every blocker."""
        text = Text("  Kafka refuses ", style="yellow")
        text.append(f"{request}: {message}")
        if blockers:
            text.append("\n").append_text(_named(blockers))
        self._print(
            {"event": "refused", "request": request, "message": message, "blockers": blockers}, text
        )

    def blockers(self, blockers: list[dict[str, Any]]) -> None:
        """Prints every node that is a reason of a refusal."""
        self._print({"event": "blockers", "blockers": blockers}, _named(blockers))

    def verdict(self, report: ReadinessReport) -> None:
        """The report of ``featurewatch readiness`` in short: what is to be done, the downgrade
        path."""
        if self._as_json:
            self._print({"event": "verdict", "readiness": report}, Text())
            return
        for part in essence(report):
            self._console.print(Padding(part, (0, 0, 0, 2), expand=False))

    def change(self, change: FeatureChange, delay_ms: float) -> None:
        """Prints a change on its topic, and how long after Kafka's append it arrived."""
        line = Text("  ").append_text(rendering.change_line(change)).append(f"  +{delay_ms:.0f} ms")
        self._print({"event": "change", "delay_ms": delay_ms, "change": change}, line)

    def alert(self, alert: Alert, delay_ms: float) -> None:
        """Prints an alert on its topic."""
        line = Text("  ").append_text(rendering.alert_line(alert)).append(f"  +{delay_ms:.0f} ms")
        self._print({"event": "alert", "delay_ms": delay_ms, "alert": alert}, line)

    def state(self, snapshot: Snapshot, alerts: list[Alert]) -> None:
        """Prints the current state of the cluster."""
        if self._as_json:
            self._print({"event": "state", "snapshot": snapshot}, Text())
            return
        for part in rendering.state_view(snapshot, alerts):
            self._console.print(part)

    def summary(self, summary: dict[str, Any]) -> None:
        """Prints the end of the demo: counts and times."""
        if self._as_json:
            self._print({"event": "summary", **summary}, Text())
            return
        self._console.print(Text("\n● Summary", style="bold cyan"))
        for name, value in summary.items():
            self._console.print(f"  {name.replace('_', ' '):32} {value}")

    def _print(self, event: dict[str, Any], text: Text) -> None:
        if self._as_json:
            elapsed_s = round(time.monotonic() - self._began, 3)
            rendering.print_json({"elapsed_s": elapsed_s, **event})
        else:
            self._console.print(text, soft_wrap=True)


def _named(blockers: list[dict[str, Any]]) -> Text:
    text = Text("  featurewatch", style="bold")
    text.append(f" names every blocker ({len(blockers)}):")
    for blocker in blockers:
        text.append(f"\n    {blocker['text']}")
    return text
