"""Reads znodes of Kafka in ZooKeeper mode, for the stack and its demo. Never writes."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from featurewatch.stack.errors import StartError, WireError
from featurewatch.stack.process.polling import attempts

_CONNECT_S = 15.0
_kazoo_log = logging.getLogger(f"{__name__}.kazoo")
_kazoo_log.setLevel(logging.CRITICAL)  # kazoo logs every failed connect; our errors suffice


@contextmanager
def _session(connect: str) -> Iterator[tuple[KazooClient, str]]:
    """A session for the block, and the chroot, which need not exist yet.

    Raises:
        WireError: if no session can be opened, or it breaks.
    """
    hosts, slash, chroot = connect.partition("/")
    client = KazooClient(hosts, logger=_kazoo_log)
    try:
        client.start(_CONNECT_S)
        yield client, slash + chroot
    except (KazooException, KazooTimeoutError) as error:
        raise WireError(f"ZooKeeper at {connect} does not respond: {error!r}") from error
    finally:
        client.stop()
        client.close()


def read_json(connect: str, path: str) -> Any:
    """The content of a znode that holds JSON; None if the znode does not exist.

    Raises:
        WireError: if ZooKeeper does not respond.
    """
    with _session(connect) as (client, chroot):
        try:
            return json.loads(client.get(chroot + path)[0])
        except NoNodeError:
            return None


def wait_until_unregistered(connect: str, broker_id: int, timeout_s: float = 30.0) -> None:
    """Returns when no session holds the broker's id.

    Kafka's KafkaZkClient.registerBroker fails at once while the znode of a killed broker exists.

    Raises:
        StartError: if the znode still exists after ``timeout_s``.
        WireError: if ZooKeeper does not respond.
    """
    path = f"/brokers/ids/{broker_id}"
    with _session(connect) as (client, chroot):
        for _ in attempts(timeout_s):
            if client.exists(chroot + path) is None:
                return
    raise StartError(f"another broker {broker_id} is registered at {connect}{path}; stop it first")
