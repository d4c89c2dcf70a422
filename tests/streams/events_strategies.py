"""Hypothesis strategies for the events that sources publish, derived from their fields' types."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_origin

from hypothesis import strategies as st

from featurewatch.streams.events import (
    ApiVersionsEvent,
    DeadLetter,
    LogCommit,
    LogEvent,
    ResyncRequest,
    SourceResync,
    SourceStatus,
    ZookeeperEvent,
)
from featurewatch.streams.fields import INT64_BOUNDS, Bounds, Rule, unwrap
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, ZOOKEEPER, Topic
from featurewatch.streams.types import SupportedRange

names = st.text(min_size=1, max_size=30)
texts = st.text(max_size=60)
int64s = st.integers(*INT64_BOUNDS)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | int64s | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
plain_values = st.none() | st.booleans() | int64s | texts
objects = st.dictionaries(texts, plain_values, max_size=3)
records = st.lists(
    st.fixed_dictionaries(
        {
            "offset": st.integers(0, 2**63 - 1),
            "type": texts,
            "version": st.integers(0, 100),
            "data": objects,
        }
    ),
    max_size=4,
)

RULES: Mapping[Any, st.SearchStrategy[Any]] = {
    Rule.NAME: names,
    Rule.DETAIL: texts,
    Rule.CLUSTER_NAME: texts,
    Rule.RECORDS: records,
}
TYPES: Mapping[Any, st.SearchStrategy[Any]] = {
    str: texts,
    bool: st.booleans(),
    bytes: st.binary(max_size=80),
    str | int | float: texts | int64s,
    Mapping[str, Any]: objects,
}


def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """Returns the values of a field's type."""
    base, metadata = unwrap(annotation)
    if rules := [item for item in metadata if item in RULES]:
        return RULES[rules[-1]]
    bounds = [item for item in metadata if isinstance(item, Bounds)]
    if base is SupportedRange:
        ends = st.integers(*(bounds or [INT64_BOUNDS])[-1])
        order = sorted if Rule.RANGE in metadata else list
        return st.tuples(ends, ends).map(lambda pair: SupportedRange(*order(pair)))
    if bounds:
        return st.integers(*bounds[-1])
    if base in TYPES:
        return TYPES[base]
    arguments = get_args(base)
    if get_origin(base) is Mapping:
        return st.dictionaries(names, values_of(arguments[1]), max_size=3)
    if get_origin(base) is tuple:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if arguments:
        return _any_of([values_of(member) for member in arguments])
    if is_dataclass(base):
        return objects_of(base)
    return st.none() if base is type(None) else st.sampled_from([*base])


def objects_of(cls: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Returns the objects of a dataclass; ``given`` has other strategies for some fields."""
    declared = {field.name: field.type for field in fields(cls) if field.init}
    drawn = {name: values_of(type_) for name, type_ in declared.items() if name not in given}
    return st.builds(cls, **drawn, **given)


@st.composite
def commits(draw: st.DrawFn) -> LogCommit:
    """Batches and transactions."""
    commit: LogCommit = draw(objects_of(LogCommit))
    offsets = [record["offset"] for record in commit.records]
    first, *_, last = sorted((commit.first_offset, commit.last_offset, *offsets))
    return replace(commit, first_offset=first, last_offset=last)


def statuses(topic: Topic) -> st.SearchStrategy[SourceStatus]:
    """The statuses of the source of a topic."""
    return objects_of(SourceStatus, source=st.just(topic.source))


def resyncs(topic: Topic) -> st.SearchStrategy[SourceResync]:
    """The resyncs of the source of a topic."""
    return objects_of(SourceResync, source=st.just(topic.source))


def _events(topic: Topic, union: Any) -> st.SearchStrategy[Any]:
    special: dict[type, st.SearchStrategy[Any]] = {
        SourceStatus: statuses(topic),
        SourceResync: resyncs(topic),
        LogCommit: commits(),
    }
    return _any_of([special.get(cls, objects_of(cls)) for cls in get_args(union)])


def _any_of(strategies: list[st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return st.one_of(strategies)


log_events = _events(METADATA_LOG, LogEvent)
api_versions_events = _events(API_VERSIONS, ApiVersionsEvent)
zookeeper_events = _events(ZOOKEEPER, ZookeeperEvent)
dead_letters = objects_of(DeadLetter, payload_bytes=st.just(-1), payload_sha256=st.just(""))
resync_requests = objects_of(ResyncRequest)
