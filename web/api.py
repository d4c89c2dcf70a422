"""The resources of the HTTP API, version 1: JSON of the topics, and what follows from it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from aiohttp import web

from featurewatch.controller.kraft.releases import (
    Release,
    UnknownReleaseError,
    release_of,
    releases,
)
from featurewatch.controller.levels import METADATA_VERSION_NAMES
from featurewatch.controller.rows import StateRowError
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange
from featurewatch.streams.schemas import described, schema_of
from featurewatch.streams.text import error_line
from featurewatch.streams.topics import ALL
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from featurewatch.web.change_index import DocumentKey
from featurewatch.web.documents import HEALTHS, urgency
from featurewatch.web.live import EventStreams
from featurewatch.web.model import FleetModel
from featurewatch.web.openapi import ROOT, document
from featurewatch.web.parameters import Page, SortKey, check_names, choice, page
from featurewatch.web.problems import ProblemError, not_read, unknown_cluster, wrong_parameter
from featurewatch.web.worker_rows import WorkerRows

_COMPRESSED_FROM_BYTES: Final = 1_024
_ORDERS: Final = ("id", "urgency")
_MAX_REPORTS: Final = 64
"""Reports of readiness that are held until their rows change."""


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
        self._assessing = asyncio.Lock()
        self._reports: dict[tuple[str, str, int], bytes] = {}
        self._openapi = orjson.dumps(document(), option=orjson.OPT_INDENT_2)

    def add_to(self, app: web.Application) -> None:
        """Adds the resources to an application."""
        for path, handler in {
            "/fleet": self.show_fleet,
            "/clusters": self.list_clusters,
            "/clusters/{cluster}": self.show_cluster,
            "/clusters/{cluster}/changes": self.list_changes,
            "/clusters/{cluster}/readiness": self.show_readiness,
            "/alerts": self.list_alerts,
            "/sources": self.list_sources,
            "/levels": self.list_levels,
            "/events": self.follow_events,
            "/openapi.json": self.show_openapi,
            "/schemas/{topic}": self.show_schema,
        }.items():
            app.router.add_get(ROOT + path, handler)

    async def show_fleet(self, request: web.Request) -> web.Response:
        """The totals; also before the topics have been read."""
        check_names(request.query, ())
        return _json(request, {**self._model.fleet(self._now_ms()), "position": self._position()})

    async def list_clusters(self, request: web.Request) -> web.Response:
        """The clusters, a page of them."""
        self._require_read()
        query = request.query
        check_names(query, ("state", "health", "q", "order", "limit", "cursor"))
        health = choice(query, "health", HEALTHS)
        order = choice(query, "order", _ORDERS) or _ORDERS[0]
        state, text = query.get("state"), query.get("q", "").lower()
        etag = self._etag(request, self._model.index.content_sequence)
        if _is_current(request, etag):
            return _not_modified(etag)
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
        """Everything of one cluster."""
        check_names(request.query, ())
        cluster = self._cluster(request)
        number = self._model.index.content_number(DocumentKey("state", cluster))
        etag = self._etag(request, number)
        if _is_current(request, etag):
            return _not_modified(etag)
        content = self._model.cluster(cluster, self._now_ms())
        return _json(request, {**content, "position": self._position()}, etag)

    async def list_changes(self, request: web.Request) -> web.Response:
        """The newest changes of a cluster, newest first."""
        check_names(request.query, ("limit", "cursor"))
        cluster = self._cluster(request)
        found = page(self._model.changes(cluster), _newest_first, request.query, f"of {cluster}")
        return self._list(request, found)

    async def show_readiness(self, request: web.Request) -> web.Response:
        """Whether a cluster can go to a release, as ``featurewatch readiness --json`` prints it."""
        check_names(request.query, ("target",))
        cluster, target = ClusterId(self._cluster(request)), _release(request.query)
        if not self._rows.is_complete:
            raise not_read("The workers' rows have not been read yet.")
        name = target.name if target else ""
        version = self._rows.version(cluster)
        etag = self._etag(request, version)
        # What it says of nodes that are away also follows from the time.
        key = cluster, name, version * 1_000_000_000 + self._now_ms() // 10_000
        # One at a time: restoring a large cluster takes long.
        async with self._assessing:
            if key not in self._reports:
                body = await asyncio.to_thread(self._assess, cluster, target)
                if len(self._reports) >= _MAX_REPORTS:
                    self._reports.clear()
                self._reports[key] = body
            return _response(request, self._reports[key], etag)

    async def list_alerts(self, request: web.Request) -> web.Response:
        """The alerts that fire, and those that were resolved in the last hour."""
        self._require_read()
        query = request.query
        check_names(query, ("state", "cluster", "limit", "cursor"))
        state, cluster = choice(query, "state", tuple(AlertState)), query.get("cluster")
        alerts = [
            alert
            for alert in self._model.alerts()
            if state in (None, alert.state) and cluster in (None, alert.cluster)
        ]
        found = page(alerts, _most_severe_first, query, "alerts")
        return self._list(request, found)

    async def list_sources(self, request: web.Request) -> web.Response:
        """Every source of every cluster with its state, those that do not follow first."""
        self._require_read()
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
        names = {METADATA_VERSION: METADATA_VERSION_NAMES}
        return _json(request, {"releases": [*releases()], "names": names})

    async def follow_events(self, request: web.Request) -> web.StreamResponse:
        """The event stream; it goes on after ``Last-Event-ID``, or the parameter ``after``."""
        check_names(request.query, ("after",))
        position = request.headers.get("Last-Event-ID", request.query.get("after", ""))
        return await self._streams.serve(request, position)

    async def show_openapi(self, request: web.Request) -> web.Response:
        """The description of this API."""
        return _response(request, self._openapi)

    async def show_schema(self, request: web.Request) -> web.Response:
        """The JSON Schema of a topic's values."""
        name = request.match_info["topic"]
        topic = next((topic for topic in ALL if topic.short_name == name), None)
        if topic is None or name not in described():
            raise ProblemError(HTTPStatus.NOT_FOUND, "No topic of this name has a schema.")
        return _response(
            request, orjson.dumps(schema_of(topic)), content_type="application/schema+json"
        )

    def _assess(self, cluster: ClusterId, target: Release | None) -> bytes:
        try:
            report = self._rows.readiness(cluster, target, self._now_ms())
        except StateRowError as error:
            raise not_read(f"The worker's rows cannot be read: {error_line(error)}") from None
        if report is None:
            raise not_read("No worker has stored rows of this cluster yet.")
        return orjson.dumps(report, default=list)

    def _require_read(self) -> None:
        if not self._model.is_complete:
            raise not_read(self._model.error or "The topics have not been read to their end yet.")

    def _cluster(self, request: web.Request) -> str:
        self._require_read()
        cluster = request.match_info["cluster"]
        if not self._model.has_cluster(cluster):
            raise unknown_cluster(cluster)
        return cluster

    def _position(self) -> str:
        return self._model.index.position()

    def _etag(self, request: web.Request, number: int) -> str:
        """A weak tag: it does not change with times. Other parameters are another resource."""
        query = sha256(request.query_string.encode()).hexdigest()[:8]
        return f'W/"{self._model.index.boot}.{number}.{query}"'

    def _list(self, request: web.Request, found: Page, etag: str = "") -> web.Response:
        body = {
            "items": [
                asdict(item) if isinstance(item, Alert | FeatureChange) else item
                for item in found.items
            ],
            "total": found.total,
            "next_cursor": found.next_cursor,
            "position": self._position(),
        }
        response = _json(request, body, etag)
        if found.next_cursor is not None:
            # Relative: it holds under any path that a proxy puts before it.
            query = urlencode({**request.query, "cursor": found.next_cursor})
            response.headers["Link"] = f'<?{query}>; rel="next"'
        return response


def _release(query: Mapping[str, str]) -> Release | None:
    text = query.get("target")
    if text is None:
        return None
    try:
        return release_of(text)
    except UnknownReleaseError:
        raise wrong_parameter("target", f"must be one of {', '.join(releases())}.") from None


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


def _is_current(request: web.Request, etag: str) -> bool:
    given = request.headers.get("If-None-Match", "")
    return etag in (tag.strip() for tag in given.split(","))


def _not_modified(etag: str) -> web.Response:
    return web.Response(
        status=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag, "Cache-Control": "no-cache"}
    )


def _json(request: web.Request, content: Any, etag: str = "") -> web.Response:
    return _response(request, orjson.dumps(content, default=list), etag)


def _response(
    request: web.Request, body: bytes, etag: str = "", content_type: str = "application/json"
) -> web.Response:
    headers = {"ETag": etag, "Cache-Control": "no-cache"} if etag else {}
    response = web.Response(body=body, content_type=content_type, headers=headers)
    if len(body) >= _COMPRESSED_FROM_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
        response.headers["Vary"] = "Accept-Encoding"
    return response
