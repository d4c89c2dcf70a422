"""Tells changes and alerts as they come, beside the work of ``featurewatch up``."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Iterable
from typing import Final, Self

from confluent_kafka import Message

from featurewatch.cli.output import rendering
from featurewatch.cli.output.topic_printer import decode_messages
from featurewatch.streams.bus.errors import BusError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES

LOG: Final = logging.getLogger("featurewatch.cli")

_RETRY_S: Final = 2.0


class LivePrinter:
    """Prints to stdout, in a thread of its own; use as a context, in an event loop.

    First the alerts that fire, then each change and each alert that comes, each cause once.
    """

    def __init__(self, bus: BusSettings, *, as_json: bool) -> None:
        self._bus = bus
        self._as_json = as_json
        self._console = rendering.console()
        self._said: set[str] = set()
        self._alerts: dict[str, Alert] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="featurewatch-teller", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._failure: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=2)

    async def failure(self) -> None:
        """Waits, and raises what ended the telling, if something does."""
        await self._failure

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._tell()
                except BusError as error:
                    LOG.warning("changes and alerts are not printed now: %s", error)
                    self._stop.wait(_RETRY_S)
        except BrokenPipeError:
            # Nobody reads any more; that is no reason to stop watching.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except BaseException as error:
            if not self._stop.is_set():
                self._loop.call_soon_threadsafe(self._fail, error)

    def _fail(self, error: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _tell(self) -> None:
        reader = TopicReader(self._bus, FEATURE_CHANGES, ALERTS)
        try:
            for _ in self._new(reader.read_existing()):
                pass  # known from now on
            for alert in self._alerts.values():
                if alert.state is AlertState.FIRING:
                    self._show(alert)
            while not self._stop.is_set():
                for output in self._new(reader.poll(0.5)):
                    self._show(output)
                    if self._stop.is_set():
                        break
        finally:
            reader.close()

    def _new(self, messages: Iterable[Message]) -> Iterable[FeatureChange | Alert]:
        changes = self._bus.topic(FEATURE_CHANGES)
        for message in messages:
            if message.topic() == changes:
                for change in decode_messages([message], decode_change):
                    if change.id not in self._said:
                        self._said.add(change.id)
                        yield change
            else:
                for alert in decode_messages([message], decode_alert):
                    if self._alerts.get(alert.id) != alert:
                        self._alerts[alert.id] = alert
                        yield alert

    def _show(self, output: FeatureChange | Alert) -> None:
        if self._as_json:
            rendering.print_json(output)
        elif isinstance(output, Alert):
            self._console.print(rendering.alert_line(output), soft_wrap=True)
        else:
            self._console.print(rendering.change_line(output), soft_wrap=True)
