"""``featurewatch alerts acknowledge``: ends alerts about past events."""

from typing import Annotated

from featurewatch.cli.command_line import Argument, Exit, Option, command
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_error


@command()
def acknowledge(
    alerts: Annotated[
        list[str],
        Argument(metavar="ALERT...", help="The alerts' ids, as `alerts --json` shows them."),
    ],
    reason: Annotated[
        str, Option("--reason", help="Reason, which is published with the end of the alert.")
    ],
    by: Annotated[
        str,
        Option(
            "--by",
            metavar="NAME",
            help="Name of the person who acknowledges.",
            default="the user of this process",
        ),
    ] = "",
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
) -> None:
    """End alerts about past events: data that was lost or could not be read, voters that changed.

    These are unreadable, messages-lost, outputs-lost, clock-ahead, source-rivals, log-gap,
    epoch-regression, znode-missed, znode-regression, voter-rejoined and voter-directory-changed.
    All other alerts end when their condition does. The alert
    fires again if it happens again. Exits with 4 if no worker has applied it after 15 s.
    """
    # Here, so that help needs no settings and no engines.
    import getpass

    from featurewatch.cli.config.bus import load_bus
    from featurewatch.cli.runtime.acknowledgement import acknowledge_alerts

    who = by or getpass.getuser()
    if not acknowledge_alerts(load_bus(config, bus, prefix), alerts, who, reason):
        print_error("published, but no worker has applied it yet: check `alerts` again later")
        raise Exit(ExitCode.UNKNOWN)
    for alert in alerts:
        print_error(f"{alert} is acknowledged")
