"""Light nodes: registrations and heartbeats to a real controller, without a Kafka process.

    with LightNodes(cluster.controllers, cluster.cluster_id) as light:
        refused = light.register(LightBroker(n, {"metadata.version": (7, 30)}) for n in range(1000))

Kafka's controller cannot distinguish them from brokers, so its responses about ranges, fencing and
rejections are authentic. Configure the controller with ``LONG_SESSIONS`` to keep thousands of them
unfenced without heartbeats. Needs controllers of 3.9 or newer.
"""

import logging
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from featurewatch.kafka import messages
from featurewatch.stack.errors import RefusedError, StackError
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.wire import requests
from featurewatch.stack.wire.connection import check
from featurewatch.stack.wire.controller_pool import NOT_CONTROLLER, ControllerPool
from featurewatch.stack.wire.requests import Ranges

_log = logging.getLogger(__name__)

LONG_SESSIONS: Final[Mapping[str, str]] = {"broker.session.timeout.ms": "600000"}
"""Controller properties that keep a light broker unfenced for ten minutes without a heartbeat."""

_UNREGISTERED_CODES: Final = (77, 102)
"""STALE_BROKER_EPOCH and BROKER_ID_NOT_REGISTERED: a heartbeat's broker is no longer registered, or
has registered again."""


@dataclass(frozen=True, slots=True)
class LightBroker:
    """A broker as the controller sees it: id, supported ranges, rack.

    A new ``incarnation`` is a new process. Kafka rejects it (DUPLICATE_BROKER_REGISTRATION) until
    the old session expires (in 4.3.0 after a controlled shutdown too), so a quick roll registers
    the same incarnation with other ranges, or unregisters the broker first.
    """

    id: int
    ranges: Ranges
    rack: str | None = None
    incarnation: uuid.UUID = field(default_factory=uuid.uuid4)


@dataclass(frozen=True, slots=True)
class RegistrationRefusal:
    """The controller's error for a broker that it did not register.

    ``text`` is Kafka's message if the response has one. A BrokerRegistration response has none, so
    ``text`` is the error's name then; the controller's log has the details.
    """

    id: int
    code: int
    text: str


