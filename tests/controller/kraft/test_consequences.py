"""The catalogue of what each level changes and costs."""

from featurewatch.controller.kraft.consequences import between, consequences
from featurewatch.controller.kraft.releases import production_levels, releases
from featurewatch.streams.types import METADATA_VERSION
from tests.controller.kraft.states import ELR


def test_every_level_has_an_entry_with_its_source() -> None:
    """The catalogue has exactly the levels that some release supports in production."""
    expected = {(METADATA_VERSION, level.level) for level in production_levels()}
    for release in releases().values():
        for feature, versions in release.features.items():
            expected |= {(feature, version.level) for version in versions if version.level > 0}
    catalogue = consequences()
    assert set(catalogue) == expected
    assert all(consequence.change and consequence.sources for consequence in catalogue.values())


def test_what_an_upgrade_brings() -> None:
    """All levels on the way are listed, the target included; an unknown newer one adds nothing."""
    assert [consequence.level for consequence in between(METADATA_VERSION, 21, 24)] == [22, 23, 24]
    (elr,) = between(ELR, 0, 1)
    assert any("min.insync.replicas of single brokers is removed" in cost for cost in elr.costs)
    assert between(METADATA_VERSION, 90, 99) == ()
    assert between(ELR, 0, 1 << 40) == (elr,)  # a znode may hold any number, and costs no time
