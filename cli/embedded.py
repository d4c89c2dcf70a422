"""The embedded bus: one Kafka node of our own, where no bus is named."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cli.properties import read_properties
from cli.settings import Settings, embedded_bus_file
from deploy.cluster import Cluster
from deploy.specs import single_bus


@contextlib.contextmanager
def bus_for(settings: Settings) -> Iterator[None]:
    """Starts the embedded bus for as long as the context lasts, unless a bus is named.

    What stands on it stays for the next time. ``settings`` come to name it.

    Raises:
        deploy.errors.StackError: It cannot be started.
    """
    if settings.bus.bootstrap_servers:
        yield
        return
    data_directory = settings.worker.data_directory
    file = embedded_bus_file(data_directory)
    directory = file.parent
    directory.mkdir(parents=True, exist_ok=True)
    with Cluster(single_bus(), directory, cluster_id=_cluster_id(directory)) as cluster:
        settings.bus.bootstrap_servers = cluster.bootstrap_servers
        settings.bus.replication_factor = 1
        file.write_text(cluster.bootstrap_servers + "\n")
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            cluster.stop()


def _cluster_id(directory: Path) -> str | None:
    """The id under which the directory was formatted, if it was."""
    for file in directory.glob("node-*/data/meta.properties"):
        return read_properties(file).get("cluster.id")
    return None
