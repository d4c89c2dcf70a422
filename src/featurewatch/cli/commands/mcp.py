"""``featurewatch mcp``: tools for assistants, which read the page's API."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from featurewatch.cli.command_line import Option, command
from featurewatch.cli.config.options import ConfigFile
from featurewatch.cli.output.terminal import print_notice

if TYPE_CHECKING:
    import ssl


@command()
def mcp(
    config: ConfigFile = None,
    page: Annotated[
        str,
        Option(
            metavar="URL",
            help="Address of the page.",
            default="that of the settings, http://127.0.0.1:9780/",
        ),
    ] = "",
    token_file: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="File with a token of the page in its first line, for stdio.",
            envvar="FEATUREWATCH_MCP_TOKEN_FILE",
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="PEM file with the authorities that sign the page's certificate."
        ),
    ] = None,
    port: Annotated[
        int | None,
        Option(
            metavar="PORT",
            help="Serve over HTTP on this port of loopback instead of stdio; 0: any free port.",
            min=0,
            max=65_535,
        ),
    ] = None,
    host_name: Annotated[
        list[str] | None,
        Option(
            metavar="NAME", help="Host name in the HTTP requests that a proxy forwards. Repeatable."
        ),
    ] = None,
) -> None:
    """Serve tools for assistants (Model Context Protocol); read-only.

    The tools read the HTTP API of the page, which must run: fleet, clusters, readiness, blockers,
    rehearsals and history. Over HTTP each caller needs a login of the page.
    """
    # Here, so that help needs no settings and no engines.
    import asyncio
    from importlib.util import find_spec

    from featurewatch.cli.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("assistants need: pip install 'featurewatch[mcp]'")
    if page and not page.startswith(("http://", "https://")):
        raise UsageError(f"--page: write the whole address, https://host/path/, not {page}")
    if port is not None and token_file is not None:
        raise UsageError("--token-file is for stdio: over HTTP each caller has its own login")

    from featurewatch.common.http.errors import PortTakenError
    from featurewatch.integrations.mcp import server
    from featurewatch.integrations.mcp.page_client import PageClient

    client = PageClient(page or _address_of_page(config), _context(ca_file))
    authorization = None if token_file is None else f"Bearer {_first_token(token_file)}"
    if port is None:
        asyncio.run(server.serve_stdio(client, authorization))
        return
    try:
        listener = server.listen("127.0.0.1", port)
    except PortTakenError as error:
        raise UsageError(str(error)) from None
    with listener:
        print_notice(f"assistants: http://127.0.0.1:{listener.getsockname()[1]}{server.PATH}")
        asyncio.run(server.serve_http(client, listener, host_name or []))


def _address_of_page(config: Path | None) -> str:
    from featurewatch.cli.config.settings import load

    web = load(config).web
    if web.external_url:
        return web.external_url
    host = f"[{web.page_host}]" if ":" in web.page_host else web.page_host
    return f"http://{host}:{web.page_port}/"


def _first_token(file: Path) -> str:
    """The first token of a file, as `web.token_file` has them."""
    from featurewatch.cli.errors import UsageError
    from featurewatch.common.http.errors import WebConfigError
    from featurewatch.common.http.tokens import first_token

    try:
        return first_token(file)
    except WebConfigError as error:
        raise UsageError(f"--token-file: {error}") from None


def _context(ca_file: Path | None) -> "ssl.SSLContext | None":
    import ssl

    from featurewatch.cli.errors import UsageError

    if ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"--ca-file: {ca_file} cannot be used: {reason}") from None
