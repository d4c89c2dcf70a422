"""The resources that are computed on request, in a thread, one at a time of each cluster."""

import asyncio
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import orjson
from aiohttp import web
from immutables import Map

from featurewatch.common.text import error_line
from featurewatch.controller.kraft.releases import releases
from featurewatch.monitor.alerts import FiringAlerts
from featurewatch.monitor.quorum.report import quorum_report
from featurewatch.monitor.rows import StateRowError
from featurewatch.monitor.rules import Subject, SubjectKind
from featurewatch.monitor.step import MonitorState
from featurewatch.monitor.upgrade import PlanError
from featurewatch.streams.outputs import Alert
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.web.cluster_locks import ClusterLocks
from featurewatch.web.computed_reports import ComputedReports
from featurewatch.web.model import FleetModel
from featurewatch.web.parameters import check_names, choice, page
from featurewatch.web.problems import ProblemError, not_read, wrong_parameter
from featurewatch.web.views.checks import (
    cluster_of_request,
    release_of_query,
    require_read,
    require_rows,
)
from featurewatch.web.views.fleet_readiness import VERDICTS, FleetReadiness, by_verdict, counts
from featurewatch.web.views.node_views import node_views, view_order
from featurewatch.web.views.rehearsal import (
    NotRehearsableError,
    StepRefusedError,
    parse_steps,
    rehearse_steps,
)
from featurewatch.web.views.responses import json_response, list_response, response
from featurewatch.web.views.upgrade import UpgradeRequest, upgrade_document
from featurewatch.web.worker_rows import RestoredCluster, WorkerRows

_BUDGET_MS: Final = 2_000
"""A request works this long; it leaves the rest to the next one."""

_HELD_MS: Final = 5_000
_MAX_HELD: Final = 4
"""Clusters whose nodes' views are held; of 20,000 nodes they take some 20 MB."""


