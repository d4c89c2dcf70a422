"""The tools over stdio and HTTP, by the SDK's own client, against a page."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from featurewatch.cli.app import app
from featurewatch.cli.command_line import run_command
from featurewatch.cli.main import exit_code_of
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.integrations.mcp.page_client import PageClient
from featurewatch.integrations.mcp.tools import TOOLS
from tests.common.http.ports import OTHER_TOKEN, TOKEN, Files
from tests.simulation import records as r
from tests.web.rolls import publish, rolling
from tests.web.samples import NOW_MS, alert_of, read_model, state_of
from tests.web.sites import Site, site

if TYPE_CHECKING:
    from mcp import Client

DEADLINE_S = 180.0


def assistant_of(page: PageClient) -> "Client":
    """An assistant with the tools of a page, in this process."""
    # Each worker that collects tests would take a second for these imports, and the next ones.
    from mcp import Client

    from featurewatch.integrations.mcp.server import make_server

    return Client(make_server(page))


def address_of(served: Site) -> str:
    """The address of a page."""
    return f"http://127.0.0.1:{served.server.port}/"


@contextlib.asynccontextmanager
async def assistants(page: str) -> AsyncIterator[str]:
    """The tools over HTTP; gives their address."""
    from featurewatch.integrations.mcp.server import PATH, http_server, listen

    client = PageClient(page)
    with listen("127.0.0.1", 0) as listener:
        server = http_server(client, ["tools.example.org"])
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
        finally:
            server.should_exit = True
            await asyncio.wait_for(serving, DEADLINE_S)
            await client.close()


def content_of(result: Any) -> Any:
    """The document of a result."""
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


async def test_an_assistant_reads_the_fleet() -> None:
    """All tools are marked as reading; answers are those of the API, and errors are texts."""
    names = [f"cluster-{number:03}" for number in range(30)]
    model = read_model([*map(state_of, names), alert_of(names[0])])
    async with site(model) as served:
        page = PageClient(address_of(served))
        async with assistant_of(page) as client:
            offered = (await client.list_tools()).tools
            assert [tool.name for tool in offered] == [tool.name for tool in TOOLS]
            for tool in offered:
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint is True
                assert tool.annotations.destructive_hint is False
            assert "none changes a cluster" in (client.instructions or "")
            listed = content_of(await client.call_tool("clusters", {}))
            assert [row["cluster"] for row in listed["items"]] == names[:20]
            following = {"cursor": listed["next_cursor"], "limit": 100}
            listed = content_of(await client.call_tool("clusters", following))
            assert [row["cluster"] for row in listed["items"]] == names[20:]
            cluster = content_of(await client.call_tool("cluster", {"cluster": names[0]}))
            expected = await served.body(f"/clusters/{names[0]}")
            assert cluster.keys() == expected.keys()
            alerts = content_of(await client.call_tool("alerts", {}))
            assert alerts["total"] == 1
            for arguments, message in (
                ({"cluster": "unknown"}, "unknown"),
                ({}, "cluster needs the argument cluster"),
                ({"cluster": "../readiness"}, "readiness"),
            ):
                result = await client.call_tool("cluster", arguments)
                assert result.is_error
                assert message in result.content[0].text  # type: ignore[union-attr]
        await page.close()


async def test_an_assistant_reads_the_quorum() -> None:
    """What the page has of it: with a state for each voter, and unknown while nobody described it.

    What is not stored yet is an error, not a quorum without voters.
    """
    image = rolling("4.0", "3.9", "3.9")
    voters = [r.replica(1), r.replica(2), r.replica(3, state="silent")]
    described = replace(image.answers, quorum=r.quorum(voters, seen_ms=NOW_MS))
    async with site() as served, assistant_of(PageClient(address_of(served))) as client:
        served.server.rows.end_reading()
        call = ("quorum", {"cluster": image.cluster})
        publish(image, served.server.model, served.server.rows, NOW_MS)
        unknown = content_of(await client.call_tool(*call))
        assert (unknown["fetching"], unknown["may_fail"]) == (None, None)
        assert unknown["detail"]
        publish(replace(image, answers=described), served.server.model, served.server.rows, NOW_MS)
        known = content_of(await client.call_tool(*call))
        assert known == await served.body(f"/clusters/{image.cluster}/quorum")
        assert (known["majority"], known["fetching"], known["may_fail"]) == (2, 2, 0)
        assert [voter["state"] for voter in known["voters"]] == ["following", "following", "silent"]
        missing = await client.call_tool("quorum", {"cluster": "a-cluster"})
        assert missing.is_error


async def test_logins_are_those_of_the_page(tmp_path: Path) -> None:
    """Over HTTP a caller without one is refused before anything else, as is a browser's page."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    tokens = Files(tmp_path).write_tokens(TOKEN)
    async with (
        site(access=AccessSettings(token_file=tokens)) as served,
        assistants(address_of(served)) as url,
    ):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            fleet = content_of(await client.call_tool("fleet", {}))
            assert fleet["complete"] is True
        async with httpx2.AsyncClient() as http:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            accept = {"Accept": "application/json, text/event-stream"}
            for wrong in ({}, {"Authorization": f"Bearer {OTHER_TOKEN}"}):
                refused = await http.post(url, json=call, headers=accept | wrong)
                assert refused.status_code == 401
                assert refused.headers["WWW-Authenticate"].startswith("Bearer realm=")
                assert "requires a login" in refused.text
            for more in ({"Host": "evil.example.org"}, {"Origin": "http://evil.example.org"}):
                refused = await http.post(url, json=call, headers=accept | headers | more)
                assert refused.status_code in (403, 421)


