"""What the stack itself asks ZooKeeper: whether a broker's old session is over, how a migration is.

It never writes.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from featurewatch.deploy.errors import StackError, StartError, WireError
from featurewatch.deploy.process.polling import attempts

_CONNECT_S = 15.0
_quiet = logging.getLogger("deploy.znodes.kazoo")
_quiet.setLevel(logging.CRITICAL)  # it tells of every server that is down; our errors say enough


@contextmanager
def _session(connect: str) -> Iterator[tuple[KazooClient, str]]:
    """A session while the block lasts, and the chroot, which need not exist yet.

    Raises:
        WireError: if no server of the ensemble gives one, or it breaks.
    """
    hosts, slash, chroot = connect.partition("/")
    client = KazooClient(hosts, logger=_quiet)
    try:
        client.start(_CONNECT_S)
        yield client, slash + chroot
    except (KazooException, KazooTimeoutError) as error:
        raise WireError(f"ZooKeeper at {connect} gives no answer: {error!r}") from error
    finally:
        client.stop()
        client.close()


def read_json(connect: str, path: str) -> Any:
    """The content of a znode that holds JSON; None if there is no such znode.

    Raises:
        WireError: if ZooKeeper does not answer.
    """
    with _session(connect) as (client, chroot):
        try:
            return json.loads(client.get(chroot + path)[0])
        except NoNodeError:
            return None


def wait_until_unregistered(connect: str, broker_id: int, timeout_s: float = 30.0) -> None:
    """Returns when no session holds the broker's id.

    Kafka's KafkaZkClient.registerBroker gives up at once while the znode of a killed broker lasts.

    Raises:
        StartError: if it does not go in time.
        WireError: if ZooKeeper does not answer.
    """
    path = f"/brokers/ids/{broker_id}"
    with _session(connect) as (client, chroot):
        for _ in attempts(timeout_s):
            if client.exists(chroot + path) is None:
                return
    raise StartError(f"another broker {broker_id} is registered at {connect}{path}; stop it first")


def wait_until_migrated(connect: str, timeout_s: float) -> None:
    """Returns when a KRaft controller has copied ZooKeeper's metadata to its log.

    That is Kafka's own test (ZkMigrationLeadershipState.initialZkMigrationComplete).

    Raises:
        StackError: if it has not in time.
    """
    found: Any = None
    for _ in attempts(timeout_s):
        found = read_json(connect, "/migration")
        if found is not None and found["kraft_metadata_offset"] > 0:
            return
    raise StackError(
        f"the migration is not done after {timeout_s:.0f} s; /migration holds {found}; "
        "the controller's log says what it waits for"
    )
