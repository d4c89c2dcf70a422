"""The reports that were computed last. Pure."""

from typing import Final

MAX_REPORTS: Final = 64
"""Reports that are held."""

MAX_REPORT_BYTES: Final = 16 << 20
"""Of all of them: a cluster's nodes decide how long its report is. One with 10,000 nodes and a
hundred features that none of them supports has 700 kB."""

ReportKey = tuple[str, str, int]
"""A cluster, the name of the report, and a number that changes with what the report depends on."""


class ReportCache:
    """Encoded reports by their keys, within `MAX_REPORTS` and `MAX_REPORT_BYTES`.

    A full cache is emptied: most of its reports are of rows that have changed since.
    """

    def __init__(self) -> None:
        self._reports: dict[ReportKey, bytes] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._reports)

    def get(self, key: ReportKey) -> bytes | None:
        """Returns a report; None: it is not held."""
        return self._reports.get(key)

    def put(self, key: ReportKey, body: bytes) -> None:
        """Holds a report that is not held yet, unless it is larger than all may be."""
        if len(self) >= MAX_REPORTS or self.size_bytes + len(body) > MAX_REPORT_BYTES:
            self._reports.clear()
            self.size_bytes = 0
        if len(body) <= MAX_REPORT_BYTES:
            self._reports[key] = body
            self.size_bytes += len(body)
