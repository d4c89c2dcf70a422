"""The synchronous twins of what `featurewatch.client` exports: the same names and parameters."""

from collections.abc import Generator
from datetime import datetime
from typing import TypeVar

from featurewatch.client.errors import OnProblem
from featurewatch.client.gate import FeatureGate
from featurewatch.client.gate_state import ClusterLevels
from featurewatch.client.offsets import OffsetStore
from featurewatch.client.since import Since
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.outputs import Alert, FeatureChange, Operation, Snapshot
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE, Topic

__all__ = ["alerts", "changes", "epochs", "operations", "states", "wait_until"]

_OutputT = TypeVar("_OutputT", FeatureChange, Snapshot, Alert, Operation)


def changes(
    bus: BusSettings | str,
    *,
    since: Since | datetime = Since.BEGINNING,
    offsets: OffsetStore | None = None,
    cluster: str = "",
    on_problem: OnProblem | None = None,
) -> Generator[FeatureChange, None, None]:
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
) -> Generator[Snapshot, None, None]:
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
) -> Generator[Snapshot, None, None]:
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
) -> Generator[Alert, None, None]:
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
) -> Generator[Operation, None, None]:
    """Yields steps of the operations of clusters' controllers.

    The parameters are those of `changes`, and so is what it raises.
    """
    return _follow(OPERATIONS, Operation, bus, since, offsets, cluster, on_problem)


def wait_until(
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
    with FeatureGate(bus, cluster=cluster) as gate:
        return gate.wait(cluster, feature, level, timeout_s)


def _follow(
    topic: Topic,
    cls: type[_OutputT],
    bus: BusSettings | str,
    since: Since | datetime,
    offsets: OffsetStore | None,
    cluster: str,
    on_problem: OnProblem | None,
) -> Generator[_OutputT, None, None]:
    # Here, so that an import of the client does not load Kafka's.
    from featurewatch.client.following import Reading, follow

    yield from follow(Reading(topic, cls, bus, since, offsets, cluster, on_problem))
