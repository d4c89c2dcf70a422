"""A publisher that only one process at a time can be: Kafka's broker fences the one before it.

A process that was stopped for longer than its session (SIGSTOP, a paused machine) does not know
that another one has taken over, and whatever it checks before a write may be outdated when the
write is made. The broker therefore decides: each publisher of a transactional id raises the epoch
of the id, and the broker refuses every write with an older epoch and aborts what was not committed
(KIP-98).
"""

import asyncio
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from featurewatch.streams.bus.client_errors import FENCED, ID_DENIED, missing_right
from featurewatch.streams.bus.errors import FencedError, PublishDeniedError, PublishError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import LOG, REQUEST_TIMEOUT_S, BusSettings

_ATTEMPT_S: Final = 5.0
_CAUSE_S: Final = 1.0
_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The most that a broker allows by default (``transaction.max.timeout.ms``): a transaction has to
outlast an outage of the bus. A successor aborts it at once and does not wait for this."""


class TransactionalPublisher(Publisher):
    """Publishes in transactions; after `start` every older publisher of the same id is fenced.

    Messages are readable, with ``isolation.level=read_committed``, after the next `commit`.
    """

    def __init__(self, bus: BusSettings, transactional_id: str) -> None:
        super().__init__(bus, request_timeout_s=REQUEST_TIMEOUT_S)
        self._id = transactional_id
        self._is_open = False

    async def start(self) -> None:
        """Starts the producer and fences the older ones; waits for the bus as long as it takes.

        Raises:
            PublishError: The settings are wrong, or the bus does not allow the transactional id.
        """
        await super().start()
        await self._until_done(self._producer.init_transactions)

    async def commit(self) -> None:
        """Commits what was sent before; nothing happens if that is nothing.

        Raises:
            FencedError: Another process has started a publisher of the same id.
            PublishError: The transaction cannot be committed.
        """
        await self.flush()
        async with self._lock:
            self._check()
            if self._is_open:
                await self.flush()
                await self._until_done(self._producer.commit_transaction)
                self._is_open = False

    def _config(self) -> dict[str, Any]:
        return super()._config() | {
            "transactional.id": self._id,
            "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        }

    def _before_produce(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True

    def _park(self, delivery: Any, pending: Any) -> None:
        """A transaction that lacks one message cannot be committed: it fails as a whole."""
        del delivery
        self._fail(PublishError(f"topic {pending.topic} was deleted"))

    def _failure_of(self, error: object, text: str) -> PublishError:
        if isinstance(error, KafkaError) and error.code() == KafkaError._FATAL:
            error = self._cause_of(error)
        if isinstance(error, KafkaError) and error.code() in FENCED:
            return FencedError(
                f"another process has taken over {self._id}: this one may no longer write"
            )
        if isinstance(error, KafkaError) and error.code() in ID_DENIED:
            grant = f"WRITE on transactional id {self._id}"
            return PublishDeniedError(missing_right(self._bus, "do its work", grant))
        return super()._failure_of(error, text)

    def _cause_of(self, fatal: KafkaError) -> KafkaError:
        """The first error of a producer that can do nothing more; ``fatal`` if it is not known.

        ``produce`` says only that there was one. Calls about the transaction fail with the error
        itself, and an abort does nothing that the broker would not do.
        """
        try:
            self._producer.abort_transaction(_CAUSE_S)
        except KafkaException as exception:
            cause: KafkaError = exception.args[0]
            return cause
        return fatal

    async def _until_done(self, call: Any) -> None:
        """Calls a blocking function of the producer until it succeeds or fails for good."""
        while True:
            try:
                await asyncio.to_thread(call, _ATTEMPT_S)
            except KafkaException as exception:
                error = exception.args[0]
                if error.retriable():
                    reason = f"{self._id} waits for the bus: {error.str()}"
                    if reason != self._error:  # once, not every five seconds
                        LOG.warning("%s", reason)
                    self._set_error(reason)
                    continue
                self._fail(self._failure_of(error, f"{self._id}: {error.str()}"))
                self._check()
            else:
                self._set_error(None)
                return
