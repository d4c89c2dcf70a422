"""Static membership of a worker in the consumer group, and the worker's id.

A static member that joins replaces the one with the same id, and Faust's client joins again at
once: two workers of one id would take the partitions from each other forever, and process
nothing. A replaced worker therefore checks who has its membership, and leaves it to that one: the
worker that joined last works. A replaced worker may learn of it in two ways: from the
group (`MembershipCheck`), or because its writes are fenced or its run fails otherwise
(`cli.runtime.worker_supervisor`).
"""

import asyncio
import fcntl
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from featurewatch.streams.bus.errors import BusUnavailableError
from featurewatch.streams.bus.settings import LOG, BusSettings

_TIMEOUT_S: Final = 5.0
_MAX_NAME: Final = 100
_MAX_WORKERS: Final = 1000


class Member(NamedTuple):
    """A member of a consumer group: the id that the bus gave it, and its host."""

    member_id: str
    host: str


class WorkerIdTakenError(RuntimeError):
    """Another process runs with the id of this worker."""

    @classmethod
    def by(cls, holder: Member, worker_id: str) -> "WorkerIdTakenError":
        """The error of a worker that ``holder`` has replaced."""
        return cls(
            f"another process, on {holder.host}, runs with the id {worker_id} of this worker: "
            "give each its own id by --id or worker.id"
        )


class MembershipCheck:
    """Awaits ``check`` before an aiokafka coordinator that lost its membership joins again.

    ``check`` gets the member id that was lost, which aiokafka forgets. Once it has returned, this
    process joins as a newcomer.
    """

    def __init__(self, coordinator: Any, check: Callable[[str], Awaitable[None]]) -> None:
        self._coordinator = coordinator
        self._check = check
        self._lost_id = ""
        self._reset, self._ensure = coordinator.reset_generation, coordinator.ensure_active_group
        coordinator.reset_generation = self._reset_generation
        coordinator.ensure_active_group = self._ensure_active_group

    @property
    def member_id(self) -> str:
        """The id that the bus gave this process last; empty: it has none, or is just joining."""
        return str(self._coordinator.member_id) or self._lost_id

    def _reset_generation(self) -> None:
        if self._coordinator.generation > 0:
            self._lost_id = str(self._coordinator.member_id)
        self._reset()

    async def _ensure_active_group(self, *args: Any) -> Any:
        closing = self._coordinator._closing
        if self._lost_id:
            checking = asyncio.ensure_future(self._check(self._lost_id))
            await asyncio.wait({checking, closing}, return_when=asyncio.FIRST_COMPLETED)
            if closing.done():
                checking.cancel()
                return None
            checking.result()
            self._lost_id = ""
        return await self._ensure(*args)


def find_member(bus: BusSettings, group: str, instance_id: str) -> Member | None:
    """Returns the member of ``group`` with a static id, or None. Blocks for 5 s at most.

    Raises:
        BusUnavailableError: The members are not known.
    """
    admin = AdminClient(bus.client(), logger=LOG)
    futures = admin.describe_consumer_groups([group], request_timeout=_TIMEOUT_S)
    try:
        members = futures[group].result().members
    except KafkaException as error:
        text = f"the members of {group} are not known: {error.args[0].str()}"
        raise BusUnavailableError(text) from error
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
