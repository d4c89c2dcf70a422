"""``/metrics``, ``/healthz`` and ``/readyz`` of the worker."""

from typing import Any

from prometheus_client import generate_latest

from agents.worker import Worker
from streams.health import HealthServer, HealthViews


def serve_health(worker: Worker, host: str, port: int) -> HealthServer:
    """Serves the views of a worker; ready once it has read its topics to their end."""

    def readiness() -> tuple[bool, dict[str, Any]]:
        waiting = worker.not_ready_reasons()
        return not waiting, {"ready": not waiting, "waiting": waiting}

    views = HealthViews(lambda: generate_latest(worker.metrics.registry), readiness)
    return HealthServer(views, port=port, host=host)
