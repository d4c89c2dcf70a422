"""Kazoo clients that deliver events in connection order, and a clock that never goes back."""

import time
from collections.abc import Callable

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

from featurewatch.streams.zookeeper.in_order_handler import InOrderHandler


def kazoo_client(
    connect: str, session_timeout_s: float, credential: str | None = None
) -> KazooClient:
    """A client that reconnects without limit; ``connect`` may end in a chroot.

    ``credential`` is ``user:password`` for ZooKeeper's digest scheme, sent at each connection.
    """
    retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0)
    return KazooClient(
        hosts=connect,
        timeout=session_timeout_s,
        handler=InOrderHandler(),
        connection_retry=retry,
        auth_data=None if credential is None else [("digest", credential)],
    )


def monotonic_wall_clock() -> Callable[[], float]:
    """A clock that returns milliseconds since 1970 and never goes back."""
    wall_start_s, monotonic_start_s = time.time(), time.monotonic()
    return lambda: (wall_start_s + time.monotonic() - monotonic_start_s) * 1000
