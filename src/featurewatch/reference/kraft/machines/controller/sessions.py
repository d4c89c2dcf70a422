"""What the active controller knows of living brokers, which no record has.

Follows ``BrokerHeartbeatManager`` and ``BrokerSessionTracker``. It is lost with the leadership: the
next leader takes every unfenced broker for alive, until its session times out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from featurewatch.reference.kraft.machines.metadata.state import Broker

_NO_OFFSET: Final = -1


@dataclass(slots=True)
class _Session:
    epoch: int
    contact_ms: int
    metadata_offset: int = _NO_OFFSET
    shutdown_offset: int = _NO_OFFSET
    """From which offset on others know of its controlled shutdown; -1: it has none."""


class Sessions:
    """The sessions of one leadership."""

    def __init__(self, brokers: Iterable[Broker], timeout_ms: int, now_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._by_id: dict[int, _Session] = {}
        for broker in brokers:
            if not broker.fenced:
                self._by_id[broker.id] = _Session(broker.epoch, now_ms)

    def note_heartbeat(self, broker: Broker, metadata_offset: int, now_ms: int) -> None:
        """Notes a heartbeat."""
        session = self._by_id.get(broker.id)
        if session is None or session.epoch != broker.epoch:
            session = self._by_id[broker.id] = _Session(broker.epoch, now_ms)
        session.contact_ms, session.metadata_offset = now_ms, metadata_offset

    def forget(self, broker_id: int) -> None:
        """Ends the session of a broker."""
        self._by_id.pop(broker_id, None)

    def is_valid(self, broker: Broker, now_ms: int) -> bool:
        """Whether a broker has sent a heartbeat recently."""
        session = self._by_id.get(broker.id)
        if session is None or session.epoch != broker.epoch:
            return False
        return session.contact_ms + self._timeout_ms >= now_ms

    def begin_shutdown(self, broker_id: int, offset: int) -> None:
        """Notes the offset of the last record that moves leaders away from a broker."""
        session = self._by_id[broker_id]
        if session.shutdown_offset == _NO_OFFSET:
            session.shutdown_offset = offset

    def end_shutdown(self, broker_id: int) -> None:
        """Forgets a controlled shutdown, because the broker is fenced."""
        if broker_id in self._by_id:
            self._by_id[broker_id].shutdown_offset = _NO_OFFSET

    def may_shut_down(self, broker_id: int, active: Iterable[Broker]) -> bool:
        """Whether all others know that a broker has no leaders any more."""
        others = [self._by_id[one.id] for one in active if one.id in self._by_id]
        lowest = min((one.metadata_offset for one in others), default=None)
        return lowest is None or self._by_id[broker_id].shutdown_offset <= lowest
