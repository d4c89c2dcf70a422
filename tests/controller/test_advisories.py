"""The known faults on the way from releases and levels to others."""

import re
from datetime import date

import pytest

from featurewatch.controller.advisories import SEVERITIES, advisories
from featurewatch.controller.kraft.releases import all_features
from featurewatch.kafka.advisories import advisory_entries, patch_number
from featurewatch.kafka.releases import package_files
from featurewatch.streams.types import FeatureLevel, FeatureName

MV, KV, TV, SV = "metadata.version", "kraft.version", "transaction.version", "streams.version"


@pytest.mark.parametrize(
    ("running", "target", "before", "after", "expected"),
    [
        # A release with a fault in one patch is named with the patches that have it.
        (["3.5"], "3.6", {MV: 11}, {MV: 14}, "KAFKA-15653 KAFKA-16606 KAFKA-15353"),
        # 3.7.0 fails only on a log that was written below level 17; KIP-896 is about 4.0.
        (["3.6"], "3.7", {MV: 14}, {MV: 19}, "KAFKA-16583 KAFKA-15653"),
        (["3.7"], "3.7", {MV: 17}, {MV: 19}, ""),
        # Old clients matter where some node still accepts them.
        (["3.9"], "4.0", {MV: 21}, {MV: 25}, "KAFKA-19862 KAFKA-20115 KIP-896 KAFKA-19690"),
        (["4.0"], "4.0", {MV: 21}, {MV: 25}, "KAFKA-19862 KAFKA-20115 KAFKA-19690"),
        # A level that is finalized afterwards, and one that is raised.
        (["4.2"], "4.2", {}, {SV: 1}, "KAFKA-20254"),
        (["4.2"], "4.2", {SV: 1}, {SV: 0}, ""),
        (["4.4"], "4.4", {KV: 0}, {KV: 1}, "KAFKA-21426 KAFKA-19850"),
        (["4.4"], "4.4", {KV: 1}, {KV: 1}, "KAFKA-19850"),
        (["4.0"], None, {KV: 0}, {KV: 1}, "KAFKA-19862 KAFKA-20115 KAFKA-19690 KAFKA-18992"),
        # What is left behind comes last, and a newer release than all known has the open faults.
        (["4.0"], "9.9", {}, {"group.version": 1}, "KAFKA-21117 4.4-formatted-directories"
         " KAFKA-19862 KAFKA-20115 KAFKA-19690"),
        ([], None, {}, {KV: 1}, ""),
    ],
)  # fmt: skip
def test_faults_on_the_way(
    running: list[str],
    target: str | None,
    before: dict[str, int],
    after: dict[str, int],
    expected: str,
) -> None:
    """Releases and levels decide, those of the target first, the most severe first."""
    found = advisories(running, target, before=_levels(before), after=_levels(after))
    assert [advisory.id for advisory in found] == expected.split()


def _levels(levels: dict[str, int]) -> dict[FeatureName, FeatureLevel]:
    return {FeatureName(name): FeatureLevel(level) for name, level in levels.items()}


def test_an_advisory_names_patches() -> None:
    """Nodes do not report their patch, so both the faulty and the repaired ones are named."""
    found = {each.id: each for each in advisories(["4.0"], "4.1", before={}, after={})}
    coordinator = found["KAFKA-19862"]
    assert coordinator.releases == ("4.0", "4.1")
    assert coordinator.remains
    assert coordinator.affected == "4.0.0 to 4.0.1, 4.1.0 to 4.1.1"
    assert coordinator.fixed_in == ("4.0.2", "4.1.2", "4.2.0")


def test_every_entry_is_complete() -> None:
    """Each has a source and a date, known features, ordered patches, and a fix after the fault."""
    releases = {file.release for file in package_files()}
    ids = [entry.id for entry in advisory_entries()]
    assert len(ids) == len(set(ids)) >= 15
    for entry in advisory_entries():
        assert entry.severity in SEVERITIES
        assert entry.fault.endswith((".", ".)"))
        assert entry.advice.endswith(".")
        assert entry.sources
        assert all(re.match(r"KAFKA-\d+$|KIP-\d+$|https://", source) for source in entry.sources)
        assert date.fromisoformat(entry.date) <= date.today()  # noqa: DTZ011 - a day is enough
        assert entry.condition is None or entry.condition.feature in all_features()
        assert entry.condition is None or entry.condition.when in ("before", "after", "raised")
        for first, last in entry.affects:
            assert ".".join(first.split(".")[:2]) in releases
            assert last is None or patch_number(first) <= patch_number(last)
        assert all(
            not any(
                patch_number(first) <= patch_number(fix) <= patch_number(last or "999.0.0")
                for first, last in entry.affects
            )
            for fix in entry.fixed_in
        )
