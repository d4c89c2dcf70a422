"""``featurewatch levels``: what is finalized, and what is left off."""

from typing import TYPE_CHECKING, Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    AsJson,
    BootstrapController,
    BootstrapServer,
    BusServers,
    ClusterIdOption,
    CommandConfig,
    ConfigFile,
    ControllersConfig,
    LogDirectory,
    OnlyCluster,
    Prefix,
)
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_line

if TYPE_CHECKING:
    from featurewatch.monitor.readiness.levels_off import LevelOff, LevelsOff
    from featurewatch.tables.image.cluster import ClusterImage


@command()
def levels(
    off: Annotated[
        bool, Option("--off", help="Only what the software has and these levels leave off, by KIP.")
    ] = False,
    cluster: OnlyCluster = "",
    as_json: AsJson = False,
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    bootstrap_controller: BootstrapController = "",
    bootstrap_server: BootstrapServer = "",
    log_directory: LogDirectory = None,
    cluster_id: ClusterIdOption = "",
    command_config: CommandConfig = None,
    controllers_config: ControllersConfig = None,
) -> None:
    """Show the finalized levels, and what the software has and these levels leave off, by KIP.

    It reads the worker's state, or with --bootstrap-controller, --log-directory or
    --bootstrap-server the cluster itself. Exits with 4 if nothing is known of the cluster.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.commands.readiness.assess import images

    sources = options.cluster_flags(
        controllers=bootstrap_controller,
        servers=bootstrap_server,
        log_directory=log_directory,
        command_config=command_config,
        controllers_config=controllers_config,
    )
    if sources and (cluster_id or cluster):
        sources[0]["cluster_id"] = cluster_id or cluster
    found = images(
        cluster=cluster or cluster_id,
        config=config,
        bus=options.bus_flags(bus, prefix),
        sources=sources,
    )
    if not found:
        raise Exit(ExitCode.UNKNOWN)
    for image in found:
        _show(image, only_off=off, as_json=as_json)


def _show(image: "ClusterImage", *, only_off: bool, as_json: bool) -> None:
    from featurewatch.controller.levels import finalized_name
    from featurewatch.monitor.readiness.levels_off import levels_off

    what = levels_off(image)
    finalized = dict(sorted(image.features.levels.items()))
    if as_json:
        from featurewatch.cli.output.rendering import print_json

        print_json(
            {
                "cluster": what.cluster,
                **({} if only_off else {"finalized": finalized}),
                "off": what.levels,
                "unknown": dict(what.unknown),
            }
        )
        return
    from featurewatch.common.text import plain

    print_line(f"Cluster {plain(what.cluster)}")
    if not only_off:
        for name, level in finalized.items():
            print_line(f"  {plain(name)} {finalized_name(name, level)}")
    for line in _lines(what):
        print_line(line)


def _lines(what: "LevelsOff") -> "list[str]":
    from featurewatch.common.text import plain
    from featurewatch.controller.compatibility import Verdict

    titles = {
        Verdict.YES: "Off, and supported by all nodes:",
        Verdict.NO: "Off, and not yet supported by all nodes:",
        Verdict.UNKNOWN: "Off, and not known to be supported by all nodes:",
    }
    width = max((len(_proposal(item)) for item in what.levels), default=0)
    lines = []
    for verdict, title in titles.items():
        of_verdict = [item for item in what.levels if item.supported_by_all is verdict]
        if of_verdict:
            lines.append(title)
        for item in of_verdict:
            needs = f" (first {', '.join(item.needs)})" if item.needs else ""
            lines.append(
                f"  {_proposal(item):<{width}}  {item.feature} {item.name}{needs}: {item.change}"
            )
    for feature, level in what.unknown:
        lines.append(
            f"Not known here: the levels of {plain(feature)} up to {level}, which some node has"
        )
    return lines or ["Nothing is off that some node supports."]


def _proposal(item: "LevelOff") -> str:
    return item.proposals[0] if item.proposals else "-"
