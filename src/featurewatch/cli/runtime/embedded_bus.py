"""The embedded bus: a Kafka node that is started if no bus is named."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from featurewatch.cli.config.client_config import read_properties
from featurewatch.cli.config.settings import Settings, embedded_bus_file
from featurewatch.cli.errors import UsageError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus


@contextlib.contextmanager
def run_embedded_bus(settings: Settings) -> Iterator[None]:
    """Starts the embedded bus for as long as the context lasts, unless a bus is named.

    Its topics persist for the next time. ``settings`` are changed to name it.

    Raises:
        UsageError: Another process runs it, or its directory cannot be written.
        stack.errors.StackError: It cannot be started.
    """
    if settings.bus.bootstrap_servers:
        yield
        return
    file = embedded_bus_file(settings.worker.data_directory)
    directory = file.parent
    with (
        _alone(directory),
        Cluster(single_bus(), directory, cluster_id=_cluster_id(directory)) as cluster,
    ):
        settings.bus.bootstrap_servers = cluster.bootstrap_servers
        settings.bus.replication_factor = 1
        file.write_text(cluster.bootstrap_servers + "\n")
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            cluster.stop()


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Holds the lock of a bus' directory; the system releases it however the process ends."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("w")
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be written ({error.strerror}): set worker.data_directory"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"`featurewatch up` runs here already, with its bus in {directory}: list all "
                "clusters in one configuration file, or set another worker.data_directory and "
                "other web ports"
            ) from None
        yield


def _cluster_id(directory: Path) -> str | None:
    """The id under which the directory was formatted, if it was."""
    for file in directory.glob("node-*/data/meta.properties"):
        return read_properties(file).get("cluster.id")
    return None
