"""Who has a worker's static membership in the consumer group, and how a worker gets its id.

A static member that joins replaces the one with the same id, and Faust's client joins again at
once: two workers of one id would take the partitions from each other for ever, and process
nothing. So a worker that was replaced looks who has its membership, and leaves it to that one.
"""

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from featurewatch.streams.bus.settings import LOG, BusSettings

_TIMEOUT_S: Final = 5.0
_MAX_NAME: Final = 100
_MAX_WORKERS: Final = 1000


class WorkerIdTakenError(RuntimeError):
    """Another process runs with the id of this worker."""


class Member(NamedTuple):
    """A member of a consumer group: the id that the bus gave it, and its host."""

    member_id: str
    host: str


def find_member(bus: BusSettings, group: str, instance_id: str) -> Member | None:
    """The member of ``group`` with a static id; None if there is none, or nobody tells. Blocks."""
    admin = AdminClient(bus.client(), logger=LOG)
    futures = admin.describe_consumer_groups([group], request_timeout=_TIMEOUT_S)
    try:
        members = futures[group].result().members
    except KafkaException as error:
        LOG.warning("the members of %s are not known: %s", group, error.args[0].str())
        return None
    for member in members:
        if member.group_instance_id == instance_id:
            return Member(member.member_id, str(member.host).lstrip("/"))
    return None


@contextmanager
def own_worker_id(directory: Path, host: str, given: str = "") -> Iterator[str]:
    """A worker id that no other process with this data directory has, for as long as the context.

    It is ``given``, or made of the host's name, the directory and the first free number: a worker
    that was killed gets the same one again, and rejoins its group at once.

    Raises:
        WorkerIdTakenError: Another process has the id that is given.
        OSError: The directory cannot be written.
    """
    where = sha256(str(directory.resolve()).encode()).hexdigest()[:6]
    name = f"{re.sub(r'[^A-Za-z0-9._-]', '-', host)[:_MAX_NAME] or 'worker'}-{where}"
    candidates = [given] if given else [f"{name}-{number}" for number in range(1, _MAX_WORKERS)]
    for candidate in candidates:
        (directory / candidate).mkdir(parents=True, exist_ok=True)
        with (directory / candidate / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield candidate
            return
    raise WorkerIdTakenError(
        f"another worker with the id {given or candidates[-1]} runs with the data directory "
        f"{directory}: give each its own id by --id or worker.id"
    )
