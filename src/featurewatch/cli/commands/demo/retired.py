"""Retires the sources of clusters whose act is over, before they are reported as silent."""

from collections.abc import Iterable

from featurewatch.cli.commands.demo.printer import DemoPrinter
from featurewatch.cli.runtime import retirement
from featurewatch.stack.errors import StackError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.types import ClusterId


def retire_sources(bus: BusSettings, clusters: Iterable[ClusterId], narrator: DemoPrinter) -> None:
    """Retires all sources of clusters that are no longer watched, while a worker runs.

    Raises:
        StackError: No worker applied it in time.
    """
    for cluster in clusters:
        narrator.did(f"featurewatch retire --cluster {cluster}")
        if not retirement.retire_sources(bus, cluster, source=""):
            raise StackError(f"featurewatch did not retire the cluster {cluster}")
