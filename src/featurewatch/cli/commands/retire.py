"""``featurewatch retire``: removes a source, or a whole cluster, that will not return."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.output.terminal import print_error


@command()
def retire(
    cluster: Annotated[
        str, Option("--cluster", metavar="ID", help="The cluster's id or name.")
    ] = "",
    source: Annotated[
        str,
        Option(
            "--source",
            metavar="NAME",
            help="kraft, zookeeper or api-versions, as `state` shows it (default: all).",
        ),
    ] = "",
    outdated_for: Annotated[
        float | None,
        Option(
            "--outdated-for",
            metavar="HOURS",
            min=0,
            help="Instead of --cluster: every cluster that was silent for this many hours, except "
            "those with a cluster_id in the configuration.",
        ),
    ] = None,
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
) -> None:
    """Retire a source that was removed from the configuration, and the data that only it reported.

    Stop its process first: a source that publishes again is used again. If the levels came from
    this source, the last ones stay, and the cluster is not ready. A cluster whose last source is
    retired is forgotten: its alerts resolve, and its state and metrics vanish.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config import options
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.cli.runtime.retirement import retire_outdated, retire_sources

    if bool(cluster) == (outdated_for is not None) or (source and not cluster):
        raise UsageError("pass --cluster, with --source for one of its sources, or --outdated-for")
    settings = load(config, bus=options.bus_flags(bus, prefix))
    if outdated_for is not None:
        kept = {configured.cluster_id for configured in settings.clusters}
        retired = retire_outdated(settings.bus_settings(), kept, round(outdated_for * 3_600_000))
        print_error(f"retired: {', '.join(retired) or 'none'}")
        return
    cluster = find_cluster(settings.bus_settings(), cluster)
    if retire_sources(settings.bus_settings(), cluster, source):
        print_error(f"{source} of {cluster} is retired" if source else f"{cluster} is retired")
    else:
        print_error(
            "published, but no worker has applied it yet, or the source still runs: check "
            "`featurewatch state`"
        )
