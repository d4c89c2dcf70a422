"""Hypothesis strategies that tests of the pure core share."""

from typing import Any

from hypothesis import strategies as st

from featurewatch.streams.events import RecordJson
from featurewatch.tables.fold.records import REPLAYS
from featurewatch.tables.image.cluster import ClusterImage
from tests.simulation import records as r
from tests.simulation.records import GV, KV, MV, TV

ids = st.integers(0, 40)
ranges = st.dictionaries(
    st.sampled_from([MV, TV, KV, GV]), st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=3
)

records: st.SearchStrategy[RecordJson] = st.one_of(
    st.builds(r.register, ids, ranges),
    st.builds(r.register_controller, ids, ranges),
    st.builds(r.unregister, ids),
    st.builds(r.unregister_controller, ids),
    st.builds(r.fence, ids),
    st.builds(r.unfence, ids),
    st.builds(r.change, ids, st.sampled_from((-1, 0, 1)), st.sampled_from((0, 1))),
    st.builds(r.level, st.sampled_from([MV, TV, KV, GV]), st.integers(0, 30)),
    st.builds(r.kraft_version, st.integers(0, 1)),
    st.builds(r.leader_change, ids, st.lists(ids, max_size=3)),
)
"""Records of a cluster that need not make sense, in any order."""

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@st.composite
def broken_records(draw: st.DrawFn) -> RecordJson:
    """Records of the types that matter, with a field that holds anything, or is missing."""
    record = draw(records)
    data = dict(record["data"])
    name = draw(st.sampled_from(sorted(data)))
    if draw(st.booleans()):
        data[name] = draw(st.sampled_from(["x", 1.5, None, [7], 2**64 - 1]) | json_values)
    else:
        del data[name]
    kind = draw(st.just(record["type"]) | st.sampled_from(["UNREADABLE", *REPLAYS]))
    return {**record, "type": kind, "data": data}


@st.composite
def partitions_of(draw: st.DrawFn, total: int) -> list[int]:
    """Sizes of at least 1 that add up to ``total``."""
    sizes = []
    while total > 0:
        sizes.append(draw(st.integers(1, total)))
        total -= sizes[-1]
    return sizes


def plain_nodes(image: ClusterImage) -> dict[Any, Any]:
    """The nodes of an image without their provenance."""
    provenance = image.log.provenance
    return {key: node._replace(provenance=provenance) for key, node in image.nodes.nodes.items()}
