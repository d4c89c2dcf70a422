"""Shapes of events, outputs and znodes: the check of each field, derived from its type."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, Final, Union, cast, get_args, get_origin

from featurewatch.streams.codec.checks import (
    LEVEL,
    Check,
    a_cluster_name,
    a_detail,
    a_flag,
    a_name,
    a_text,
    a_tree,
    an_object,
    base64_bytes,
    brief,
    integer,
    list_of,
    map_of,
    metadata_records,
    one_of,
    registered_range,
    registered_ranges,
    supported_range,
    text_or_integer,
    text_or_number,
)
from featurewatch.streams.events import (
    ApiVersionsEvent,
    CommitKind,
    DeadLetter,
    FeatureView,
    LogCommit,
    LogEvent,
    ResyncRequest,
    ZookeeperEvent,
)
from featurewatch.streams.fields import Bounds, NotBelow, Rule, unwrap
from featurewatch.streams.topics import (
    API_VERSIONS,
    DEAD_LETTERS,
    METADATA_LOG,
    RESYNC_REQUESTS,
    ZOOKEEPER,
)
from featurewatch.streams.types import SupportedRange
from featurewatch.streams.znodes import Znode, ZnodeContent


@dataclass(frozen=True, slots=True)
class Shape:
    """A dataclass, the check of each of its fields, and a pair that must not be reversed.

    ``optional`` are fields that older versions do not publish: they have the class's defaults.
    """

    cls: type
    checks: Mapping[str, Check]
    ordered: tuple[str, str] | None
    optional: frozenset[str]

    def decode(self, kind: str, content: Mapping[str, Any]) -> Any:
        """Returns the object; raises `ValueError` with a sentence that names the field."""
        values = {}
        name = ""
        try:
            for name, check in self.checks.items():
                if name in content or name not in self.optional:
                    values[name] = check(content[name])
        except KeyError:
            raise ValueError(f"{kind} has no field {name}") from None
        except ValueError as error:
            raise ValueError(f"{name} of {kind} {error}") from None
        if self.ordered and values[self.ordered[0]] > values[self.ordered[1]]:
            raise ValueError(f"{self.ordered[0]} of {kind} is above {self.ordered[1]}")
        return self.cls(**values)


def shape_of(cls: type) -> Shape:
    """Returns the shape of a dataclass whose fields have the types of `streams.fields`."""
    declared = [field for field in fields(cls) if field.init]
    metadata = {field.name: unwrap(field.type)[1] for field in declared}
    pairs = [
        (item.name, name)
        for name, items in metadata.items()
        for item in items
        if isinstance(item, NotBelow)
    ]
    return Shape(
        cls,
        {field.name: check_of(field.type) for field in declared},
        pairs[0] if pairs else None,
        frozenset(name for name, items in metadata.items() if Rule.OPTIONAL in items),
    )


def check_of(annotation: Any) -> Check:
    """Returns the check of values of a type; raises `TypeError` if none follows from it."""
    base, metadata = unwrap(annotation)
    for item in reversed(metadata):
        if item in _RULES:
            return _RULES[item]
        if isinstance(item, Bounds):
            return integer(*item)
    if base in _TYPES:
        return _TYPES[base]
    origin, arguments = get_origin(base), get_args(base)
    if origin is Mapping:
        return a_tree if arguments[1] is Any else map_of(check_of(arguments[1]))
    if origin is tuple:
        return list_of(check_of(arguments[0]))
    if origin in (Union, UnionType) and arguments[1] is type(None):
        return _or_none(check_of(arguments[0]))
    if isinstance(base, type) and issubclass(base, StrEnum):
        return one_of(base)
    if isinstance(base, type) and is_dataclass(base):
        return _part(shape_of(base))
    raise TypeError(f"no check follows from the type {annotation}")


def _or_none(check_value: Check) -> Check:
    def check(value: Any) -> Any:
        return None if value is None else check_value(value)

    return check


def _part(shape: Shape) -> Check:
    def check(value: Any) -> Any:
        try:
            return shape.decode("it", an_object(value))
        except ValueError as error:
            raise ValueError(f"cannot be read: {error}") from None

    return check


def _view(value: Any) -> FeatureView:
    if type(value) is not dict or type(value.get("nodes")) is not list:
        raise ValueError(f"has an entry that is not a view with a level and nodes: {brief(value)}")
    return FeatureView(LEVEL(value.get("level")), tuple(map(a_name, value["nodes"])))


def _znode_content(value: Any) -> ZnodeContent:
    kind = value.get("type") if type(value) is dict else None
    shape = _CONTENTS.get(kind) if type(kind) is str else None
    if shape is None:
        raise ValueError(f"has none of the types {', '.join(_CONTENTS)}: {brief(value)}")
    return cast("ZnodeContent", shape.decode(cast("str", kind), value))


def a_znode(value: Any) -> Znode:
    """Returns the znode that a parsed JSON object describes; raises `ValueError`."""
    return cast("Znode", _ZNODE.decode("the znode", an_object(value)))


_RULES: Final[Mapping[Any, Check]] = {
    Rule.NAME: a_name,
    Rule.DETAIL: a_detail,
    Rule.CLUSTER_NAME: a_cluster_name,
    Rule.RANGE: supported_range,
    Rule.RANGES: registered_ranges,
    Rule.RECORDS: metadata_records,
}
_TYPES: Final[Mapping[Any, Check]] = {
    str: a_text,
    bool: a_flag,
    bytes: base64_bytes,
    str | int: text_or_integer,
    str | int | float: text_or_number,
    SupportedRange: registered_range,
    FeatureView: _view,
    Znode: a_znode,
    ZnodeContent: _znode_content,
}
_CONTENTS: Final[Mapping[str, Shape]] = {
    str(fields(cls)[0].default): shape_of(cls) for cls in get_args(ZnodeContent)
}
_ZNODE: Final = shape_of(Znode)


def _shapes(*classes: Any) -> dict[str, Shape]:
    shapes = {}
    for cls in classes:
        kinds = map(str, CommitKind) if cls is LogCommit else (cls.KIND,)
        shapes.update(dict.fromkeys(kinds, shape_of(cls)))
    return shapes


KINDS: Final[Mapping[str, Mapping[str, Shape]]] = {
    METADATA_LOG.short_name: _shapes(*get_args(LogEvent)),
    API_VERSIONS.short_name: _shapes(*get_args(ApiVersionsEvent)),
    ZOOKEEPER.short_name: _shapes(*get_args(ZookeeperEvent)),
    DEAD_LETTERS.short_name: _shapes(DeadLetter),
    RESYNC_REQUESTS.short_name: _shapes(ResyncRequest),
}
"""The shapes of each topic of events, by its short name and by kind."""