async def test_an_unreachable_page_is_named(closed_port: int) -> None:
    """In the result, and to callers over HTTP."""
    import httpx2

    page = f"http://127.0.0.1:{closed_port}/"
    client = PageClient(page)
    async with assistant_of(client) as assistant:
        result = await assistant.call_tool("fleet", {})
        assert result.is_error
        assert f"the page at {page} cannot be reached" in result.content[0].text  # type: ignore[union-attr]
    await client.close()
    async with assistants(page) as url, httpx2.AsyncClient() as http:
        refused = await http.post(url, json={})
        assert refused.status_code == 503


async def test_the_command_serves_stdio(tmp_path: Path) -> None:
    """With a token of the page, as an assistant starts it."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    tokens = Files(tmp_path).write_tokens(TOKEN)
    async with site(access=AccessSettings(token_file=tokens)) as served:
        command = ["-m", "featurewatch", "mcp", "--page", address_of(served)]
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[*command, "--token-file", str(tokens)],
            env={**os.environ},
        )
        async with asyncio.timeout(DEADLINE_S), Client(stdio_client(parameters)) as client:
            clusters = content_of(await client.call_tool("clusters", {}))
            assert [row["cluster"] for row in clusters["items"]] == ["a-cluster"]
            missing = await client.call_tool("delete_topic", {})
            assert missing.is_error
            assert "there is no such tool" in missing.content[0].text  # type: ignore[union-attr]


def refusal_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line that a wrong use of the command prints."""
    assert exit_code_of(lambda: run_command(app, ["mcp", *arguments])) == 2
    return capsys.readouterr().err


def test_wrong_use_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also a port that is taken, and an extra that is not installed."""
    from featurewatch.integrations.mcp.server import listen

    missing = str(tmp_path / "missing")
    assert "write the whole address" in refusal_of(capsys, "--page", "page:9780")
    assert "--token-file is for stdio" in refusal_of(capsys, "--port", "0", "--token-file", missing)
    page = ("--page", "http://127.0.0.1:1/")
    assert "missing cannot be read" in refusal_of(capsys, *page, "--token-file", missing)
    assert "missing cannot be used" in refusal_of(capsys, *page, "--ca-file", missing)
    with listen("127.0.0.1", 0) as listener:
        port = str(listener.getsockname()[1])
        assert f"cannot listen on 127.0.0.1:{port}" in refusal_of(capsys, *page, "--port", port)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert refusal_of(capsys) == "featurewatch: assistants need: pip install 'featurewatch[mcp]'\n"
