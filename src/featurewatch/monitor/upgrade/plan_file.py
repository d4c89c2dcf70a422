"""A plan as a YAML file, with a digest by which a change by hand is noticed.

A person keeps the file from the first restart to the last level, and may pass it to another one, so
what comes back is checked: its format, its shape and its size.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson
import yaml

from featurewatch.common import yaml_file
from featurewatch.common.text import quoted
from featurewatch.monitor.upgrade.plan import (
    HOUR_MS,
    Levels,
    Mode,
    Plan,
    PlanError,
    Step,
    StepKind,
)
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName, NodeId

FORMAT: Final = 1
"""The version of the file's format."""

MAX_BYTES: Final = 4_000_000
"""A larger file is no plan: ten thousand nodes take a tenth of this for each list of them."""

_MAX_ITEMS: Final = 100_000
_HIGHEST_ID: Final = 2**31 - 1


class ReadPlan(NamedTuple):
    """A plan from a file; ``edited``: it is not as featurewatch wrote it."""

    plan: Plan
    edited: bool


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as JSON and YAML have it, with its digest."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "featurewatch": plan.version,
        "cluster": plan.cluster,
        "made_at": datetime.fromtimestamp(plan.made_ms // 1000, UTC).isoformat(),
        "mode": str(plan.mode),
        "releases": list(plan.releases),
        "target": plan.target,
        "soak_hours": plan.soak_ms / HOUR_MS,
        "levels": {"before": dict(plan.before), "after": dict(plan.after)},
        "controllers": list(plan.controllers),
        "brokers": list(plan.brokers),
        "steps": [_step_document(step) for step in plan.steps],
    }
    return {**content, "digest": _digest(content)}


def plan_text(plan: Plan) -> str:
    """The plan as the text of a YAML file."""
    document = plan_document(plan)
    # Lists that appear twice are written twice: an alias reads badly.
    text: str = yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml calls it so
        return True


def parse_plan(content: bytes, file: str) -> ReadPlan:
    """The plan in a file's content; ``file`` is its name.

    Raises:
        PlanError: It is no plan, or one that another featurewatch wrote in another format.
    """
    if len(content) > MAX_BYTES:
        raise PlanError(f"{file} is no plan: it has more than {MAX_BYTES:,} bytes")
    try:
        document = yaml_file.parse(content.decode(), file, typed=True)
    except UnicodeDecodeError:
        raise PlanError(f"{file} is no plan: it is not text") from None
    except yaml_file.YamlError as error:
        raise PlanError(str(error)) from None
    if not isinstance(document, dict) or "format" not in document or "steps" not in document:
        raise PlanError(
            f"{file} is no plan: make one with `featurewatch upgrade plan --out {file}`"
        )
    if type(document["format"]) is not int or document["format"] != FORMAT:
        raise PlanError(
            f"{file} has format {quoted(str(document['format']))} of featurewatch "
            f"{quoted(str(document.get('featurewatch', 'unknown')))}, and this one reads format "
            f"{FORMAT}: make the plan again"
        )
    digest = document.pop("digest", None)
    try:
        plan = _plan(document)
        edited = digest != _digest(document)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        reason = quoted(str(error)) or type(error).__name__
        raise PlanError(f"{file} is no plan: {reason}; make it again") from None
    return ReadPlan(plan, edited)


def _digest(content: Mapping[str, Any]) -> str:
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return hashlib.sha256(text).hexdigest()


def _step_document(step: Step) -> dict[str, Any]:
    lists = {
        "preconditions": step.preconditions,
        "nodes": step.nodes,
        "commands": step.commands,
        "by_hand": step.by_hand,
        "changes": step.changes,
    }
    document: dict[str, Any] = {"id": step.id, "kind": str(step.kind), "title": step.title}
    if step.release:
        document["release"] = step.release
    if step.levels is not None:
        document["levels"] = dict(step.levels)
    document |= {name: list(items) for name, items in lists.items() if items}
    if step.soak_ms:
        document["soak_hours"] = step.soak_ms / HOUR_MS
    if step.optional:
        document["optional"] = True
    return {
        **document,
        "point_of_no_return": step.point_of_no_return,
        "way_back": step.way_back,
    }


def _plan(document: Mapping[str, Any]) -> Plan:
    levels = _mapping(document["levels"], "levels")
    return Plan(
        cluster=ClusterId(_text(document["cluster"], "cluster")),
        made_ms=_time(document["made_at"]),
        version=_text(document["featurewatch"], "featurewatch"),
        mode=Mode(_text(document["mode"], "mode")),
        releases=_texts(document["releases"], "releases"),
        target=_text(document["target"], "target"),
        soak_ms=_hours(document["soak_hours"]),
        before=_levels(levels["before"]),
        after=_levels(levels["after"]),
        controllers=_ids(document["controllers"], "controllers"),
        brokers=_ids(document["brokers"], "brokers"),
        steps=tuple(_step(step) for step in _list(document["steps"], "steps")),
    )


def _step(value: Any) -> Step:
    step = _mapping(value, "a step")
    return Step(
        id=_text(step["id"], "id"),
        kind=StepKind(_text(step["kind"], "kind")),
        title=_text(step["title"], "title"),
        preconditions=_texts(step.get("preconditions", ()), "preconditions"),
        nodes=_ids(step.get("nodes", ()), "nodes"),
        release=_text(step.get("release", ""), "release"),
        levels=_levels(step["levels"]) if "levels" in step else None,
        commands=_texts(step.get("commands", ()), "commands"),
        by_hand=_texts(step.get("by_hand", ()), "by_hand"),
        changes=_texts(step.get("changes", ()), "changes"),
        soak_ms=_hours(step.get("soak_hours", 0)),
        point_of_no_return=_flag(step["point_of_no_return"]),
        optional=_flag(step.get("optional", False)),
        way_back=_text(step["way_back"], "way_back"),
    )


def _text(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{name} is not text")


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("a flag is neither true nor false")


def _list(value: Any, name: str) -> list[Any]:
    if isinstance(value, list | tuple) and len(value) <= _MAX_ITEMS:
        return list(value)
    raise TypeError(f"{name} is not a list of at most {_MAX_ITEMS:,}")


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise TypeError(f"{name} is not a mapping")


def _texts(value: Any, name: str) -> tuple[str, ...]:
    return tuple(_text(item, name) for item in _list(value, name))


def _ids(value: Any, name: str) -> tuple[NodeId, ...]:
    ids = _list(value, name)
    if all(type(node_id) is int and 0 <= node_id <= _HIGHEST_ID for node_id in ids):
        return tuple(NodeId(node_id) for node_id in ids)
    raise TypeError(f"{name} are not ids of nodes")


def _levels(value: Any) -> Levels:
    levels = _mapping(value, "levels")
    for name, level in levels.items():
        if not isinstance(name, str) or type(level) is not int or not 0 <= level < 2**15:
            raise TypeError("a level is not a feature with a number from 0 to 32767")
    return {FeatureName(name): FeatureLevel(level) for name, level in levels.items()}


def _hours(value: Any) -> int:
    if isinstance(value, int | float) and 0 <= value <= 24 * 3660:
        return round(float(value) * HOUR_MS)
    raise TypeError("soak_hours is not a number of hours")


def _time(value: Any) -> int:
    return round(datetime.fromisoformat(_text(value, "made_at")).timestamp() * 1000)
