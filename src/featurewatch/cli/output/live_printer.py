"""Prints changes and alerts as they come, beside the work of ``featurewatch up``."""

import logging
import os
import sys
from collections.abc import Callable
from typing import Final

from confluent_kafka import Message
from rich.text import Text

from featurewatch.cli.output import rendering, terminal
from featurewatch.streams.bus.feed import FailureLog, TopicFeed, follow_feed
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES

LOG: Final = logging.getLogger("featurewatch.cli")

MAX_KNOWN: Final = 10_000
"""The newest outputs that are remembered beside the alerts that fire: a worker that was killed
publishes its last ones again. The worker bounds the alerts of each cluster."""


class LivePrinter(TopicFeed):
    """Prints to stdout: the alerts that fire, then each change and each alert that comes, once."""

    def __init__(self, bus: BusSettings, *, as_json: bool) -> None:
        super().__init__(FailureLog(LOG, "changes and alerts are not printed"))
        self._bus = bus
        self._decoders: dict[str, Callable[[bytes | None], FeatureChange | Alert]] = {
            bus.topic(FEATURE_CHANGES): decode_change,
            bus.topic(ALERTS): decode_alert,
        }
        self._as_json = as_json
        self._console = rendering.console()
        self._firing: dict[str, Alert] = {}
        self._others: dict[str, FeatureChange | Alert] = {}
        self._is_live = False

    async def run(self) -> None:
        """Prints until cancelled, or until nobody reads stdout.

        It does so in a thread: what writes to a pipe may have to wait for its reader.
        """
        try:
            await follow_feed(self, self._bus, (FEATURE_CHANGES, ALERTS), in_loop=False)
        except BrokenPipeError:  # no reason to stop watching
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def begin(self) -> None:
        """Prints nothing until the topics have been read to their end."""
        self._is_live = False

    def apply_message(self, message: Message) -> None:
        """Prints what is new in a message."""
        if message.value() is None:
            return
        output = self._decoders[str(message.topic())](message.value())
        known = self._firing.get(output.id) or self._others.get(output.id)
        if known is None or (isinstance(output, Alert) and output != known):
            text = self._text(output)  # first: what cannot be shown is passed over
            self._remember(output)
            if self._is_live:
                self._print(text)

    def end(self) -> None:
        """Prints the alerts that fire."""
        for alert in self._firing.values():
            self._print(self._text(alert))
        self._is_live = True

    def _remember(self, output: FeatureChange | Alert) -> None:
        self._firing.pop(output.id, None)
        self._others.pop(output.id, None)
        if isinstance(output, Alert) and output.state is AlertState.FIRING:
            self._firing[output.id] = output
            return
        self._others[output.id] = output
        if len(self._others) > MAX_KNOWN:
            del self._others[next(iter(self._others))]

    def _text(self, output: FeatureChange | Alert) -> Text | str:
        if self._as_json:
            return rendering.json_line(output)
        if isinstance(output, Alert):
            return rendering.alert_line(output)
        return rendering.change_line(output)

    def _print(self, text: Text | str) -> None:
        if isinstance(text, str):
            terminal.print_json_text(text)
        else:
            self._console.print(text, soft_wrap=True)
