"""Light nodes: registrations and heartbeats to a real controller, without a process behind them.

    with LightNodes(cluster.controllers, cluster.cluster_id) as light:
        refused = light.register(LightBroker(n, {"metadata.version": (7, 30)}) for n in range(1000))

Kafka's controller cannot tell them from brokers, so everything that it says about ranges, fencing,
refusals and readiness is its own word. Give the controller ``LONG_SESSIONS`` to keep thousands
without a heartbeat. Needs controllers of 3.9 or newer.
"""

import logging
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from kio.schema.broker_heartbeat.v1.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.controller_registration.v0.response import ControllerRegistrationResponse
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from featurewatch.deploy.errors import RefusedError, StackError
from featurewatch.deploy.process.polling import attempts
from featurewatch.deploy.wire import requests
from featurewatch.deploy.wire.connection import check
from featurewatch.deploy.wire.controller_pool import NOT_CONTROLLER, ControllerPool
from featurewatch.deploy.wire.requests import Ranges

_log = logging.getLogger("deploy.light")

LONG_SESSIONS: Final[Mapping[str, str]] = {"broker.session.timeout.ms": "600000"}
"""Controller properties under which a light broker stays unfenced for ten minutes unheard."""

_UNKNOWN: Final = {
    int(code.value) for code in (ErrorCode.stale_broker_epoch, ErrorCode.broker_id_not_registered)
}
"""What a heartbeat of a broker is refused with that is not, or not so, registered any more."""


@dataclass(frozen=True, slots=True)
class LightBroker:
    """A broker as the controller sees it: id, supported ranges, rack.

    A new ``incarnation`` is a new process. Kafka refuses it (DUPLICATE_BROKER_REGISTRATION) while
    the old one's session lasts (4.3.0: after a controlled shutdown too), so a quick roll registers
    the same incarnation with other ranges, or unregisters first.
    """

    id: int
    ranges: Ranges
    rack: str | None = None
    incarnation: uuid.UUID = field(default_factory=uuid.uuid4)


@dataclass(frozen=True, slots=True)
class RegistrationRefusal:
    """What the controller answered instead of registering a broker.

    ``text`` is Kafka's message where the response carries one; a BrokerRegistration response does
    not, so there it is the error's name alone (the controller's log has the rest).
    """

    id: int
    code: int
    text: str


