"""Reads znodes of Kafka in ZooKeeper mode."""

import json
from typing import Any

from kazoo.exceptions import NoNodeError

from featurewatch.stack.wire.znodes import session


def read_json(connect: str, path: str) -> Any:
    """The content of a znode that holds JSON; None if the znode does not exist.

    Raises:
        WireError: if ZooKeeper does not respond.
    """
    with session(connect) as (client, chroot):
        try:
            return json.loads(client.get(chroot + path)[0])
        except NoNodeError:
            return None
