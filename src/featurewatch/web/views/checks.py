"""Preconditions of requests."""

from collections.abc import Mapping

from aiohttp import web

from featurewatch.controller.kraft.releases import (
    Release,
    UnknownReleaseError,
    release_of,
    releases,
)
from featurewatch.streams.types import ClusterId
from featurewatch.web.model import FleetModel
from featurewatch.web.problems import not_read, unknown_cluster, wrong_parameter
from featurewatch.web.worker_rows import WorkerRows


def require_read(model: FleetModel) -> None:
    """Raises `ProblemError` 503 until the topics have been read to their end."""
    if not model.is_complete:
        raise not_read(model.error or "The topics have not been read to their end yet.")


def require_rows(rows: WorkerRows) -> None:
    """Raises `ProblemError` 503 until the workers' rows have been read."""
    if not rows.is_complete:
        raise not_read("The workers' rows have not been read yet.")


def cluster_of_request(request: web.Request, model: FleetModel) -> ClusterId:
    """The cluster in the path; raises `ProblemError` 404 if it has no state."""
    require_read(model)
    cluster = request.match_info["cluster"]
    if not model.has_cluster(cluster):
        raise unknown_cluster(cluster)
    return ClusterId(cluster)


def release_of_query(query: Mapping[str, str], name: str) -> Release | None:
    """The release that a parameter names; None: it was not given. Raises `ProblemError` 400."""
    text = query.get(name)
    if text is None:
        return None
    try:
        return release_of(text)
    except UnknownReleaseError:
        raise wrong_parameter(name, f"must be one of {', '.join(releases())}.") from None
