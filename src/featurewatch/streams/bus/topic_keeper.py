"""Recreates topics that were deleted, and finds the ids of those that exist.

A topic that was deleted and recreated has its old name, and may have grown past every offset that
was read of it: only its id distinguishes it (KIP-516). Brokers before 2.8 have no ids; a recreated
topic is then noticed by offsets that go back, or not at all.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from featurewatch.streams.bus.client_errors import NO_TOPIC
from featurewatch.streams.bus.errors import BusError, BusUnavailableError
from featurewatch.streams.bus.settings import LOG as BUS_LOG
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.topics import ALL

LOG: Final = logging.getLogger("featurewatch.topics")

INTERVAL_S: Final = 5.0
"""Between two checks while all is well, in seconds: the bus describes all topics for each."""

HINTED_INTERVAL_S: Final = 1.0
"""Time between two checks if something hints at a deleted topic, or the last check failed."""

_TIMEOUT_S: Final = 10.0
_NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The id of a topic on brokers that have none: zero."""

TopicIds = dict[str, str]
"""The id of each topic that exists, by full name; empty if the bus has no ids."""


class TopicKeeper:
    """Checks featurewatch's topics; ``changelogs`` are full names of changelogs beside them."""

    def __init__(self, bus: BusSettings, changelogs: Iterable[str] = ()) -> None:
        self._bus = bus
        self._changelogs = tuple(changelogs)
        self._names = [*(bus.topic(topic) for topic in ALL), *self._changelogs]
        self._admin = AdminClient(bus.client(), logger=BUS_LOG)
        self._last_error = ""

    def check(self) -> TopicIds:
        """Makes the topics that are missing, and returns the ids of all. Blocks.

        Raises:
            BusError: The bus does not answer, or a topic is missing and cannot be made.
        """
        ids = self._read()
        missing = [name for name in self._names if name not in ids]
        if missing:
            LOG.warning(
                "%s: not on the bus at %s; creating missing topics",
                *(", ".join(missing), self._bus.bootstrap_servers),
            )
            ensure_topics(self._bus, changelogs=self._changelogs, timeout_s=_TIMEOUT_S)
            ids = self._read()
        return ids

    async def run(
        self,
        is_hinted: Callable[[], bool],
        on_ids: Callable[[TopicIds], None] = lambda _: None,
    ) -> None:
        """Checks every `INTERVAL_S` until cancelled, and calls ``on_ids`` after each check.

        If ``is_hinted`` returns true, a client was refused something for which a deleted topic may
        be the reason: the check follows within `HINTED_INTERVAL_S`. What the bus refuses is logged
        once, and tried again.
        """
        while True:
            for _ in range(round(INTERVAL_S / HINTED_INTERVAL_S)):
                await asyncio.sleep(HINTED_INTERVAL_S)
                if is_hinted() or self._last_error:
                    break
            try:
                ids = await asyncio.to_thread(self.check)
            except BusError as error:
                if str(error) != self._last_error and not isinstance(error, BusUnavailableError):
                    LOG.error("%s", error)
                self._last_error = str(error)
            else:
                self._last_error = ""
                on_ids(ids)

    def _read(self) -> TopicIds:
        described = self._admin.describe_topics(
            TopicCollection(self._names), request_timeout=_TIMEOUT_S
        )
        ids = {}
        for name, future in described.items():
            try:
                topic_id = str(future.result().topic_id)
            except KafkaException as exception:
                error = exception.args[0]
                if error.code() in NO_TOPIC:
                    continue
                raise BusUnavailableError(
                    f"the bus at {self._bus.bootstrap_servers} does not describe the topic {name} "
                    f"({error.str()})"
                ) from exception
            ids[name] = "" if topic_id == _NO_ID else topic_id
        return ids
