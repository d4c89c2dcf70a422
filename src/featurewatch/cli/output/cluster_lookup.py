"""Finds the cluster that a person means: by its id, or by the name that people call it."""

import contextlib

from featurewatch.cli.errors import UsageError
from featurewatch.cli.output.topic_printer import decode_messages
from featurewatch.common.text import plain
from featurewatch.streams.bus.errors import BusError, BusUnavailableError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_snapshot
from featurewatch.streams.topics import STATE


def find_cluster(bus: BusSettings, given: str) -> str:
    """The id of a cluster that is given by id or by name; what nobody knows is returned as it is.

    Names are those on the topic ``state``. Where that cannot be read, only ids are known.

    Raises:
        BusUnavailableError: The bus does not answer.
        UsageError: Several clusters have the name.
    """
    if not given:
        return given
    try:
        names = _names(bus)
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


def _names(bus: BusSettings) -> dict[str, str]:
    """The names of all clusters that have a state, by id."""
    names: dict[str, str] = {}
    with contextlib.closing(TopicReader(bus, STATE)) as reader:
        for message in reader.read_existing():
            if message.value() is None:
                names.pop((message.key() or b"").decode(errors="replace"), None)
                continue
            for snapshot in decode_messages([message], decode_snapshot):
                names[snapshot.cluster] = snapshot.name
    return names