class ComputedViews:
    """The handlers. ``now_ms`` is the wall clock, ``locks`` keep two from computing the same."""

    def __init__(
        self,
        model: FleetModel,
        rows: WorkerRows,
        reports: ComputedReports,
        now_ms: Callable[[], int],
        locks: ClusterLocks,
    ) -> None:
        self._model = model
        self._rows = rows
        self._reports = reports
        self._now_ms = now_ms
        self._fleet = FleetReadiness(rows)
        self._locks = locks
        self._assessing_fleet = asyncio.Lock()
        self._views: dict[ClusterId, tuple[tuple[int, int], int, list[dict[str, Any]]]] = {}

    async def list_readiness(self, request: web.Request) -> web.Response:
        """Which clusters can go to a release; ``counts`` are those of all."""
        require_read(self._model)
        query = request.query
        check_names(query, ("target", "verdict", "q", "limit", "cursor"))
        target = release_of_query(query, "target") or [*releases().values()][-1]
        verdict, text = choice(query, "verdict", VERDICTS), query.get("q", "").lower()
        require_rows(self._rows)
        clusters = {row["cluster"]: row["digest"] for row in self._model.summaries()}
        async with self._assessing_fleet:
            left = await asyncio.to_thread(
                self._fleet.assess, clusters, target, self._now_ms, _BUDGET_MS
            )
        if left:
            raise not_read(f"{len(clusters) - left} of {len(clusters)} clusters are assessed.")
        rows = self._fleet.documents(target)
        items = [
            row
            for row in rows
            if verdict in (None, row["verdict"]) and text in row["cluster"].lower()
        ]
        found = page(items, by_verdict, query, "readiness")
        more = {"target": target.name, "counts": counts(rows)}
        return list_response(request, found, self._model.index.position(), more=more)

    async def list_views(self, request: web.Request) -> web.Response:
        """The levels as each node of a cluster reports them, nodes that differ first."""
        check_names(request.query, ("limit", "cursor"))
        cluster = cluster_of_request(request, self._model)
        async with self._locks.of(cluster):
            epoch, rows = await self._node_views(cluster)
        found = page(rows, view_order, request.query, f"views of {cluster}")
        more = {
            "epoch": epoch,
            "differing": sum(bool(row["differences"] or row["levels"]) for row in rows),
        }
        return list_response(request, found, self._model.index.position(), more=more)

    async def _node_views(self, cluster: ClusterId) -> tuple[int, list[dict[str, Any]]]:
        """The epoch of a cluster and the rows of its nodes, computed once for all requests that
        come while its state and the time, from which they follow, are about the same."""
        key = self._rows.version(cluster), self._now_ms() // _HELD_MS
        held = self._views.pop(cluster, None)
        if held is None or held[0] != key:
            image = await asyncio.to_thread(self._image, cluster)
            rows = await asyncio.to_thread(node_views, image, self._now_ms())
            held = key, image.features.epoch, rows
        self._views[cluster] = held
        if len(self._views) > _MAX_HELD:
            del self._views[next(iter(self._views))]
        return held[1], held[2]

    async def show_quorum(self, request: web.Request) -> web.Response:
        """The metadata quorum of a cluster: voters, observers, and what it can lose."""
        check_names(request.query, ())
        cluster = cluster_of_request(request, self._model)
        body = await self._reports.get(cluster, "quorum", partial(self._quorum, cluster))
        return response(request, body)

    async def show_upgrade(self, request: web.Request) -> web.Response:
        """The plan of an upgrade, where the cluster is in it, and what is next."""
        check_names(request.query, ("target",))
        cluster = cluster_of_request(request, self._model)
        target = release_of_query(request.query, "target")
        firing, past = self._model.firing(cluster), self._model.past_software(cluster)
        doubt = self._model.doubt(cluster)
        asked = UpgradeRequest(target, past, doubt, version("featurewatch"), self._now_ms())
        seen = frozenset((alert.id, alert.severity, alert.summary) for alert in firing)
        name = f"upgrade {target.name if target else ''} {hash((seen, past, doubt))}"
        try:
            body = await self._reports.get(
                cluster, name, partial(self._upgrade, cluster, asked, firing)
            )
        except PlanError as error:
            raise ProblemError(HTTPStatus.CONFLICT, f"There is no plan: {error}.") from None
        return response(request, body)

    async def show_rehearsal(self, request: web.Request) -> web.Response:
        """The outcomes of steps on the model of a cluster; nothing is changed anywhere."""
        check_names(request.query, ("step", "release"))
        cluster = cluster_of_request(request, self._model)
        release = release_of_query(request.query, "release")
        try:
            steps = parse_steps(request.query.getall("step", []))
            async with self._locks.of(cluster):
                image = await asyncio.to_thread(self._image, cluster)
                document: dict[str, Any] = await asyncio.to_thread(
                    rehearse_steps, image, steps, release
                )
        except StepRefusedError as error:
            raise wrong_parameter("step", str(error)) from None
        except NotRehearsableError as error:
            raise ProblemError(HTTPStatus.CONFLICT, str(error)) from None
        return json_response(request, document)

    def _quorum(self, cluster: ClusterId) -> bytes:
        report = quorum_report(self._image(cluster))
        return orjson.dumps({"cluster": cluster, **report.document()}, default=list)

    def _upgrade(
        self, cluster: ClusterId, asked: UpgradeRequest, firing: tuple[Alert, ...]
    ) -> bytes:
        image, times = self._restored(cluster)
        alerts: FiringAlerts = Map()
        if firing:
            alerts = alerts.set(Subject(SubjectKind.ALERTS, ""), firing)
        state = MonitorState(image, alerts, times)
        return orjson.dumps(upgrade_document(state, asked, self._rows.limits), default=list)

    def _image(self, cluster: ClusterId) -> ClusterImage:
        return self._restored(cluster).image

    def _restored(self, cluster: ClusterId) -> RestoredCluster:
        require_rows(self._rows)
        try:
            found = self._rows.restored(cluster)
        except StateRowError as error:
            raise not_read(f"The worker's rows cannot be read: {error_line(error)}") from None
        if found is None:
            raise not_read("No worker has stored rows of this cluster yet.")
        return found
