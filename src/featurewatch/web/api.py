"""The resources of the HTTP API, version 1: JSON of the topics, and what follows from it."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import orjson
from aiohttp import web

from featurewatch.common.text import error_line
from featurewatch.controller.kraft.releases import (
    Release,
    releases,
)
from featurewatch.controller.levels import metadata_version_names
from featurewatch.kafka.releases import learned_notes
from featurewatch.monitor.rows import StateRowError
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange
from featurewatch.streams.schemas import asyncapi, described, schema_of
from featurewatch.streams.topics import ALL
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from featurewatch.web.change_index import DocumentKey
from featurewatch.web.cluster_locks import ClusterLocks
from featurewatch.web.computed_reports import ComputedReports
from featurewatch.web.documents import HEALTHS, urgency
from featurewatch.web.live import EventStreams
from featurewatch.web.model import FleetModel
from featurewatch.web.openapi import ROOT, document
from featurewatch.web.parameters import (
    Page,
    SortKey,
    check_names,
    choice,
    page,
    page_of_sorted,
    sorted_by,
)
from featurewatch.web.problems import ProblemError, not_read
from featurewatch.web.views.bounded_report import bounded_document
from featurewatch.web.views.checks import (
    cluster_of_request,
    release_of_query,
    require_read,
    require_rows,
)
from featurewatch.web.views.computed import ComputedViews
from featurewatch.web.views.past import PastViews
from featurewatch.web.views.responses import (
    is_current,
    json_response,
    list_response,
    make_etag,
    not_modified,
    response,
)
from featurewatch.web.worker_rows import WorkerRows

_ORDERS: Final = ("id", "urgency")


class Api:
    """The handlers. ``now_ms`` is the wall clock."""

    def __init__(
        self,
        model: FleetModel,
        rows: WorkerRows,
        streams: EventStreams,
        now_ms: Callable[[], int],
    ) -> None:
        self._model = model
        self._rows = rows
        self._streams = streams
        self._now_ms = now_ms
        locks = ClusterLocks()
        self._reports = ComputedReports(rows, locks, now_ms)
        self._computed = ComputedViews(model, rows, self._reports, now_ms, locks)
        self._past = PastViews(model, now_ms)
        self._alerts: list[tuple[SortKey, Alert]] = []
        self._alerts_sequence = -1
        self._asyncapi = asyncapi()
        self._openapi = orjson.dumps(document(), option=orjson.OPT_INDENT_2)

    def add_to(self, app: web.Application) -> None:
        """Adds the resources to an application."""
        for path, handler in {
            "/fleet": self.show_fleet,
            "/clusters": self.list_clusters,
            "/clusters/{cluster}": self.show_cluster,
            "/clusters/{cluster}/changes": self.list_changes,
            "/clusters/{cluster}/readiness": self.show_readiness,
            "/clusters/{cluster}/views": self._computed.list_views,
            "/clusters/{cluster}/quorum": self._computed.show_quorum,
            "/clusters/{cluster}/upgrade": self._computed.show_upgrade,
            "/clusters/{cluster}/rehearsal": self._computed.show_rehearsal,
            "/clusters/{cluster}/picture": self._past.show_picture,
            "/clusters/{cluster}/epochs": self._past.list_epochs,
            "/clusters/{cluster}/epochs/{revision}": self._past.show_epoch,
            "/clusters/{cluster}/differences": self._past.show_differences,
            "/clusters/{cluster}/operations": self._past.list_operations,
            "/readiness": self._computed.list_readiness,
            "/alerts": self.list_alerts,
            "/sources": self.list_sources,
            "/levels": self.list_levels,
            "/events": self.follow_events,
            "/openapi.json": self.show_openapi,
            "/asyncapi.json": self.show_asyncapi,
            "/schemas/{topic}": self.show_schema,
        }.items():
            app.router.add_get(ROOT + path, handler)

    async def show_fleet(self, request: web.Request) -> web.Response:
        """The totals, even before the topics have been read."""
        check_names(request.query, ())
        return json_response(
            request, {**self._model.fleet(self._now_ms()), "position": self._position()}
        )

    async def list_clusters(self, request: web.Request) -> web.Response:
        """A page of the list of clusters."""
        require_read(self._model)
        query = request.query
        check_names(query, ("state", "health", "q", "order", "limit", "cursor"))
        health = choice(query, "health", HEALTHS)
        order = choice(query, "order", _ORDERS) or _ORDERS[0]
        state, text = query.get("state"), query.get("q", "").lower()
        etag = self._etag(request, self._model.index.content_sequence)
        if is_current(request, etag):
            return not_modified(etag)
        rows = [
            row
            for row in self._model.summaries()
            if (health is None or row["health"] == health)
            and (state is None or row["state"] == state)
            and (text in row["cluster"].lower() or text in row["name"].lower())
        ]
        found = page(rows, urgency if order == "urgency" else _cluster_of_row, query, "clusters")
        return self._list(request, found, etag)

    async def show_cluster(self, request: web.Request) -> web.Response:
        """All data of one cluster."""
        check_names(request.query, ())
        cluster = cluster_of_request(request, self._model)
        number = self._model.index.content_number(DocumentKey("state", cluster))
        etag = self._etag(request, number)
        if is_current(request, etag):
            return not_modified(etag)
        content = self._model.cluster(cluster, self._now_ms())
        return json_response(request, {**content, "position": self._position()}, etag)

    async def list_changes(self, request: web.Request) -> web.Response:
        """The newest changes of a cluster, newest first."""
        check_names(request.query, ("limit", "cursor"))
        cluster = cluster_of_request(request, self._model)
        found = page(self._model.changes(cluster), _newest_first, request.query, f"of {cluster}")
        return self._list(request, found)

    async def show_readiness(self, request: web.Request) -> web.Response:
        """Whether a cluster can go to a release, as ``featurewatch readiness --json`` prints it.

        Of a very large cluster the first blockers are listed; see `bounded_document`.
        """
        check_names(request.query, ("target",))
        cluster, target = (
            cluster_of_request(request, self._model),
            release_of_query(request.query, "target"),
        )
        require_rows(self._rows)
        etag = self._etag(request, self._rows.version(cluster))
        body = await self._reports.get(
            cluster,
            f"readiness {target.name if target else ''}",
            partial(self._assess, cluster, target),
        )
        return response(request, body, etag)

    async def list_alerts(self, request: web.Request) -> web.Response:
        """The alerts that fire, and those that were resolved in the last hour."""
        require_read(self._model)
        query = request.query
        check_names(query, ("state", "cluster", "limit", "cursor"))
        state, cluster = choice(query, "state", tuple(AlertState)), query.get("cluster")
        etag = self._etag(request, self._model.index.content_sequence)
        if is_current(request, etag):
            return not_modified(etag)
        alerts = [
            (key, alert)
            for key, alert in self._sorted_alerts()
            if state in (None, alert.state) and cluster in (None, alert.cluster)
        ]
        return self._list(request, page_of_sorted(alerts, query, "alerts"), etag)

    def _sorted_alerts(self) -> list[tuple[SortKey, Alert]]:
        """All alerts, sorted once for all requests until something changes."""
        sequence = self._model.index.sequence
        if self._alerts_sequence != sequence:
            self._alerts = sorted_by(self._model.alerts(), _most_severe_first)
            self._alerts_sequence = sequence
        return self._alerts

    async def list_sources(self, request: web.Request) -> web.Response:
        """Every source of every cluster with its state, those that do not follow first."""
        require_read(self._model)
        check_names(request.query, ("limit", "cursor"))
        details = {
            (alert.cluster, alert.subject.get("source")): alert.summary
            for alert in self._model.alerts()
            if alert.state is AlertState.FIRING and "source" in alert.subject
        }
        rows = [
            {
                "cluster": row["cluster"],
                "source": source,
                "state": state,
                "at_ms": row["at_ms"],
                "detail": details.get((row["cluster"], source), ""),
            }
            for row in self._model.summaries()
            for source, state in row["sources"].items()
        ]
        found = page(rows, _not_following_first, request.query, "sources")
        return self._list(request, found)

    async def list_levels(self, request: web.Request) -> web.Response:
        """The releases that readiness takes as a target, and metadata.version's names of levels."""
        check_names(request.query, ())
        names = {METADATA_VERSION: metadata_version_names()}
        levels = {"releases": [*releases()], "names": names, "learned": learned_notes()}
        return json_response(request, levels)

    async def follow_events(self, request: web.Request) -> web.StreamResponse:
        """The event stream; it continues after ``Last-Event-ID``, or the parameter ``after``."""
        check_names(request.query, ("after",))
        position = request.headers.get("Last-Event-ID", request.query.get("after", ""))
        return await self._streams.serve(request, position)

    async def show_openapi(self, request: web.Request) -> web.Response:
        """The description of this API."""
        return response(request, self._openapi)

    async def show_asyncapi(self, request: web.Request) -> web.Response:
        """The description of the topics."""
        return response(request, self._asyncapi)

    async def show_schema(self, request: web.Request) -> web.Response:
        """The JSON Schema of a topic's values."""
        name = request.match_info["topic"]
        topic = next((topic for topic in ALL if topic.short_name == name), None)
        if topic is None or name not in described():
            raise ProblemError(HTTPStatus.NOT_FOUND, "No topic of this name has a schema.")
        return response(
            request, orjson.dumps(schema_of(topic)), content_type="application/schema+json"
        )

    def _assess(self, cluster: ClusterId, target: Release | None) -> bytes:
        try:
            report = self._rows.readiness(cluster, target, self._now_ms())
        except StateRowError as error:
            raise not_read(f"The worker's rows cannot be read: {error_line(error)}") from None
        if report is None:
            raise not_read("No worker has stored rows of this cluster yet.")
        return orjson.dumps(bounded_document(report), default=list)

    def _position(self) -> str:
        return self._model.index.position()

    def _etag(self, request: web.Request, number: int) -> str:
        return make_etag(request, self._model.index.boot, number)

    def _list(self, request: web.Request, found: Page, etag: str = "") -> web.Response:
        return list_response(request, found, self._position(), etag)


def _cluster_of_row(row: Mapping[str, Any]) -> SortKey:
    return (row["cluster"],)


def _most_severe_first(alert: Alert) -> SortKey:
    return (
        int(alert.state is AlertState.RESOLVED),
        str(alert.severity),
        alert.since_ms,
        alert.id,
    )


def _newest_first(change: FeatureChange) -> SortKey:
    return -change.revision, change.feature


def _not_following_first(row: Mapping[str, Any]) -> SortKey:
    return int(row["state"] == "following"), row["cluster"], row["source"]
