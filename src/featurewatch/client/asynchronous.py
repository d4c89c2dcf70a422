"""The asynchronous readers: the calls that block run in one thread of each reader."""

import asyncio
import time
from collections.abc import AsyncGenerator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from featurewatch.client.errors import OnProblem, WaitTimeoutError
from featurewatch.client.gate import FeatureGate
from featurewatch.client.gate_state import ClusterLevels
from featurewatch.client.offsets import OffsetStore
from featurewatch.client.since import Since
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.outputs import Alert, FeatureChange, Operation, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE, Topic

if TYPE_CHECKING:
    from featurewatch.client.subscription import Subscription

_SLICE_S: Final = 0.5
"""How long a call blocks its thread: a reader that is cancelled ends after this."""

_OutputT = TypeVar("_OutputT", FeatureChange, Snapshot, Alert, Operation)


def changes(
    bus: BusSettings | str,
    *,
    since: Since | datetime = Since.BEGINNING,
    offsets: OffsetStore | None = None,
    cluster: str = "",
    on_problem: OnProblem | None = None,
) -> AsyncGenerator[FeatureChange, None]:
    """Yields each change of a finalized level, and waits for new ones.

    ``bus`` is ``host:port`` of the bus, or its settings (login, prefix). ``since`` says where to
    begin, unless ``offsets`` has positions: they are loaded once, and saved while the caller
    continues, so that after a crash what was not processed comes again. ``cluster``: only of this
    one.
    ``on_problem`` gets what the caller must know, in its place among the values; without it, a
    problem is raised.

    Raises:
        ClientError: A problem, such as `HoleError`, `LaterVersionError`, `TopicRecreatedError`.
        WrongPrefixError: The bus has no topics of the prefix.
        BusError: The bus does not answer at the start, or a topic may not be read.
    """
    return _follow(FEATURE_CHANGES, FeatureChange, bus, since, offsets, cluster, on_problem)


def states(
    bus: BusSettings | str,
    *,
    since: Since | datetime = Since.BEGINNING,
    offsets: OffsetStore | None = None,
    cluster: str = "",
    on_problem: OnProblem | None = None,
) -> AsyncGenerator[Snapshot, None]:
    """Yields the newest state of each cluster, then each new one.

    The parameters are those of `changes`, and so is what it raises.
    """
    return _follow(STATE, Snapshot, bus, since, offsets, cluster, on_problem)


def epochs(
    bus: BusSettings | str,
    *,
    since: Since | datetime = Since.BEGINNING,
    offsets: OffsetStore | None = None,
    cluster: str = "",
    on_problem: OnProblem | None = None,
) -> AsyncGenerator[Snapshot, None]:
    """Yields the state of each cluster at each revision of its levels.

    The parameters are those of `changes`, and so is what it raises.
    """
    return _follow(EPOCHS, Snapshot, bus, since, offsets, cluster, on_problem)


def alerts(
    bus: BusSettings | str,
    *,
    since: Since | datetime = Since.BEGINNING,
    offsets: OffsetStore | None = None,
    cluster: str = "",
    on_problem: OnProblem | None = None,
) -> AsyncGenerator[Alert, None]:
    """Yields alerts that fire and resolve.

    The parameters are those of `changes`, and so is what it raises.
    """
    return _follow(ALERTS, Alert, bus, since, offsets, cluster, on_problem)


def operations(
    bus: BusSettings | str,
    *,
    since: Since | datetime = Since.BEGINNING,
    offsets: OffsetStore | None = None,
    cluster: str = "",
    on_problem: OnProblem | None = None,
) -> AsyncGenerator[Operation, None]:
    """Yields steps of the operations of clusters' controllers.

    The parameters are those of `changes`, and so is what it raises.
    """
    return _follow(OPERATIONS, Operation, bus, since, offsets, cluster, on_problem)


async def wait_until(
    bus: BusSettings | str,
    cluster: str,
    feature: str,
    level: int,
    *,
    timeout_s: float | None = None,
) -> ClusterLevels:
    """Waits until a feature is finalized at a level or above, and returns the levels then.

    Raises what `FeatureGate` and `FeatureGate.wait` do.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    gate = await asyncio.to_thread(FeatureGate, bus, cluster=cluster)
    try:
        while True:
            left_s = _SLICE_S if deadline is None else deadline - time.monotonic()
            try:
                return await asyncio.to_thread(
                    gate.wait, cluster, feature, level, max(min(left_s, _SLICE_S), 0)
                )
            except WaitTimeoutError:
                if left_s <= 0:
                    raise
    finally:
        await asyncio.to_thread(gate.close)


async def _follow(
    topic: Topic,
    cls: type[_OutputT],
    bus: BusSettings | str,
    since: Since | datetime,
    offsets: OffsetStore | None,
    cluster: str,
    on_problem: OnProblem | None,
) -> AsyncGenerator[_OutputT, None]:
    # Here, so that an import of the client does not load Kafka's.
    from featurewatch.client.following import POLL_S, Reading

    reading = Reading(topic, cls, bus, since, offsets, cluster, on_problem)
    loop = asyncio.get_running_loop()
    thread = ThreadPoolExecutor(1, "featurewatch-client")
    try:
        opening = thread.submit(reading.open)
        try:
            # Shielded: what is opened must be closed, also if nobody waits for it any more.
            subscription = await asyncio.shield(asyncio.wrap_future(opening))
            while True:
                deliveries = await loop.run_in_executor(thread, subscription.poll, POLL_S)
                for value in reading.values(subscription, deliveries):
                    yield value
        finally:
            # After the call that still runs, if this one was cancelled.
            await loop.run_in_executor(thread, _close, opening)
    finally:
        thread.shutdown(wait=False)


def _close(opening: "Future[Subscription[Any]]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
