"""Whether a node starts on older software after levels were lowered."""

import pytest
from immutables import Map

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft import release_of
from featurewatch.monitor.upgrade import Precondition, start_checks
from featurewatch.streams.kraft.directory.startup import StartupLevels
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId
from featurewatch.tables.image.features import FeaturesImage
from featurewatch.tables.image.provenance import NO_PROVENANCE

EPOCH = 20
"""The offset at which the levels were lowered."""


def checks(
    startup: StartupLevels | None, release: str = "4.1", **levels: int
) -> dict[str, Precondition]:
    """The checks of node 3 by name, with metadata.version 4.1-IV1 (27) unless given."""
    finalized = {"metadata.version": 27} | {k.replace("_", "."): v for k, v in levels.items()}
    typed = Map({FeatureName(name): FeatureLevel(level) for name, level in finalized.items()})
    features = FeaturesImage(typed, EPOCH, 2, NO_PROVENANCE)
    found = start_checks(NodeId(3), release_of(release), features, startup)
    return {one.name: one for one in found}


def loaded(snapshot_end: int, *levels: tuple[str, int, int], end: int = 40) -> StartupLevels:
    """What a node replays."""
    typed = {(FeatureName(name), FeatureLevel(level)): offset for name, level, offset in levels}
    return StartupLevels(snapshot_end, end, typed)


@pytest.mark.parametrize(
    ("startup", "verdict", "waits", "text"),
    [
        (None, "unknown", False, "whether node 3 has a metadata snapshot since the levels"),
        (loaded(30, ("metadata.version", 27, 29)), "yes", False, "its snapshot of offset 30"),
        (loaded(21, ("metadata.version", 27, 20)), "yes", False, "its snapshot of offset 21"),
        (
            loaded(20, ("metadata.version", 29, 19), ("metadata.version", 27, 20)),
            "no",
            True,
            "start with its snapshot of offset 20 and replay metadata.version 29 (4.2-IV1) of "
            "offset 19",
        ),
        (
            loaded(0, ("metadata.version", 29, 10), ("metadata.version", 27, 20)),
            "no",
            True,
            "start with no snapshot and replay metadata.version 29 (4.2-IV1) of offset 10",
        ),
        (
            loaded(30, ("metadata.version", 27, 29), ("share.version", 9, 35)),
            "no",
            True,
            "replay share.version 9",
        ),
        (loaded(30, ("metadata.version", 27, 29), ("new", 1, 29)), "no", True, "replay new 1"),
        (loaded(30, ("metadata.version", 27, 29), ("new", 0, 29)), "yes", False, "supports all"),
        (loaded(30, ("metadata.version", 27, 29), ("kraft.version", 9, 31)), "yes", False, ""),
        (loaded(0, ("metadata.version", 6, 1), ("metadata.version", 27, 20)), "no", True, "6"),
        (loaded(15, ("metadata.version", 27, 14), end=20), "no", True, "ends at offset 20"),
        (loaded(15, ("metadata.version", 27, 14), end=21), "yes", False, ""),
    ],
)
def test_what_a_node_would_replay(
    startup: StartupLevels | None, verdict: str, waits: bool, text: str
) -> None:
    """A level that was lowered since counts until a snapshot follows; a directory that does not
    have the newest change of the levels is a copy."""
    found = checks(startup)["snapshot"]
    assert (found.verdict, found.waits) == (verdict, waits)
    assert text in found.text
    assert bool(found.remedy) == (verdict != "yes")


def test_unknown_names_the_offset_to_look_for() -> None:
    """For people who cannot run it on that machine."""
    found = checks(None)["snapshot"]
    assert "a .checkpoint file with a number above 20, and --accept snapshot" in found.remedy


@pytest.mark.parametrize(
    ("release", "levels", "verdict", "text"),
    [
        ("4.1", {}, Verdict.YES, "Kafka 4.1 supports all levels"),
        ("4.1", {"metadata_version": 29}, Verdict.NO, "finalized is metadata.version 29 (4.2-IV1)"),
        ("3.9", {}, Verdict.NO, "finalized is metadata.version 27 (4.1-IV1)"),
        ("4.0", {"metadata_version": 6}, Verdict.NO, "metadata.version 6"),
        ("4.1", {"streams_version": 9}, Verdict.NO, "streams.version 9"),
        ("3.3", {"metadata_version": 7, "kraft_version": 1}, Verdict.NO, "kraft.version 1"),
    ],
)
def test_levels_that_are_finalized(
    release: str, levels: dict[str, int], verdict: Verdict, text: str
) -> None:
    """They are lowered first; nothing comes of waiting."""
    found = checks(loaded(30, ("metadata.version", 27, 29)), release, **levels)["levels"]
    assert (found.verdict, found.waits) == (verdict, False)
    assert text in found.text
    first = "raise" if levels.get("metadata_version") == 6 else "lower"
    assert verdict is Verdict.YES or found.remedy.startswith(f"{first} the levels first")
