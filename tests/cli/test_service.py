"""A process as a service: what it notifies, and what it reloads."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.cli.config.settings import Settings, load
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.service import Service, changed_sections
from featurewatch.common.json_log import FIELDS
from featurewatch.common.service_manager import ServiceManager
from featurewatch.common.service_state import ServiceState
from featurewatch.streams.topics import (
    ALERTS,
    EPOCHS,
    FEATURE_CHANGES,
    OPERATIONS,
    STATE,
)
from featurewatch.tables.rows import WORKER_ROWS
from tests.common.http.ports import OTHER_TOKEN, TOKEN, Files
from tests.processes import free_port, popen
from tests.streams.bus.mock_bus import MockBus

DEADLINE_S = 180.0


class Manager:
    """A service manager's end of the socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(DEADLINE_S)

    def receive(self) -> dict[str, str]:
        """The assignments of the next datagram."""
        lines = self._socket.recv(65_536).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, is_wanted: Callable[[dict[str, str]], bool]) -> list[dict[str, str]]:
        """The datagrams up to the first that is wanted."""
        deadline = time.monotonic() + DEADLINE_S
        received = [self.receive()]
        while not is_wanted(received[-1]):
            assert time.monotonic() < deadline, received[-3:]
            received.append(self.receive())
        return received

    def drain(self) -> int:
        """Takes the datagrams that have come, and returns how many there were."""
        self._socket.setblocking(False)
        count = 0
        try:
            while True:
                self._socket.recv(65_536)
                count += 1
        except BlockingIOError:
            return count
        finally:
            self._socket.settimeout(DEADLINE_S)

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """A manager that listens."""
    it = Manager(tmp_path / "notify")
    yield it
    it.close()


def test_ready_is_notified_once(manager: Manager) -> None:
    """Afterwards only the status tells that a process is not ready."""
    state, reasons = ServiceState(), ["3 left"]
    state.add_part("worker", lambda: reasons, lambda: "done")
    service = Service(ServiceManager(str(manager.path)), ("worker",), Settings, state)
    service.check()
    assert manager.receive() == {"STATUS": "not ready: worker: 3 left"}
    service.check()
    reasons.clear()
    service.check()
    assert manager.receive() == {"READY": "1", "STATUS": "ready"}
    reasons.append("the bus does not answer")
    service.check()
    assert manager.receive() == {"STATUS": "not ready: worker: the bus does not answer"}
    reasons.clear()
    service.check()
    assert manager.receive() == {"STATUS": "ready"}
    service.stop()
    assert manager.receive() == {"STOPPING": "1", "STATUS": "stopping"}


async def test_a_stuck_loop_ends_the_signs_of_life(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    """They follow the progress of the work, and not a timer alone."""
    now_s = [0.0]
    state = ServiceState(lambda: now_s[0])
    service = Service(ServiceManager(str(manager.path), 0.06), (), Settings, state)

    def receive_ping() -> None:
        manager.until(lambda datagram: "WATCHDOG" in datagram)

    with state.loop("the reading", 10) as loop:
        async with service.notifying():
            await asyncio.to_thread(receive_ping)
            await asyncio.to_thread(receive_ping)
            now_s[0] = 11.0
            async with asyncio.timeout(DEADLINE_S):
                while "the reading has made no progress for 11 s" not in caplog.text:
                    await asyncio.sleep(0.01)
            manager.drain()
            await asyncio.sleep(0.2)  # ten periods: the absence of a datagram has no other sign
            assert manager.drain() == 0
            loop.turn()
            await asyncio.to_thread(receive_ping)


def test_a_reload_says_what_takes_a_restart(
    manager: Manager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The sections that differ by name, and that the file cannot be used."""
    caplog.set_level("INFO", "featurewatch")
    file = tmp_path / "featurewatch.yaml"
    file.write_text("bus: {bootstrap_servers: 'a:9092'}")
    state = ServiceState()
    state.add_part("page", list, lambda: "TLS and logins were reloaded")
    read = lambda: load(file)  # noqa: E731
    service = Service(ServiceManager(str(manager.path)), ("page",), read, state)
    service.check()
    assert manager.receive() == {"READY": "1", "STATUS": "ready"}
    service.reload()
    assert manager.receive()["RELOADING"] == "1"
    assert manager.receive() == {"READY": "1", "STATUS": "ready"}
    assert "reload: page: TLS and logins were reloaded" in caplog.text
    assert "reload: the settings are those of the start" in caplog.text
    file.write_text("bus: {bootstrap_servers: 'b:9092'}\nworker: {silent_after_s: 30}")
    service.reload()
    assert "restart this process to apply the changed settings: bus, worker" in caplog.text
    file.write_text("bus: [")
    service.reload()
    assert "the settings cannot be used, and those of the start stay: " in caplog.text
    file.write_text("bus: {bootstrap_servers: 'a:9092'}")
    assert changed_sections(load(file), load(file)) == []


def test_wrong_settings_are_an_error_at_the_start(tmp_path: Path) -> None:
    """Before anything runs."""
    file = tmp_path / "featurewatch.yaml"
    file.write_text("bus: [")
    with pytest.raises(UsageError):
        Service(ServiceManager(), (), lambda: load(file))


def test_a_process_runs_as_a_service(manager: Manager, tmp_path: Path) -> None:
    """The page becomes ready, reloads on SIGHUP, and ends; all of stderr is JSON."""
    bus, port = MockBus(partitions=1), free_port()
    for topic in (STATE, ALERTS, FEATURE_CHANGES, EPOCHS, OPERATIONS, WORKER_ROWS):
        bus.put(bus.settings.topic(topic), b"key", b"{}", 0)
    files = Files(tmp_path)
    tokens = files.write_tokens(TOKEN)
    environment = {
        **os.environ,
        "NOTIFY_SOCKET": str(manager.path),
        "WATCHDOG_USEC": "3000000",
        "FEATUREWATCH_WEB__TOKEN_FILE": str(tokens),
    }
    # Whoever runs the tests by nohup has it ignored, and so would the process.
    default = "import signal, runpy; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
    program = f"{default}; runpy.run_module('featurewatch', run_name='__main__')"
    command = [sys.executable, "-c", program, "--log-format", "json", "web"]
    command += ["--bus", bus.settings.bootstrap_servers, "--port", str(port)]
    log = tmp_path / "stderr"
    with (
        log.open("w") as stderr,
        popen(command, env=environment, stderr=stderr, stdin=subprocess.DEVNULL) as process,
    ):
        received = manager.until(lambda datagram: "READY" in datagram)
        assert received[-1] == {"READY": "1", "STATUS": "ready"}
        manager.until(lambda datagram: datagram == {"WATCHDOG": "1"})
        files.write_tokens(OTHER_TOKEN)
        process.send_signal(signal.SIGHUP)
        manager.until(lambda datagram: "RELOADING" in datagram)
        manager.until(lambda datagram: datagram.get("READY") == "1")
        process.send_signal(signal.SIGTERM)
        manager.until(lambda datagram: "STOPPING" in datagram)
        deadline = time.monotonic() + DEADLINE_S
        assert process.wait(deadline - time.monotonic()) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(tuple(line) == tuple(FIELDS) for line in lines), log.read_text()
    events = {line["event"]: line["component"] for line in lines}
    assert events[f"the page: http://127.0.0.1:{port}/"] == "cli"
    assert events["reload: page: TLS and logins were reloaded"] == "service"
    assert events["reload: the settings are those of the start"] == "service"
