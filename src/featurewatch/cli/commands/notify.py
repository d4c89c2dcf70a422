"""``featurewatch notify``: alerts to Alertmanager and to webhooks."""

from typing import Annotated

from featurewatch.cli.command_line import Exit, Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.errors import ExitCode
from featurewatch.cli.output.terminal import print_line


@command()
def notify(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    test: Annotated[
        bool,
        Option("--test", help="Send a test to each target and end; exits with 1 if one fails."),
    ] = False,
) -> None:
    """Send alerts to Alertmanager and to webhooks.

    The targets are in the configuration: `notify.alertmanagers` and `notify.webhooks`.
    """
    # Here, so that help needs no settings and no engines.
    import asyncio

    from featurewatch.cli.config.settings import Settings, load
    from featurewatch.cli.errors import UsageError
    from featurewatch.cli.runtime.notify.run import run_notify, send_trials

    def read() -> Settings:
        return load(config, bus=options.bus_flags(bus, prefix))

    settings = read()
    if not settings.notify.is_configured:
        raise UsageError("there is no target: set notify.alertmanagers or notify.webhooks")
    targets = settings.notify_settings()
    if not test:
        from featurewatch.cli.runtime.services import run_until_signal

        settings.bus_settings()
        run_until_signal(run_notify(settings), ("notifications",), read)
        return
    results = asyncio.run(send_trials(targets))
    for target, reason in results.items():
        print_line(f"{target}: {reason or 'accepted'}")
    if any(results.values()):
        raise Exit(ExitCode.FAILED)
