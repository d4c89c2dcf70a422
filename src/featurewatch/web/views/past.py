"""The resources of a cluster's past: its roll, its revisions, what differs, and operations."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web

from featurewatch.controller.levels import finalized_name
from featurewatch.monitor.roll_picture.model import document
from featurewatch.streams.outputs import Operation, OperationKind, Snapshot
from featurewatch.web.history.differences import differences, revision_row
from featurewatch.web.model import FleetModel
from featurewatch.web.parameters import SortKey, check_names, choice, page
from featurewatch.web.problems import ProblemError, not_read, wrong_parameter
from featurewatch.web.report_cache import ReportCache
from featurewatch.web.views.checks import cluster_of_request
from featurewatch.web.views.responses import json_response, list_response, response

_MAX_DIGITS = 18


class PastViews:
    """The handlers."""

    def __init__(self, model: FleetModel, now_ms: Callable[[], int]) -> None:
        self._model = model
        self._now_ms = now_ms
        self._pictures = ReportCache()

    async def show_picture(self, request: web.Request) -> web.Response:
        """The roll of a cluster over time: its nodes, levels and alerts, as far as it is known."""
        check_names(request.query, ())
        cluster, now_ms = cluster_of_request(request, self._model), self._now_ms()
        key = cluster, "", self._model.rolls.version(cluster) * 1_000_000_000 + now_ms // 10_000
        body = self._pictures.get(key)
        if body is None:
            picture = self._model.picture(cluster, now_ms)
            body = orjson.dumps(document(picture, finalized_name), default=list)
            self._pictures.put(key, body)
        return response(request, body)

    async def list_epochs(self, request: web.Request) -> web.Response:
        """The revisions of a cluster's levels, newest first."""
        check_names(request.query, ("limit", "cursor"))
        cluster = self._cluster(request)
        rows = [revision_row(snapshot) for snapshot in self._model.history.revisions(cluster)]
        found = page(rows, _newest_revision_first, request.query, f"epochs of {cluster}")
        return list_response(request, found, self._model.index.position())

    async def show_epoch(self, request: web.Request) -> web.Response:
        """The state of a cluster at a revision, as it is on the topic."""
        check_names(request.query, ())
        cluster = self._cluster(request)
        revision = _number("revision", request.match_info["revision"])
        return json_response(request, asdict(self._revision(cluster, revision)))

    async def show_differences(self, request: web.Request) -> web.Response:
        """The differences between two revisions, ``from`` and ``to``."""
        check_names(request.query, ("from", "to"))
        cluster = self._cluster(request)
        before, after = (
            self._revision(cluster, _number(name, request.query.get(name, "")))
            for name in ("from", "to")
        )
        return json_response(request, differences(before, after))

    async def list_operations(self, request: web.Request) -> web.Response:
        """The newest steps of operations of a cluster's controller, newest first."""
        query = request.query
        check_names(query, ("kind", "limit", "cursor"))
        cluster = self._cluster(request)
        kind = choice(query, "kind", tuple(OperationKind))
        operations = [
            operation
            for operation in self._model.history.operations(cluster)
            if kind in (None, operation.kind)
        ]
        found = page(operations, _newest_step_first, query, f"operations of {cluster}")
        return list_response(request, found, self._model.index.position())

    def _cluster(self, request: web.Request) -> str:
        cluster = cluster_of_request(request, self._model)
        history = self._model.history
        if not history.is_complete:
            raise not_read(history.error or "The history has not been read to its end yet.")
        return cluster

    def _revision(self, cluster: str, revision: int) -> Snapshot:
        snapshot = self._model.history.revision(cluster, revision)
        if snapshot is None:
            raise ProblemError(
                HTTPStatus.NOT_FOUND,
                f"Revision {revision} of this cluster is not held: only the newest are, as far as "
                "the topic epochs has them.",
            )
        return snapshot


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise wrong_parameter(name, "must be the number of a revision.")
    return int(text)


def _newest_revision_first(row: Mapping[str, Any]) -> SortKey:
    return (-row["revision"],)


def _newest_step_first(operation: Operation) -> SortKey:
    return -operation.append_ms, -operation.offset, operation.id
