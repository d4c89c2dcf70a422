"""TLS and logins of every command that serves something, while its bus does not respond."""

from pathlib import Path

import pytest
from aiohttp import ClientError

from tests.common.http.ports import TOKEN, Files, status, until
from tests.processes import Process

COMMANDS = {
    "watch": (["watch", "--servers", "127.0.0.1:1", "--cluster-id", "a"], "/metrics"),
    "worker": (["worker"], "/metrics"),
    "notify": (["notify"], "/metrics"),
    "web": (["web"], "/api/v1/fleet"),
}


async def test_every_command_has_the_login(tmp_path: Path, closed_port: int) -> None:
    """Its data only with a token, over TLS; its health without."""
    files = Files(tmp_path)
    environment = {
        "FEATUREWATCH_WEB__CONFIG_FILE": str(files.write(tls_server_config=files.tls())),
        "FEATUREWATCH_WEB__TOKEN_FILE": str(files.write_tokens(TOKEN)),
        "FEATUREWATCH_NOTIFY__ALERTMANAGERS": f'["http://127.0.0.1:{closed_port}"]',
        "FEATUREWATCH_BUS__BOOTSTRAP_SERVERS": f"127.0.0.1:{closed_port}",
    }
    processes = []
    for name, (arguments, _) in COMMANDS.items():
        process = Process(name, arguments, tmp_path, environment)
        for port in ("PAGE_PORT", "NOTIFY_PORT"):
            process.environment[f"FEATUREWATCH_WEB__{port}"] = str(process.port)
        processes.append(process)
    try:
        for process in processes:
            process.start()
        for process in processes:
            await _has_the_login(process, files, COMMANDS[process.name][1])
    finally:
        for process in processes:
            process.kill()


async def _has_the_login(process: Process, files: Files, path: str) -> None:
    context = files.client_context()
    url = f"https://127.0.0.1:{process.port}"

    async def is_healthy() -> bool:
        assert process.ended is None, process.log.read_text()
        try:
            return await status(f"{url}/healthz", context) == 200
        except (TimeoutError, ClientError):
            return False

    await until(is_healthy)
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert await status(url + path, context) == 401
    assert await status(url + path, context, headers=token) == 200
    with pytest.raises(ClientError):
        await status(f"http://127.0.0.1:{process.port}{path}", headers=token)
