"""systemd's protocol, on a real datagram socket."""

import os
import socket
from pathlib import Path

import pytest

from featurewatch.common.service_manager import (
    ServiceManager,
    service_manager,
    take_service_manager,
)


@pytest.mark.parametrize("is_abstract", [False, True])
def test_assignments_arrive_in_one_datagram(tmp_path: Path, is_abstract: bool) -> None:
    """At a path, or at a name of Linux' abstract space."""
    name = f"featurewatch-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(10)
        listener.bind(f"\0{name}" if is_abstract else name)
        manager = ServiceManager(f"@{name}" if is_abstract else name)
        manager.notify(READY="1", STATUS="ready")
        assert listener.recv(4096) == b"READY=1\nSTATUS=ready\n"
        manager.notify_reloading()
        first, second = listener.recv(4096).decode().splitlines()
        assert first == "RELOADING=1"
        assert second.removeprefix("MONOTONIC_USEC=").isdigit()


def test_nobody_listens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The work continues without a manager, and with one that has ended."""
    ServiceManager().notify(READY="1")
    assert not caplog.records
    gone = ServiceManager(str(tmp_path / "gone"))
    gone.notify(READY="1")
    gone.notify(STATUS="ready")
    text = "the service manager was not notified: No such file or directory"
    assert [record.getMessage() for record in caplog.records] == [text]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ServiceManager()),
        ({"NOTIFY_SOCKET": "/run/n"}, ServiceManager("/run/n")),
        ({"NOTIFY_SOCKET": "vsock:2:1"}, ServiceManager()),
        ({"WATCHDOG_USEC": "60000000"}, ServiceManager()),
        (
            {"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"},
            ServiceManager("@n", 60.0),
        ),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "6", "WATCHDOG_PID": "8"}, ServiceManager("@n")),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "soon"}, ServiceManager("@n")),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "0"}, ServiceManager("@n")),
    ],
)
def test_the_environment_names_the_manager(
    environment: dict[str, str], expected: ServiceManager
) -> None:
    """A watchdog of another process is not ours."""
    assert service_manager(environment, 7) == expected


def test_children_do_not_notify() -> None:
    """What this process starts gets none of the variables."""
    environment = {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000", "PATH": "/bin"}
    manager = take_service_manager(environment)
    assert environment == {"PATH": "/bin"}
    assert manager.ping_interval_s == 1.0
