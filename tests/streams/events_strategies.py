"""Hypothesis strategies for the events that sources publish."""

from typing import Any

from hypothesis import strategies as st

from featurewatch.streams.events import (
    Acknowledgement,
    CommitKind,
    DeadLetter,
    Disagreement,
    FeatureView,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    ResyncRequest,
    SnapshotChunk,
    SourceResync,
    SourceState,
    SourceStatus,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, ZOOKEEPER, Topic
from featurewatch.streams.types import LATEST_MS, ClusterId, Role
from featurewatch.streams.znodes import (
    AdminTask,
    AdminZnode,
    BrokerZnode,
    ClusterIdZnode,
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesForm,
    FeaturesZnode,
    MigrationZnode,
    PartitionStateZnode,
    UnreadableZnode,
    Znode,
)

names = st.text(min_size=1, max_size=30)
texts = st.text(max_size=60)
offsets = st.integers(0, 2**63 - 1)
offsets_or_none = st.integers(-1, 2**63 - 1)
int32s = st.integers(0, 2**31 - 1)
int32s_or_none = st.integers(-1, 2**31 - 1)
levels = st.integers(0, 2**15 - 1)
times = st.integers(0, LATEST_MS)
times_or_none = st.integers(-1, LATEST_MS)
ranges = st.tuples(levels, levels).map(lambda pair: (min(pair), max(pair)))
skipped = st.dictionaries(names, offsets, max_size=3)

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
plain_values = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts
records = st.lists(
    st.fixed_dictionaries(
        {
            "offset": offsets,
            "type": texts,
            "version": st.integers(0, 100),
            "data": st.dictionaries(texts, plain_values, max_size=3),
        }
    ),
    max_size=4,
)


@st.composite
def commits(draw: st.DrawFn) -> LogCommit:
    """Batches and transactions."""
    first, last = sorted((draw(offsets), draw(offsets)))
    kind = draw(st.sampled_from(CommitKind))
    return LogCommit(
        ClusterId(draw(names)), kind, first, last, draw(int32s), draw(times_or_none), draw(records),
        draw(skipped), draw(times),
    )  # fmt: skip


gaps = st.builds(LogGap, names, offsets, offsets, texts, st.booleans(), times)
chunks = st.builds(
    SnapshotChunk, names, offsets, int32s, int32s, st.booleans(), times_or_none, records, skipped,
    times,
)  # fmt: skip


def statuses(topic: Topic) -> st.SearchStrategy[SourceStatus]:
    """The statuses of the source of a topic."""
    return st.builds(
        SourceStatus, names, st.just(topic.source), st.sampled_from(SourceState), offsets_or_none,
        int32s_or_none, offsets_or_none, int32s_or_none, int32s_or_none, texts, times,
    )  # fmt: skip


def resyncs(topic: Topic) -> st.SearchStrategy[SourceResync]:
    """The resyncs of the source of a topic."""
    source = st.just(topic.source)
    return st.builds(SourceResync, names.map(ClusterId), source, st.booleans(), texts, times)


answers = st.builds(
    NodeAnswer, names, st.sampled_from(Role), int32s, texts,
    st.dictionaries(names, ranges, max_size=4), st.dictionaries(names, levels, max_size=4),
    offsets_or_none, st.booleans(), times,
)  # fmt: skip
silences = st.builds(
    NodeSilent, names, st.sampled_from(Role), int32s, texts, st.booleans(), texts, times
)
views = st.builds(FeatureView, levels, st.lists(names, max_size=3).map(tuple))
disagreements = st.builds(Disagreement, names, names, st.lists(views, max_size=3).map(tuple), times)
dead_letters = st.builds(
    DeadLetter, texts, texts, texts, st.binary(max_size=80), times,
    st.dictionaries(names, texts, max_size=3),
)  # fmt: skip

acknowledgements = st.builds(Acknowledgement, names, names, texts, texts, times)
log_events = (
    commits() | chunks | gaps | acknowledgements | resyncs(METADATA_LOG) | statuses(METADATA_LOG)
)
api_versions_events = (
    answers | silences | disagreements | resyncs(API_VERSIONS) | statuses(API_VERSIONS)
)

int64s = st.integers(-(2**63), 2**63 - 1)
wide_levels = st.dictionaries(names, offsets, max_size=3)
contents = st.one_of(
    st.builds(
        BrokerZnode,
        int32s,
        int32s,
        st.dictionaries(names, st.tuples(int64s, int64s), max_size=3),
        st.dictionaries(names, texts, max_size=2),
        st.none() | texts,
        times_or_none,
    ),
    st.builds(
        FeaturesZnode,
        st.sampled_from(FeaturesForm),
        offsets,
        st.booleans(),
        wide_levels,
        wide_levels,
        st.dictionaries(names, st.dictionaries(names, texts | int64s, max_size=2), max_size=2),
        offsets_or_none,
    ),
    st.builds(ControllerZnode, int32s, int32s_or_none, times_or_none),
    st.builds(ControllerEpochZnode, int32s),
    st.builds(ClusterIdZnode, names),
    st.builds(MigrationZnode, int32s_or_none, int32s_or_none, offsets_or_none, int32s_or_none),
    st.builds(
        PartitionStateZnode,
        names,
        int32s,
        int32s_or_none,
        int32s_or_none,
        int32s_or_none,
        st.lists(int32s, max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(
        AdminZnode,
        st.sampled_from(AdminTask),
        st.lists(st.dictionaries(texts, plain_values, max_size=3), max_size=2).map(tuple),
    ),
    st.builds(UnreadableZnode, texts),
)
znodes = st.builds(Znode, names, offsets, offsets, int32s, int64s, contents)
znode_changes = st.builds(
    ZnodeChange, names, names, st.none() | znodes, offsets, st.booleans(), offsets, times
)
znode_snapshots = st.builds(
    ZnodeSnapshot,
    names,
    names,
    int32s,
    st.booleans(),
    st.lists(znodes, max_size=3).map(tuple),
    texts,
    offsets,
    times,
)
zookeeper_events = znode_changes | znode_snapshots | statuses(ZOOKEEPER)
resync_requests = st.builds(ResyncRequest, names, texts, texts, times)
