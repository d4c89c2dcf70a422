"""The OpenAPI 3.1 description of the API: it takes the topics' JSON Schemas as they are."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES
from featurewatch.web.documents import HEALTHS
from featurewatch.web.parameters import DEFAULT_LIMIT, MAX_LIMIT

ROOT: Final = "/api/v1"
_JSON: Final = "application/json"
_TEXT: Final[Mapping[str, Any]] = {"type": "string"}
_NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}


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
        "components": {"schemas": _schemas(), "parameters": _parameters()},
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
            "`state` (a cluster's row), `alert`, `change`, `reset` (fetch everything anew) and "
            "`bye` (the server ends). The data of an event that removes something has the field "
            "`removed`. The id of an event may be given back as `Last-Event-ID` or `after`.",
            "parameters": [_reference("parameters", "after")],
            "responses": {
                "200": {"description": "The stream", "content": {"text/event-stream": {}}},
                **_problems(),
            },
        },
        "/openapi.json": _operation("showOpenapi", "This document", "Anything"),
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
    content = {_JSON: {"schema": _reference("schemas", schema)}}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [_reference("parameters", parameter) for parameter in parameters],
        "responses": {"200": {"description": summary, "content": content}, **_problems()},
    }


def _list(name: str, summary: str, item: str, *parameters: str) -> dict[str, Any]:
    operation = _operation(name, summary, item, *parameters)
    schema = _object(
        items={"type": "array", "items": _reference("schemas", item)},
        total=_NUMBER,
        next_cursor={"type": ["string", "null"]},
        position=_TEXT,
    )
    operation["responses"]["200"]["content"][_JSON]["schema"] = schema
    return operation


def _problems() -> dict[str, Any]:
    content = {"application/problem+json": {"schema": _reference("schemas", "Problem")}}
    return {
        "304": {"description": "It has not changed: If-None-Match has its ETag"},
        "default": {"description": "What is wrong, as RFC 9457 has it", "content": content},
    }


def _parameters() -> dict[str, Any]:
    def query(name: str, about: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "query", "description": about, "schema": schema}

    def path(name: str, about: str) -> dict[str, Any]:
        return {"name": name, "in": "path", "required": True, "description": about, "schema": _TEXT}

    limits = {**_NUMBER, "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
    return {
        "cluster": path("cluster", "The id of a cluster"),
        "topic": path("topic", "The short name of a topic"),
        "state": query("state", "Only clusters in this upgrade state", _TEXT),
        "health": query("health", "Only these", {**_TEXT, "enum": [*HEALTHS]}),
        "q": query("q", "Only clusters whose id or name contains this", _TEXT),
        "order": query("order", "By id, or worst first", {**_TEXT, "enum": ["id", "urgency"]}),
        "limit": query("limit", "Items on a page", limits),
        "cursor": query("cursor", "`next_cursor` of the page before", _TEXT),
        "target": query("target", "A release; default: the newest that a node runs", _TEXT),
        "alertState": query("state", "Only these", {**_TEXT, "enum": ["firing", "resolved"]}),
        "alertCluster": query("cluster", "Only alerts of this cluster", _TEXT),
        "after": query("after", "The id of the last event that the client has", _TEXT),
    }


def _schemas() -> dict[str, Any]:
    counts = {"type": "object", "additionalProperties": _NUMBER}
    row = {
        **dict.fromkeys(("cluster", "name", "health", "state", "authority", "digest"), _TEXT),
        **dict.fromkeys(
            (
                "since_ms",
                "at_ms",
                "epoch",
                "revision",
                "nodes",
                "nodes_on_newest",
                "incompatible",
                "leader_id",
            ),
            _NUMBER,
        ),
        "unknown_reason": {"type": ["string", "null"]},
        "newest_release": {"type": ["string", "null"]},
        "levels": {"type": "array", "items": _object(feature=_TEXT, level=_NUMBER, name=_TEXT)},
        "releases": {"type": "array", "items": _object(release=_TEXT, nodes=_NUMBER)},
        "alerts": counts,
        "sources": {"type": "object", "additionalProperties": _TEXT},
        "migrating": {"type": "boolean"},
    }
    documents = {"type": "array", "items": {"type": "object"}}
    lists = {"classes": documents, "incompatible_nodes": documents, "firing": documents}
    return {
        "Anything": {"type": "object"},
        "Alert": _embedded("Alert", schema_of(ALERTS)),
        "FeatureChange": _embedded("FeatureChange", schema_of(FEATURE_CHANGES)),
        "ClusterSummary": _object(**row),
        "Cluster": _object(**row, **lists, position=_TEXT),
        "Fleet": _object(
            clusters=_NUMBER,
            health=counts,
            unknown=_NUMBER,
            states=counts,
            alerts=counts,
            newest_at_ms=_NUMBER,
            complete={"type": "boolean"},
            error={"type": ["string", "null"]},
            now_ms=_NUMBER,
            position=_TEXT,
        ),
        "Levels": _object(
            releases={"type": "array", "items": _TEXT},
            names={"type": "object", "additionalProperties": {"type": "array", "items": _TEXT}},
        ),
        "Readiness": {"type": "object", "required": ["cluster", "verdict", "blockers"]},
        "Source": _object(cluster=_TEXT, source=_TEXT, state=_TEXT, at_ms=_NUMBER, detail=_TEXT),
        "Problem": _object(type=_TEXT, title=_TEXT, status=_NUMBER, detail=_TEXT, instance=_TEXT),
    }


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _embedded(name: str, schema: Any) -> Any:
    """A topic's schema as the component ``name``: what it refers to is below that then."""
    if isinstance(schema, list):
        return [_embedded(name, item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if (target := schema.get("$ref", "")).startswith("#/"):
        return {"$ref": f"#/components/schemas/{name}/{target.removeprefix('#/')}"}
    items = schema.items()
    return {key: _embedded(name, item) for key, item in items if key not in ("$schema", "$id")}


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}
