"""The JSON Schemas of what the API serves; those of topics are taken as they are."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.upgrade import Mode, StepKind, StepState
from featurewatch.streams.events import ReplicaState
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS
from featurewatch.web.views.fleet_readiness import VERDICTS

TEXT: Final[Mapping[str, Any]] = {"type": "string"}
NUMBER: Final[Mapping[str, Any]] = {"type": "integer"}


def schemas() -> dict[str, Any]:
    """The schemas by their names."""
    counts = {"type": "object", "additionalProperties": NUMBER}
    row = {
        **dict.fromkeys(("cluster", "name", "health", "state", "authority", "digest"), TEXT),
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
            NUMBER,
        ),
        "unknown_reason": {"type": ["string", "null"]},
        "newest_release": {"type": ["string", "null"]},
        "levels": {"type": "array", "items": object_of(feature=TEXT, level=NUMBER, name=TEXT)},
        "releases": {"type": "array", "items": object_of(release=TEXT, nodes=NUMBER)},
        "alerts": counts,
        "sources": {"type": "object", "additionalProperties": TEXT},
        "migrating": {"type": "boolean"},
    }
    documents = {"type": "array", "items": {"type": "object"}}
    texts = {"type": "array", "items": TEXT}
    revision = {
        **dict.fromkeys(
            ("revision", "epoch", "at_ms", "leader_id", "nodes", "incompatible"), NUMBER
        ),
        **dict.fromkeys(("authority", "digest"), TEXT),
        "finalized": counts,
    }
    spans = {"type": "array", "items": {"type": "array", "items": NUMBER}}
    lists = {"classes": documents, "incompatible_nodes": documents, "firing": documents}
    return {
        "Anything": {"type": "object"},
        "Alert": _embedded("Alert", schema_of(ALERTS)),
        "FeatureChange": _embedded("FeatureChange", schema_of(FEATURE_CHANGES)),
        "ClusterSummary": object_of(**row),
        "Cluster": object_of(**row, **lists, learned=texts, position=TEXT),
        "Fleet": object_of(
            clusters=NUMBER,
            health=counts,
            unknown=NUMBER,
            states=counts,
            alerts=counts,
            newest_at_ms=NUMBER,
            complete={"type": "boolean"},
            error={"type": ["string", "null"]},
            now_ms=NUMBER,
            position=TEXT,
        ),
        "Levels": object_of(
            releases={"type": "array", "items": TEXT},
            names={"type": "object", "additionalProperties": {"type": "array", "items": TEXT}},
        ),
        "Readiness": {
            "type": "object",
            "required": ["cluster", "verdict", "blockers", "blocker_count"],
        },
        "TargetReadiness": object_of(
            **dict.fromkeys(("cluster", "target", "state"), TEXT),
            verdict={"enum": [*VERDICTS]},
            finalized={"type": "boolean"},
            blockers=NUMBER,
            blocker_names=texts,
            reasons=texts,
            lossless={"type": ["boolean", "null"]},
            downgrade_to=texts,
            at_ms=NUMBER,
        ),
        "NodeView": object_of(
            **dict.fromkeys(("role", "software"), TEXT),
            **dict.fromkeys(("node_id", "epoch", "seen_ms"), NUMBER),
            silent={"type": "boolean"},
            is_current={"enum": ["yes", "no", "unknown"]},
            levels={"type": "object", "additionalProperties": TEXT},
            differences=texts,
        ),
        "Quorum": _quorum(),
        "Upgrade": _upgrade(),
        "Picture": object_of(
            cluster=TEXT,
            begin_ms=NUMBER,
            end_ms=NUMBER,
            known=spans,
            conditions=texts,
            software=texts,
            bands={"type": "array", "items": object_of(role=TEXT, node_id=NUMBER, spans=spans)},
            levels=documents,
            no_return=documents,
            next_level={"type": ["object", "null"]},
            alerts=documents,
            notes=texts,
        ),
        "Revision": object_of(**revision),
        "Epoch": _embedded("Epoch", schema_of(EPOCHS)),
        "Differences": object_of(
            cluster=TEXT,
            before=object_of(**revision),
            after=object_of(**revision),
            levels=documents,
            nodes=documents,
            unchanged_levels=documents,
            unchanged_nodes=documents,
        ),
        "Operation": _embedded("Operation", schema_of(OPERATIONS)),
        "Rehearsal": object_of(
            **dict.fromkeys(("cluster", "release", "verdict"), TEXT),
            controller=NUMBER,
            exact={"type": "boolean"},
            levels=counts,
            steps=documents,
        ),
        "Source": object_of(cluster=TEXT, source=TEXT, state=TEXT, at_ms=NUMBER, detail=TEXT),
        "Problem": object_of(type=TEXT, title=TEXT, status=NUMBER, detail=TEXT, instance=TEXT),
    }


def _upgrade() -> dict[str, Any]:
    texts = {"type": "array", "items": TEXT}
    flag = {"type": "boolean"}
    text_or_null = {"type": ["string", "null"]}
    levels = {"type": "object", "additionalProperties": NUMBER}
    verdict = {"enum": [*Verdict]}
    check = object_of(name=TEXT, verdict=verdict, text=TEXT, remedy=TEXT, waits=flag)
    step = object_of(
        **dict.fromkeys(("id", "title", "release", "way_back", "progress"), TEXT),
        **dict.fromkeys(("preconditions", "commands", "by_hand", "changes"), texts),
        **dict.fromkeys(("soak_ms", "node_count"), NUMBER),
        **dict.fromkeys(("point_of_no_return", "optional"), flag),
        kind={"enum": [*StepKind]},
        state={"enum": [*StepState]},
        nodes={"type": "array", "items": NUMBER},
        levels={"type": ["object", "null"]},
    )
    return object_of(
        **dict.fromkeys(("cluster", "target", "save_command"), TEXT),
        **dict.fromkeys(("releases", "targets", "commands", "changed"), texts),
        **dict.fromkeys(("current", "no_return"), text_or_null),
        at_ms=NUMBER,
        mode={"enum": [*Mode]},
        target_reason={"enum": ["asked", "rolling", "unfinalized", "newest"]},
        before=levels,
        after=levels,
        complete=flag,
        verdict=verdict,
        next_node={"type": ["integer", "null"]},
        checks={"type": "array", "items": check},
        advisories={"type": "array", "items": {"type": "object"}},
        steps={"type": "array", "items": step},
    )


def _quorum() -> dict[str, Any]:
    or_null = {"type": ["integer", "null"]}
    member = object_of(
        **dict.fromkeys(("node_id", "lag", "since_ms"), NUMBER),
        directory_id=TEXT,
        endpoints={"type": "array", "items": TEXT},
        is_active={"type": "boolean"},
        is_controller={"type": ["boolean", "null"]},
        state={"enum": [*ReplicaState]},
    )
    members = {"type": "array", "items": member}
    return object_of(
        **dict.fromkeys(("cluster", "detail"), TEXT),
        **dict.fromkeys(("active_controller", "leader_epoch", "majority", "described_ms"), NUMBER),
        **dict.fromkeys(("kraft_version", "fetching", "may_fail"), or_null),
        voters_are={"enum": ["dynamic", "static", "unknown"]},
        voters=members,
        observers=members,
    )


def object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object that has at least these fields."""
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


def reference(kind: str, name: str) -> dict[str, str]:
    """A reference to a component."""
    return {"$ref": f"#/components/{kind}/{name}"}
