"""Known faults of Kafka's releases and levels that an upgrade may meet, as data.

`advisories.json` is written by hand, from the tickets and notes that each entry names. An entry:

``id``: the ticket or KIP. ``severity``: ``critical``, ``warning`` or ``info``. ``subject``: the
software that has the fault, ``brokers``.
``affects``: ranges of patches, both ends included, ``[["4.1.0", "4.1.1"]]``; the second is null
where no fixed release is known. ``fixed_in``: the first patch of each release line with the fix.
``condition``: the levels without which it does not matter, ``{"feature", "when", "low", "high"}``;
``high`` is null where there is no highest. ``when`` is ``before`` (the level that is finalized
now), ``after`` (the level afterwards), or ``raised`` (below ``low`` now, and in the range
afterwards).
``crossing``: it matters only where some node is older than the first affected release.
``fault``, ``advice``: one sentence each. ``sources``: tickets, KIPs and addresses.
``date``: that of the source; with ``undated``, when it was read, since the source has none.
"""

import os
from functools import cache
from typing import Any, NamedTuple


class LevelCondition(NamedTuple):
    """Levels of a feature without which a fault does not matter; ``high`` None: no highest."""

    feature: str
    when: str
    low: int
    high: int | None

    def includes(self, level: int) -> bool:
        """Whether the level is in the range."""
        return self.low <= level and (self.high is None or level <= self.high)


class AdvisoryEntry(NamedTuple):
    """An entry of the data file; see the module."""

    id: str
    severity: str
    subject: str
    affects: tuple[tuple[str, str | None], ...]
    fixed_in: tuple[str, ...]
    condition: LevelCondition | None
    crossing: bool
    fault: str
    advice: str
    sources: tuple[str, ...]
    date: str
    undated: bool


@cache
def advisory_entries() -> tuple[AdvisoryEntry, ...]:
    """Every entry, by the first affected release."""
    # Here, because few processes need it.
    from json import load

    path = os.path.join(os.path.dirname(__file__), "advisories.json")
    with open(path, encoding="utf-8") as file:
        entries = [_entry(item) for item in load(file)]
    return tuple(sorted(entries, key=lambda entry: patch_number(entry.affects[0][0])))


def _entry(item: dict[str, Any]) -> AdvisoryEntry:
    condition = item.get("condition")
    return AdvisoryEntry(
        item["id"],
        item["severity"],
        item["subject"],
        tuple((first, last) for first, last in item["affects"]),
        tuple(item["fixed_in"]),
        None if condition is None else LevelCondition(**condition),
        item.get("crossing", False),
        item["fault"],
        item["advice"],
        tuple(item["sources"]),
        item["date"],
        item.get("undated", False),
    )


def patch_number(patch: str) -> tuple[int, ...]:
    """The numbers of a patch: ``(4, 1, 0)`` of ``4.1.0``."""
    return tuple(map(int, patch.split(".")))
