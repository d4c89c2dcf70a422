"""What the software has and the finalized levels leave off, by KIP."""

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.consequences import consequences
from featurewatch.controller.kraft.releases import release_of
from featurewatch.monitor.readiness import release_levels
from featurewatch.monitor.readiness.levels_off import levels_off
from tests.monitor.readiness.clusters import controllers, image, nodes
from tests.simulation import records as r
from tests.tables.images import fold_all


def test_what_is_off_by_kip() -> None:
    """Ordered by KIP; a level that one node lacks is told apart, and so is a dependency."""
    off = levels_off(image(*controllers(*["4.4"] * 3), *nodes("4.4", "4.3"), level=22))
    rows = {
        (str(item.feature), int(item.level)): (
            " ".join(item.proposals),
            item.supported_by_all,
            item.needs,
        )
        for item in off.levels
    }
    assert rows["eligible.leader.replicas.version", 1] == (
        *("KIP-966", Verdict.YES),
        ("metadata.version 23 (4.0-IV1)",),
    )
    assert rows["share.version", 1] == ("KIP-932", Verdict.YES, ())
    assert rows["share.version", 2] == ("KIP-1191", Verdict.NO, ())
    assert rows["metadata.version", 33] == ("KIP-1312", Verdict.NO, ())
    numbers = [int(item.proposals[0].removeprefix("KIP-")) for item in off.levels]
    assert numbers == sorted(numbers)
    # Defaults of new clusters change nothing here, and what is on is not off.
    assert not {("metadata.version", 22), ("metadata.version", 24)} & rows.keys()


def test_nothing_is_off_at_the_levels_of_the_release() -> None:
    """Every level of 4.4 is finalized on nodes of 4.4."""
    levels = release_levels(release_of("4.4"))
    records = [r.level(name, level) for name, level in levels.items() if name != "kraft.version"]
    off = levels_off(image(*controllers("4.4"), *nodes("4.4"), *records, level=33))
    assert [item.feature for item in off.levels] == ["kraft.version"]
    assert off.unknown == ()


def test_newer_levels_are_named_as_unknown() -> None:
    """Of a level that no known release has, only the number is known."""
    off = levels_off(image(r.register(1, {"metadata.version": (7, 99)}), level=33))
    assert off.unknown == (("metadata.version", 99),)
    assert off.levels == ()


def test_zookeeper_mode_has_no_levels() -> None:
    """Without a KRaft controller nothing is off."""
    assert levels_off(fold_all([])).levels == ()


def test_every_change_has_a_kip_or_a_ticket() -> None:
    """What a level changes in an existing cluster is named by where it was proposed."""
    for item in consequences().values():
        assert item.proposals or not item.change_in_existing, item
