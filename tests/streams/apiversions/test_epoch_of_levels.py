"""From which epoch on the finalized levels of a response count."""

from types import SimpleNamespace

import pytest

from featurewatch.streams.apiversions.node_features import read_node_features
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all


@pytest.mark.form("released")
@pytest.mark.parametrize(("epoch", "levels"), [(-1, {}), (0, {MV: 25}), (1, {MV: 25})])
def test_levels_count_from_epoch_0_on(epoch: int, levels: dict[str, int]) -> None:
    """In a response and in the fold; -1 means no epoch (M-11). The level is the maximum (M-10 as
    released)."""
    level = SimpleNamespace(name=MV, min_version_level=20, max_version_level=25)
    response = SimpleNamespace(
        __version__=4,
        supported_features=(),
        finalized_features=(level,),
        finalized_features_epoch=epoch,
    )
    assert read_node_features(response).finalized == levels
    image = fold_all([r.answer(1, {MV: (1, 30)}, {MV: 25}, epoch, 10)])
    assert dict(image.features.levels) == levels
