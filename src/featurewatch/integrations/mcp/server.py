"""The MCP server of the tools: over stdio for one person, or over HTTP with the page's logins."""

import socket
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as OfferedTool
from starlette.types import ASGIApp, Receive, Scope, Send

from featurewatch.common.http.errors import PortTakenError
from featurewatch.integrations.mcp.bounded import bounded_text
from featurewatch.integrations.mcp.page_client import PageClient, PageResponse
from featurewatch.integrations.mcp.tools import (
    INSTRUCTIONS,
    TOOLS,
    ArgumentError,
    find_tool,
    input_schema,
    request_path,
    selected,
)

PATH: Final = "/mcp"
_FLEET: Final = "api/v1/fleet"
_MAX_BODY_BYTES: Final = 1 << 20
_MAX_CONNECTIONS: Final = 100
_READ_ONLY: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def make_server(page: PageClient, authorization: str | None = None) -> Server[Any]:
    """Returns the server of the tools.

    Calls over HTTP have their own header ``Authorization``; others have ``authorization``.
    """

    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        tools = [
            OfferedTool(
                name=tool.name,
                description=tool.about,
                input_schema=input_schema(tool),
                annotations=_READ_ONLY,
            )
            for tool in TOOLS
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(context: Any, call: CallToolRequestParams) -> CallToolResult:
        given = authorization
        if context.request is not None:
            given = context.request.headers.get("authorization")
        return await answer(page, call.name, call.arguments or {}, given)

    return Server(
        "featurewatch",
        version=version("featurewatch"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def answer(
    page: PageClient, name: str, arguments: dict[str, Any], authorization: str | None
) -> CallToolResult:
    """Returns the result of one call; what is wrong with it is its text."""
    tool = find_tool(name)
    if tool is None:
        names = ", ".join(tool.name for tool in TOOLS)
        return _failure(f"there is no such tool; there are {names}")
    try:
        path = request_path(tool, arguments)
    except ArgumentError as error:
        return _failure(str(error))
    response = await page.get(path, authorization)
    if not response.is_ok:
        return _failure(_reason(response))
    text = bounded_text(selected(tool, response.content))
    return CallToolResult(content=[TextContent(text=text)])


async def serve_stdio(page: PageClient, authorization: str | None) -> None:
    """Serves the tools on stdin and stdout until stdin ends."""
    server = make_server(page, authorization)
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        await page.close()


async def serve_http(page: PageClient, listener: socket.socket, hosts: Sequence[str]) -> None:
    """Serves the tools under `PATH` until SIGINT or SIGTERM.

    ``hosts`` are names in the header ``Host`` that are answered beside those of loopback.
    """
    try:
        await http_server(page, hosts).serve(sockets=[listener])
    finally:
        await page.close()


def http_server(page: PageClient, hosts: Sequence[str]) -> uvicorn.Server:
    """Returns the HTTP server; whoever the page refuses is refused here."""
    app = make_server(page).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,  # each request has its own login, and no session outlives it
        max_request_body_size=_MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            allowed_hosts=["127.0.0.1:*", "localhost:*", "[::1]:*", *hosts],
            allowed_origins=[],  # no page of a browser may call it
        ),
    )
    config = uvicorn.Config(
        LoginOfPage(app, page),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens; raises `PortTakenError`."""
    try:
        return socket.create_server((host, port), family=_family(host), backlog=128)
    except OSError as error:
        raise PortTakenError(
            f"cannot listen on {host}:{port} ({error.strerror or error}): choose another port, or "
            "stop what listens there"
        ) from error


class LoginOfPage:
    """Refuses requests that the page would refuse, before anything of them is processed."""

    def __init__(self, app: ASGIApp, page: PageClient) -> None:
        self._app = app
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request, or refuses it as the page does."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization")
        text = None if given is None else given.decode("latin-1")
        response = await self._page.get(_FLEET, text)
        if response.is_ok:
            await self._app(scope, receive, send)
        else:
            await _refuse(send, response)


async def _refuse(send: Send, response: PageResponse) -> None:
    status = response.status if 400 <= response.status < 500 else 503
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if response.challenge:
        headers.append((b"www-authenticate", response.challenge.encode("latin-1", "replace")))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    body = f"{_reason(response)}\n".encode()
    await send({"type": "http.response.body", "body": body})


def _reason(response: PageResponse) -> str:
    if response.status == 401:
        return "the page requires a login: pass its token (--token-file, or Authorization)"
    return response.reason


def _failure(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
