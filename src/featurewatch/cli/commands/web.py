"""``featurewatch web``: the page and its API."""

from typing import Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config import options
from featurewatch.cli.config.options import BusServers, ConfigFile, Prefix
from featurewatch.cli.output.terminal import print_notice


@command()
def web(
    config: ConfigFile = None,
    bus: BusServers = "",
    prefix: Prefix = "",
    host: Annotated[
        str,
        Option(metavar="ADDRESS", help="Address to listen on.", default="127.0.0.1"),
    ] = "",
    port: Annotated[
        int | None,
        Option(metavar="PORT", help="Port to listen on; 0: any free port.", default="9780", min=0),
    ] = None,
) -> None:
    """Serve the page for operators and its HTTP API; read-only.

    Any number of these may run. It prints the address of the page.
    """
    # Here, so that help needs no settings and no engines.
    from featurewatch.cli.config.settings import Settings, load
    from featurewatch.cli.runtime.page import run_page
    from featurewatch.cli.runtime.services import run_until_signal

    flags = {"page_host": host or None, "page_port": port}
    given = {name: value for name, value in flags.items() if value is not None}

    def read() -> Settings:
        return load(config, bus=options.bus_flags(bus, prefix), web=given)

    settings = read()
    settings.bus_settings()
    page = run_page(settings, lambda url: print_notice(f"the page: {url}"))
    run_until_signal(page, ("page",), read)
