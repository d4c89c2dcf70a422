"""The findings of an audit, counted by verdict; no engine is needed to read or print them."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

EQUAL: Final = "equal"
REORDERED: Final = "reordered"
DIFFERENT: Final = "different"
MISSING: Final = "missing"
EXTRA: Final = "extra"
UNKNOWN: Final = "unknown"
PENDING: Final = "pending"
EXPIRED: Final = "expired"
VERDICTS: Final = (EQUAL, REORDERED, DIFFERENT, MISSING, EXTRA, UNKNOWN, PENDING, EXPIRED)
BAD: Final = (DIFFERENT, MISSING, EXTRA)


class TableCounts(NamedTuple):
    """The findings of one table, counted by verdict.

    ``verdicts`` has each of `VERDICTS`. ``late`` and ``duplicates`` count findings that are also
    counted there; ``late_ms`` is the largest delay among the late ones (0: none was late).
    """

    table: str
    verdicts: Mapping[str, int]
    late: int
    late_ms: int
    duplicates: int


class OutputDifference(NamedTuple):
    """One output on which the two sides differ.

    ``fields`` names the columns that differ, for the verdict `DIFFERENT` only. ``live`` and
    ``lake`` are the output on each side, as JSON (None: that side has none).
    """

    table: str
    cluster: str
    id: str
    verdict: str
    fields: tuple[str, ...] = ()
    live: str | None = None
    lake: str | None = None


class AuditReport(NamedTuple):
    """The result of one audit.

    ``folded_round`` is the last round of bronze that gold has folded (-1: none). ``differences``
    are the first ones, up to the limit. ``unknown_reasons`` has the reasons for unknown findings.
    ``replayed`` counts the clusters that were left out because they were replayed from files.
    ``searches_ended`` counts the clusters with differences that may follow from the order of their
    messages: the search for an order was ended before it was known.
    """

    folded_round: int = -1
    counts: tuple[TableCounts, ...] = ()
    differences: tuple[OutputDifference, ...] = ()
    unknown_reasons: tuple[str, ...] = ()
    replayed: int = 0
    searches_ended: int = 0

    def count(self, *verdicts: str) -> int:
        """Returns how many findings have one of the given verdicts."""
        return sum(table.verdicts[verdict] for table in self.counts for verdict in verdicts)

    @property
    def has_differences(self) -> bool:
        """Whether any output is missing, extra or different."""
        return self.count(*BAD) > 0

    @property
    def is_conclusive(self) -> bool:
        """Whether at least one output was compared and no finding is unknown."""
        return self.count(UNKNOWN) == 0 and self.count(EQUAL, REORDERED) > 0

    def document(self) -> dict[str, Any]:
        """Returns the report as a JSON document."""
        counts = [table._asdict() for table in self.counts]
        differences = [difference._asdict() for difference in self.differences]
        return self._asdict() | {"counts": counts, "differences": differences}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "AuditReport":
        """Returns the report of a document.

        Raises:
            TypeError, LookupError: It is not one of `document`.
        """
        counts = tuple(TableCounts(**table) for table in document["counts"])
        differences = tuple(
            OutputDifference(**{**difference, "fields": tuple(difference["fields"])})
            for difference in document["differences"]
        )
        reasons = tuple(document["unknown_reasons"])
        typed = {"counts": counts, "differences": differences, "unknown_reasons": reasons}
        return cls(**{**document, **typed})
