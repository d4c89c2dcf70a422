"""The OpenAPI 3.1 description of the API: it takes the topics' JSON Schemas as they are."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.streams.outputs import OperationKind
from featurewatch.web.documents import HEALTHS
from featurewatch.web.parameters import DEFAULT_LIMIT, MAX_LIMIT
from featurewatch.web.views.fleet_readiness import VERDICTS
from featurewatch.web.views.rehearsal import MAX_STEPS
from featurewatch.web.views.schemas import NUMBER, TEXT, object_of, reference, schemas

ROOT: Final = "/api/v1"
_JSON: Final = "application/json"
_REVISIONS: Final = ("cluster", "from", "to")


def document() -> dict[str, Any]:
    """The description, as JSON."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "featurewatch",
            "version": "1",
            "description": "What featurewatch knows of Kafka clusters. Fields have the names that "
            "they have on the topics, times are milliseconds since the Unix epoch, -1 where not "
            "known. Fields may be added.",
        },
        "servers": [{"url": "."}],
        "paths": {f"{ROOT}{path}": {"get": operation} for path, operation in _operations().items()},
        "components": {"schemas": schemas(), "parameters": _parameters()},
    }


def _operations() -> dict[str, dict[str, Any]]:
    page = ("limit", "cursor")
    return {
        "/fleet": _operation("showFleet", "The totals of all clusters and alerts", "Fleet"),
        "/clusters": _list(
            "listClusters", "The clusters", "ClusterSummary", "state", "health", "q", "order", *page
        ),
        "/clusters/{cluster}": _operation("showCluster", "One cluster", "Cluster", "cluster"),
        "/clusters/{cluster}/changes": _list(
            "listChanges", "The newest changes of its levels", "FeatureChange", "cluster", *page
        ),
        "/clusters/{cluster}/readiness": _operation(
            "showReadiness",
            "Whether it can go to a release, as `featurewatch readiness --json` prints it",
            "Readiness",
            "cluster",
            "target",
        ),
        "/clusters/{cluster}/views": _list(
            "listViews",
            "What each node reports of the levels, those that differ first",
            "NodeView",
            "cluster",
            *page,
        ),
        "/clusters/{cluster}/picture": _operation(
            "showPicture",
            "Its roll over time, as far as it is known: nodes, levels, alerts, and the points from "
            "which there is no way back",
            "Picture",
            "cluster",
        ),
        "/clusters/{cluster}/epochs": _list(
            "listEpochs", "The revisions of its levels, newest first", "Revision", "cluster", *page
        ),
        "/clusters/{cluster}/epochs/{revision}": _operation(
            "showEpoch", "Its state at a revision", "Epoch", "cluster", "revision"
        ),
        "/clusters/{cluster}/differences": _operation(
            "showDifferences", "What differs between two revisions", "Differences", *_REVISIONS
        ),
        "/clusters/{cluster}/operations": _list(
            "listOperations",
            "The newest steps of operations of its controller, newest first",
            "Operation",
            "cluster",
            "kind",
            *page,
        ),
        "/clusters/{cluster}/quorum": _operation(
            "showQuorum",
            "Its metadata quorum: voters, observers, and how many may fail",
            "Quorum",
            "cluster",
        ),
        "/clusters/{cluster}/upgrade": _operation(
            "showUpgrade",
            "The plan of an upgrade as `featurewatch upgrade plan` makes it, where the cluster is "
            "in it, what must hold before the next step, and the way back of each",
            "Upgrade",
            "cluster",
            "upgradeTarget",
        ),
        "/clusters/{cluster}/rehearsal": _operation(
            "showRehearsal",
            "The outcomes of steps on a model of its controllers, as `featurewatch rehearse "
            "--json` prints them; nothing is changed",
            "Rehearsal",
            "cluster",
            "step",
            "release",
        ),
        "/readiness": _list(
            "listReadiness",
            "Which clusters can go to a release: `counts` are those of all",
            "TargetReadiness",
            "newTarget",
            "verdict",
            "q",
            *page,
        ),
        "/alerts": _list(
            "listAlerts",
            "The alerts that fire, and those that were resolved in the last hour",
            "Alert",
            "alertState",
            "alertCluster",
            *page,
        ),
        "/sources": _list("listSources", "The sources and their states", "Source", *page),
        "/levels": _operation("listLevels", "Releases, and the names of levels", "Levels"),
        "/events": {
            "operationId": "followEvents",
            "summary": "What changes, as server-sent events",
            "description": "Events: `snapshot` (the totals, at the start), `fleet` (the totals), "
            "`state` (a cluster's row), `alert`, `change`, `revisions` and `operations` (a cluster "
            "has new ones), `reset` (fetch everything again) and "
            "`bye` (the server ends). The data of an event that removes something has the field "
            "`removed`. The id of an event may be given back as `Last-Event-ID` or `after`.",
            "parameters": [reference("parameters", "after")],
            "responses": {
                "200": {"description": "The stream", "content": {"text/event-stream": {}}},
                **_problems(),
            },
        },
        "/openapi.json": _operation("showOpenapi", "This document", "Anything"),
        "/asyncapi.json": _operation(
            "showAsyncapi", "The AsyncAPI 3 description of the topics", "Anything"
        ),
        "/schemas/{topic}": {
            **_operation("showSchema", "The JSON Schema of a topic's values", "Anything", "topic"),
            "responses": {
                "200": {
                    "description": "The schema",
                    "content": {"application/schema+json": {"schema": {"type": "object"}}},
                },
                **_problems(),
            },
        },
    }


