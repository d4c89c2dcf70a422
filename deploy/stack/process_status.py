"""The part of a server's status that all kinds of servers share."""

from typing import Any

from featurewatch.deploy.process.server import Server


def process_status(server: Server) -> dict[str, Any]:
    """Whether the server runs and is ready, and why not, as plain data."""
    reason = server.not_ready_reason() if server.running else "it is not running"
    return {
        "running": server.running,
        "ready": reason is None,
        "missing": reason,
        "pid": server.pid,
        "log": str(server.log),
    }