class LightNodes:
    """The light brokers and controllers of one cluster; use from one thread.

    ``connections``: how many requests wait for their commit together; ``retry_timeout_s``: how long
    a request is repeated while there is no leader.
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
        """The brokers that registered and were not unregistered, forgotten or dropped, sorted."""
        return sorted(self._epochs)

    def register(
        self, brokers: Iterable[LightBroker], *, unfence: bool = True
    ) -> list[RegistrationRefusal]:
        """Registers brokers, again with other ranges or another incarnation if they are known.

        Returns what was refused; with ``unfence`` the others have sent heartbeats and are live.

        Raises:
            WireError: if no controller answers.
        """

        def one(broker: LightBroker) -> RegistrationRefusal | None:
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
                answer = self._pool.ask(
                    request, BrokerRegistrationResponse, lambda r: check(what, r.error_code)
                )
            except RefusedError as error:
                return RegistrationRefusal(broker.id, error.code, error.message or error.name)
            self._epochs[broker.id] = int(answer.broker_epoch)
            if unfence:
                self._heartbeat(broker.id)
                # The controller forgets the offset of the heartbeat that unfences, and lets nobody
                # shut down while it knows of an active broker without one.
                self._heartbeat(broker.id)
            return None

        return [refusal for refusal in self._pool.each(one, brokers) if refusal is not None]

    def heartbeat(self, ids: Sequence[int] | None = None) -> None:
        """One heartbeat of each (all if none are named): they stay, or become, unfenced.

        Raises:
            RefusedError: if the controller knows a broker no more, or by another epoch.
        """
        self._pool.each(self._heartbeat, self.ids if ids is None else ids)

    def fence(self, ids: Sequence[int]) -> None:
        """A heartbeat that asks to be fenced, as a broker that starts up sends."""
        self._pool.each(lambda i: self._heartbeat(i, want_fence=True), ids)

    def shut_down(self, ids: Sequence[int]) -> None:
        """A controlled shutdown (KIP-631): asks until the controller lets each go, then forgets it.

        It ends fenced and registered.

        Raises:
            StackError: if the controller does not let a broker go within ten seconds.
        """

        def one(broker_id: int) -> None:
            for _ in attempts(10.0, 0.01):
                if self._heartbeat(broker_id, want_shut_down=True).should_shut_down:
                    return
            raise StackError(f"the controller does not let broker {broker_id} shut down")

        self._pool.each(one, ids)
        self.forget(ids)

    def forget(self, ids: Iterable[int]) -> None:
        """Sends no more heartbeats for them; the controller fences each when its session ends."""
        for broker_id in ids:
            self._epochs.pop(broker_id, None)

    def unregister(self, ids: Sequence[int]) -> None:
        """Removes the registrations, as ``kafka-cluster unregister`` does.

        Raises:
            RefusedError: with Kafka's text, e.g. for an unknown broker.
        """
        self.forget(ids)  # before: a heartbeat after it would be refused

        def one(broker_id: int) -> None:
            what = f"unregistering broker {broker_id}"
            self._pool.ask(
                UnregisterBrokerRequest(broker_id=BrokerId(broker_id)),
                UnregisterBrokerResponse,
                lambda r: check(what, r.error_code, r.error_message),
            )

        self._pool.each(one, ids)

    def register_controller(
        self, controller_id: int, ranges: Ranges, incarnation: uuid.UUID | None = None
    ) -> None:
        """Registers a controller that is none: a ghost, which then counts for every upgrade.

        Raises:
            RefusedError: with Kafka's text, e.g. below metadata.version 15.
        """
        self._pool.ask(
            requests.register_controller(controller_id, incarnation or uuid.uuid4(), ranges),
            ControllerRegistrationResponse,
            lambda r: check(
                f"registration of controller {controller_id}", r.error_code, r.error_message
            ),
        )

    def create_topic(self, name: str, partitions: int, replicas: int = 1) -> None:
        """Creates a topic on the light brokers: one PartitionRecord for each partition.

        Kafka takes 10,000 partitions in one request at most (its limit on records of one batch);
        make several topics for a larger log.

        Raises:
            RefusedError: with Kafka's text.
        """

        def checked(response: CreateTopicsResponse) -> None:
            for topic in response.topics:
                check(f"creating topic {name}", topic.error_code, topic.error_message)

        self._pool.ask(
            requests.create_topic(name, partitions, replicas), CreateTopicsResponse, checked
        )

    @contextmanager
    def kept_alive(self, interval_s: float = 2.0) -> Iterator[None]:
        """Heartbeats of all registered brokers from a thread while the block lasts.

        A broker that the controller knows no more is dropped, with a line in the log; where no
        controller answers, that is logged and tried again.
        """
        done = threading.Event()

        def beat() -> None:
            while not done.wait(interval_s):
                try:
                    self._pool.each(self._beat, self.ids)
                except StackError as error:
                    _log.warning("light brokers are not heard, trying again: %s", error)

        thread = threading.Thread(target=beat, name="light-heartbeats", daemon=True)
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

    def _beat(self, broker_id: int) -> None:
        """A heartbeat; whoever is forgotten or registered again meanwhile may be refused."""
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
            if error.code in _UNKNOWN:
                _log.warning("light broker %d is dropped: %s", broker_id, error)
                self.forget([broker_id])
            else:
                _log.warning("light broker %d, trying again: %s", broker_id, error)

    def _heartbeat(
        self, broker_id: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> BrokerHeartbeatResponse:
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
        return self._pool.ask(request, BrokerHeartbeatResponse, lambda r: check(what, r.error_code))