class LightNodes:
    """The light brokers and controllers of one cluster; not thread-safe.

    ``connections`` and ``retry_timeout_s`` are those of `ControllerPool`.
    """

    def __init__(
        self,
        controllers: str,
        cluster_id: str,
        connections: int = 16,
        retry_timeout_s: float = 30.0,
    ) -> None:
        self._pool = ControllerPool(controllers, connections, retry_timeout_s)
        self._cluster_id = cluster_id
        self._epochs: dict[int, int] = {}
        self._log_dirs: dict[int, uuid.UUID] = {}

    @property
    def ids(self) -> list[int]:
        """The registered brokers, sorted, without those unregistered, forgotten or dropped."""
        return sorted(self._epochs)

    def register(
        self, brokers: Iterable[LightBroker], *, unfence: bool = True
    ) -> list[RegistrationRefusal]:
        """Registers brokers; a registered one is registered again with its new ranges.

        Returns the rejections. With ``unfence`` the other brokers have sent heartbeats and are
        live.

        Raises:
            WireError: if no controller responds.
        """

        def register_one(broker: LightBroker) -> RegistrationRefusal | None:
            request = requests.register_broker(
                broker.id,
                self._cluster_id,
                broker.incarnation,
                broker.ranges,
                broker.rack,
                self._log_dirs.setdefault(broker.id, uuid.uuid4()),
            )
            what = f"registration of broker {broker.id}"
            try:
                response = self._pool.request(request, lambda r: check(what, r.error_code))
            except RefusedError as error:
                return RegistrationRefusal(broker.id, error.code, error.message or error.name)
            self._epochs[broker.id] = response.broker_epoch
            if unfence:
                self._heartbeat(broker.id)
                # The controller drops the offset of the heartbeat that unfences, and permits no
                # shutdown while it lacks the offset of an active broker.
                self._heartbeat(broker.id)
            return None

        return [refusal for refusal in self._pool.map(register_one, brokers) if refusal is not None]

    def heartbeat(self, ids: Sequence[int] | None = None) -> None:
        """Sends one heartbeat for each broker, all if ``ids`` is None; they are unfenced then.

        Raises:
            RefusedError: if a broker is no longer registered, or has another epoch.
        """
        self._pool.map(self._heartbeat, self.ids if ids is None else ids)

    def fence(self, ids: Sequence[int]) -> None:
        """Sends heartbeats that request fencing, as a starting broker does."""
        self._pool.map(lambda i: self._heartbeat(i, want_fence=True), ids)

    def shut_down(self, ids: Sequence[int]) -> None:
        """Performs a controlled shutdown of each broker (KIP-631), then stops its heartbeats.

        The brokers end fenced and registered.

        Raises:
            StackError: if the controller does not permit a shutdown within ten seconds.
        """

        def shut_down_one(broker_id: int) -> None:
            for _ in attempts(10.0, 0.01):
                if self._heartbeat(broker_id, want_shut_down=True).should_shut_down:
                    return
            raise StackError(f"the controller does not permit broker {broker_id} to shut down")

        self._pool.map(shut_down_one, ids)
        self.forget(ids)

    def forget(self, ids: Iterable[int]) -> None:
        """Stops the heartbeats of brokers; the controller fences each when its session expires."""
        for broker_id in ids:
            self._epochs.pop(broker_id, None)

    def unregister(self, ids: Sequence[int]) -> None:
        """Removes the registrations, as ``kafka-cluster unregister`` does.

        Raises:
            RefusedError: with Kafka's text, e.g. for an unknown broker.
        """
        self.forget(ids)  # first: a heartbeat after unregistering would be rejected

        def unregister_one(broker_id: int) -> None:
            what = f"unregistering broker {broker_id}"
            self._pool.request(
                messages.UnregisterBrokerRequestV0(broker_id=broker_id),
                lambda r: check(what, r.error_code, r.error_message),
            )

        self._pool.map(unregister_one, ids)

    def register_controller(
        self, controller_id: int, ranges: Ranges, incarnation: uuid.UUID | None = None
    ) -> None:
        """Registers a controller without a process: a ghost, which counts for every upgrade.

        Raises:
            RefusedError: with Kafka's text, e.g. below metadata.version 15.
        """
        self._pool.request(
            requests.register_controller(controller_id, incarnation or uuid.uuid4(), ranges),
            lambda r: check(
                f"registration of controller {controller_id}", r.error_code, r.error_message
            ),
        )

    def unregister_controller(self, controller_id: int) -> None:
        """Removes a controller's registration (KIP-1312).

        Raises:
            RefusedError: with Kafka's text, e.g. below metadata.version 33.
        """
        self._pool.request(
            messages.UnregisterControllerRequestV0(controller_id=controller_id),
            lambda r: check(
                f"unregistering controller {controller_id}", r.error_code, r.error_message
            ),
        )

    def create_topic(self, name: str, partitions: int, replicas: int = 1) -> None:
        """Creates a topic on the light brokers, which writes one PartitionRecord per partition.

        Kafka accepts at most 10,000 partitions in one request (its limit on the records of a
        batch); create several topics for a larger log.

        Raises:
            RefusedError: with Kafka's text.
        """

        def check_topics(response: "messages.CreateTopicsResponseV7") -> None:
            for topic in response.topics:
                check(f"creating topic {name}", topic.error_code, topic.error_message)

        self._pool.request(requests.create_topic(name, partitions, replicas), check_topics)

    @contextmanager
    def kept_alive(self, interval_s: float = 2.0) -> Iterator[None]:
        """Sends heartbeats of all registered brokers from a thread while the block runs.

        A broker that is no longer registered is dropped and logged. If no controller responds, that
        is logged and the heartbeats are retried.
        """
        done = threading.Event()

        def send_heartbeats() -> None:
            while not done.wait(interval_s):
                try:
                    self._pool.map(self._try_heartbeat, self.ids)
                except StackError as error:
                    _log.warning("heartbeats of light brokers failed, trying again: %s", error)

        thread = threading.Thread(target=send_heartbeats, name="light-heartbeats", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def close(self) -> None:
        """Closes the connections; the registrations stay."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _try_heartbeat(self, broker_id: int) -> None:
        """Sends a heartbeat; ignores errors of a broker forgotten or registered again meanwhile."""
        epoch = self._epochs.get(broker_id)
        if epoch is None:
            return
        try:
            self._heartbeat(broker_id)
        except StackError as error:
            if self._epochs.get(broker_id) != epoch:
                return
            if not isinstance(error, RefusedError) or error.code == NOT_CONTROLLER:
                raise
            if error.code in _UNREGISTERED_CODES:
                _log.warning("light broker %d is dropped: %s", broker_id, error)
                self.forget([broker_id])
            else:
                _log.warning("light broker %d, trying again: %s", broker_id, error)

    def _heartbeat(
        self, broker_id: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> "messages.BrokerHeartbeatResponseV1":
        epoch = self._epochs.get(broker_id)
        if epoch is None:
            raise StackError(f"light broker {broker_id} is not registered")
        request = requests.heartbeat(
            broker_id,
            epoch,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
        )
        what = f"heartbeat of broker {broker_id}"
        return self._pool.request(request, lambda r: check(what, r.error_code))
