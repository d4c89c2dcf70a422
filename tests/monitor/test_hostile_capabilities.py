"""What one node advertises again and again stays in no memory."""

import gc
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.common.weighted_cache import MAX_WEIGHT
from featurewatch.streams.types import FeatureName
from featurewatch.tables.image.limits import MAX_FEATURES
from featurewatch.tables.image.nodes import _INTERNED
from featurewatch.tables.partitions.partition_records import _brokers
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import MV

REGISTRATIONS, FEATURES = 800, MAX_FEATURES - 1


def _large() -> Iterator[object]:
    gc.collect()
    return (each for each in _INTERNED.values() if len(each.ranges) == FEATURES + 1)


def test_what_a_broker_advertised_once_is_forgotten() -> None:
    """It registers with other features each time; the caches are full after 500 of them."""
    engine = Engine()
    engine.apply(r.commit(1, r.level(MV, 25)))
    engine.apply(r.following(1, seen_ms=1))
    for number in range(REGISTRATIONS):
        ranges = {FeatureName(f"f{number}-{index}"): (0, 1) for index in range(FEATURES)}
        engine.apply(r.commit(10 + number, r.register(1, {MV: (7, 30), **ranges}, epoch=number)))
    (node,) = engine.state.image.nodes.nodes.values()
    assert len(node.capabilities.ranges) == FEATURES + 1
    assert len([*_large()]) <= MAX_WEIGHT // FEATURES + 2


@settings(max_examples=50)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_lists_of_brokers_are_whole_numbers_whatever_was_read_before(ids: list[int]) -> None:
    """1.0 and True are not ids of brokers, also where a list with 1 is known already."""
    assert _brokers(ids) is _brokers(list(ids))
    for other in ([float(each) for each in ids], [*ids[:-1], True]):
        try:
            _brokers(other)
        except TypeError:
            continue
        raise AssertionError(f"{other} was taken for ids of brokers")
