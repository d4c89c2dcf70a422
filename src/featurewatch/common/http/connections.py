"""The open connections of a port: how many one client may have, and which one makes room."""

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar


class Connection(Protocol):
    """What the table has to know of a connection."""

    @property
    def is_idle(self) -> bool:
        """Whether it serves no request."""

    def abort(self) -> None:
        """Ends it at once."""


_ConnectionT = TypeVar("_ConnectionT", bound=Connection)


class ConnectionTable(Generic[_ConnectionT]):
    """Connections by client, each client's in the order of their last use.

    ``note_full`` gets what there is too much of, and the client that wants one more.
    Where there is no room for a new one, the longest idle one of the client that has most is ended.
    Idle connections keep nobody out, such as a probe, whoever makes them and however many.
    """

    def __init__(
        self, max_count: int, max_of_client: int, note_full: Callable[[str, str], None]
    ) -> None:
        self._max_count = max_count
        self._max_of_client = max_of_client
        self._note_full = note_full
        self._by_client: dict[str, dict[_ConnectionT, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_client.values()))

    def __iter__(self) -> Iterator[_ConnectionT]:
        return iter([each for own in self._by_client.values() for each in own])

    def add(self, connection: _ConnectionT, client: str, *, is_proxy: bool) -> bool:
        """Adds a new connection; false: there is no room, as all others serve requests.

        A proxy may have as many as there may be of all clients.
        """
        if not is_proxy and len(self._by_client.get(client, ())) >= self._max_of_client:
            self._note_full("too many connections", client)
            has_room = self._end_idle(client)
        elif len(self) >= self._max_count:
            self._note_full("too many connections of all clients", client)
            by_count = sorted(self._by_client, key=lambda each: -len(self._by_client[each]))
            has_room = any(map(self._end_idle, by_count))
        else:
            has_room = True
        if has_room:
            self._by_client.setdefault(client, {})[connection] = None
        return has_room

    def use(self, connection: _ConnectionT, client: str) -> None:
        """Notes that a connection is in use now."""
        own = self._by_client.get(client, {})
        if connection in own:
            del own[connection]
            own[connection] = None

    def remove(self, connection: _ConnectionT, client: str) -> None:
        """A connection has ended."""
        own = self._by_client.get(client, {})
        own.pop(connection, None)
        if not own:
            self._by_client.pop(client, None)

    def _end_idle(self, client: str) -> bool:
        own = self._by_client.get(client, {})
        idle = next((connection for connection in own if connection.is_idle), None)
        if idle is None:
            return False
        self.remove(idle, client)
        idle.abort()
        return True