def _operation(name: str, summary: str, schema: str, *parameters: str) -> dict[str, Any]:
    content = {_JSON: {"schema": reference("schemas", schema)}}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [reference("parameters", parameter) for parameter in parameters],
        "responses": {"200": {"description": summary, "content": content}, **_problems()},
    }


def _list(name: str, summary: str, item: str, *parameters: str) -> dict[str, Any]:
    operation = _operation(name, summary, item, *parameters)
    schema = object_of(
        items={"type": "array", "items": reference("schemas", item)},
        total=NUMBER,
        next_cursor={"type": ["string", "null"]},
        position=TEXT,
    )
    operation["responses"]["200"]["content"][_JSON]["schema"] = schema
    return operation


def _problems() -> dict[str, Any]:
    content = {"application/problem+json": {"schema": reference("schemas", "Problem")}}
    return {
        "304": {"description": "It has not changed: If-None-Match has its ETag"},
        "default": {"description": "The problem, as in RFC 9457", "content": content},
    }


def _parameters() -> dict[str, Any]:
    def query(name: str, about: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "query", "description": about, "schema": schema}

    def path(name: str, about: str) -> dict[str, Any]:
        return {"name": name, "in": "path", "required": True, "description": about, "schema": TEXT}

    revision = {**NUMBER, "minimum": 0}
    limits = {**NUMBER, "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
    return {
        "cluster": path("cluster", "The id of a cluster"),
        "topic": path("topic", "The short name of a topic"),
        "state": query("state", "Only clusters in this upgrade state", TEXT),
        "health": query("health", "Only these", {**TEXT, "enum": [*HEALTHS]}),
        "q": query("q", "Only clusters whose id or name contains this", TEXT),
        "order": query(
            "order", "Order: by id, or worst first", {**TEXT, "enum": ["id", "urgency"]}
        ),
        "limit": query("limit", "Items on a page", limits),
        "cursor": query("cursor", "`next_cursor` of the page before", TEXT),
        "target": query("target", "A release; default: the newest that a node runs", TEXT),
        "newTarget": query("target", "A release; default: the newest", TEXT),
        "upgradeTarget": query(
            "target",
            "A release; default: that which nodes run and others, or levels, do not yet, else the "
            "newest",
            TEXT,
        ),
        "release": query(
            "release", "Release of the active controller; default: the known one", TEXT
        ),
        "verdict": query(
            "verdict", "Only clusters with this verdict", {**TEXT, "enum": [*VERDICTS]}
        ),
        "kind": query("kind", "Only operations of this kind", {**TEXT, "enum": [*OperationKind]}),
        "revision": {**path("revision", "The number of a revision"), "schema": revision},
        "from": {**query("from", "The earlier revision", revision), "required": True},
        "to": {**query("to", "The later revision", revision), "required": True},
        "step": {
            **query(
                "step",
                f"A step, as in `stop:broker-2`; 1 to {MAX_STEPS} times, in order",
                {"type": "array", "items": TEXT, "minItems": 1, "maxItems": MAX_STEPS},
            ),
            "required": True,
        },
        "alertState": query("state", "Only these", {**TEXT, "enum": ["firing", "resolved"]}),
        "alertCluster": query("cluster", "Only alerts of this cluster", TEXT),
        "after": query("after", "The id of the last event that the client has", TEXT),
    }
