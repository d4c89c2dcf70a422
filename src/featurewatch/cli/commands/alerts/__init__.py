"""``featurewatch alerts``: the firing alerts, and with ``--follow`` those that begin and end.

Alone it shows them; its commands change them.
"""

import contextlib
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Final

from featurewatch.cli.command_line import Exit, LazyGroup, Option, is_alone, parameters
from featurewatch.cli.config import options
from featurewatch.cli.config.options import (
    AsJson,
    BusServers,
    ConfigFile,
    Follow,
    OnlyCluster,
    Prefix,
)
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_error

if TYPE_CHECKING:
    from featurewatch.cli.config.settings import ClusterSection
    from featurewatch.cli.output.cluster_states import ClusterStates
    from featurewatch.streams.outputs import Alert


SUMMARIES: Final = {
    "acknowledge": "End alerts about past events: data that was lost or could not be read, voters "
    "that changed.",
}


def _show(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    cluster: OnlyCluster = "",
    follow: Follow = False,
    as_json: AsJson = False,
    everything: Annotated[
        bool, Option("--all", help="Include resolved alerts, as far as the topic still has them.")
    ] = False,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Exit with 3 if any alert fires, with 4 if that is unknown because a cluster (of "
            "the configuration, if there is one) sent nothing for a minute, or its source has not "
            "caught up.",
        ),
    ] = False,
) -> None:
    """Show the alerts that fire now."""
    if not is_alone():
        return
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import load
    from featurewatch.cli.output import rendering
    from featurewatch.cli.output.cluster_lookup import find_cluster
    from featurewatch.cli.output.cluster_states import ClusterStates
    from featurewatch.streams.outputs import Alert

    settings = load(config, bus=options.bus_flags(bus, prefix))
    console = rendering.console()

    def show(alert: "Alert") -> None:
        if as_json:
            rendering.print_json(alert)
        else:
            console.print(rendering.alert_line(alert), soft_wrap=True)

    bus_settings = settings.bus_settings()
    cluster = find_cluster(bus_settings, cluster)
    with contextlib.closing(ClusterStates(bus_settings, cluster)) as states:
        firing = states.firing()
        shown = list(states.alerts.values()) if everything else firing
        for alert in sorted(shown, key=lambda alert: (alert.at_ms, alert.id)):
            show(alert)
        unknown = _unknown_reasons(states, () if cluster else settings.clusters)
        for reason in unknown:
            print_error(reason)
        if not firing and not unknown and not as_json and not follow:
            console.print("no alert fires", style="green")
        while follow:
            for output in states.poll(1.0):
                if isinstance(output, Alert):
                    show(output)
    if check and firing:
        raise Exit(ExitCode.NO)
    if check and unknown:
        raise Exit(ExitCode.UNKNOWN)


def _unknown_reasons(
    states: "ClusterStates", configured: Collection["ClusterSection"]
) -> list[str]:
    """Why it is unknown whether alerts fire; the ``configured`` clusters must be known."""
    reasons = states.unknown_reasons(int(time.time() * 1000))
    return reasons + states.never_seen(configured) if states.snapshots else reasons


_PARAMS, _CALLBACK = parameters(_show)
alerts = LazyGroup(
    "alerts",
    SUMMARIES,
    "featurewatch.cli.commands.alerts.{}",
    help="Show the alerts that fire now.",
    params=_PARAMS,
    callback=_CALLBACK,
    invoke_without_command=True,
)
