"""Finds the cluster that a person means, by its id or by its name."""

import contextlib

from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.cluster_states import ClusterStates
from featurewatch.common.text import plain
from featurewatch.streams.bus.errors import BusError, BusUnavailableError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import STATE


def find_cluster(bus: BusSettings, given: str) -> str:
    """The id of a cluster that is given by id or by name; an unknown one is returned unchanged.

    Names are those on the topic ``state``. Where that cannot be read, only ids are known.

    Raises:
        BusUnavailableError: The bus does not answer.
        UsageError: Several clusters have the name.
    """
    if not given:
        return given
    try:
        with contextlib.closing(ClusterStates(bus, topics=(STATE,))) as states:
            names = {name: snapshot.name for name, snapshot in states.snapshots.items()}
    except BusUnavailableError:
        raise
    except BusError:
        return given
    if given in names:
        return given
    ids = sorted(cluster for cluster, name in names.items() if name == given)
    if len(ids) > 1:
        listed = ", ".join(map(plain, ids))
        raise UsageError(f"{len(ids)} clusters are called {given}: give the id of one: {listed}")
    return ids[0] if ids else given
