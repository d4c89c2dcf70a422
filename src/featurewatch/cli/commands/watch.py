"""``featurewatch watch`` and ``up``: the sources alone, or everything in one process."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from featurewatch.cli.command_line import command
from featurewatch.cli.config import options
from featurewatch.cli.config.cluster_options import shared_options
from featurewatch.cli.config.options import AsJson
from featurewatch.cli.output.terminal import print_notice

if TYPE_CHECKING:
    from featurewatch.cli.config.settings import Settings

_CLUSTER: Final[dict[str, Any]] = {
    "controllers": options.Controllers,
    "servers": options.Servers,
    "polled_controllers": options.PolledControllers,
    "log_directory": options.LogDirectory,
    "zookeeper": options.Zookeeper,
    "cluster_id": options.ClusterIdOption,
    "command_config": options.CommandConfig,
    "controllers_config": options.ControllersConfig,
    "zookeeper_config": options.ZookeeperConfig,
    "max_snapshot_bytes": options.MaxSnapshotBytes,
    "max_zookeeper_frame_bytes": options.MaxZookeeperFrameBytes,
}
"""The options of a watched cluster, called as its settings are."""

_SHARED: Final[dict[str, Any]] = {
    "config": options.ConfigFile,
    "bus": options.BusServers,
    "prefix": options.Prefix,
    **_CLUSTER,
    "operations": options.Operations,
}


def _run(given: dict[str, Any], run: "Callable[[Callable[[], Settings]], None]") -> None:
    from featurewatch.cli.config.settings import load  # here, so that help needs no settings

    clusters = options.cluster_flags(**{name: given[name] for name in _CLUSTER})
    bus = options.bus_flags(given["bus"] or "", given["prefix"] or "")

    def read() -> "Settings":
        settings = load(given["config"], bus=bus, clusters=clusters)
        return settings.with_operations() if given["operations"] else settings

    run(read)


_with_settings = shared_options(_SHARED, _run)


@command()
@_with_settings
def watch(read: "Callable[[], Settings]") -> None:
    """Follow clusters and publish their events; read-only."""
    # Here, so that help needs no engines.
    from featurewatch.cli.runtime.services import run_until_signal, run_watch
    from featurewatch.cli.runtime.sources import SourceRunner

    run_until_signal(run_watch(SourceRunner(read())), ("sources",), read)


@command()
@_with_settings
def up(read: "Callable[[], Settings]", as_json: AsJson = False) -> None:
    """Run everything here: sources, a worker, the page, and an embedded bus if no other is named.

    Prints the alerts that fire, then changes and alerts as they come.
    """
    # Here, so that help needs no engines.
    from featurewatch.cli.runtime.embedded_bus import run_embedded_bus
    from featurewatch.cli.runtime.services import run_everything, run_until_signal
    from featurewatch.cli.runtime.sources import SourceRunner

    settings = read()
    sources = SourceRunner(settings)
    with run_embedded_bus(settings):
        print_notice(
            f"the bus is {settings.bus.bootstrap_servers}; "
            "`featurewatch state --follow` shows the clusters, Ctrl-C ends"
        )
        work = run_everything(sources, settings, as_json=as_json)
        run_until_signal(work, ("sources", "worker"), read)
