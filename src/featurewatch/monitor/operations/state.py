"""The state of a cluster's partitions: the image, the one that a resync collects, incidents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.tables.partitions.image import PartitionsImage
from featurewatch.tables.partitions.rows import FAMILY, RESYNC_FAMILY, partitions_of_rows

NEVER_MS: Final = 1 << 62

UNCLEAN: Final = "unclean"
"""The kind of the incidents that are unclean elections; those of broken rules have their name."""


class Incident(NamedTuple):
    """Changes of one kind that should not have been: how many times, and the first.

    ``before``, ``after`` and ``record`` are its partition and its record as JSON objects;
    ``last_ms`` is the time of the newest one (ms since the Unix epoch).
    """

    times: int
    partition: str
    offset: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    record: Mapping[str, Any]
    last_ms: int


@dataclass(frozen=True, slots=True)
class PartitionsState:
    """The partitions of a cluster.

    ``image`` is None while the partitions are not known completely; ``missing`` is then the reason
    for which the source must publish its whole state again (empty: it does not publish partitions).
    ``resync`` is what the log's resync of the serial number ``resync_serial`` has collected (None:
    nothing of use). No condition exceeds its limit before ``due_ms``, which follows from the
    others.
    """

    image: PartitionsImage | None = None
    resync: PartitionsImage | None = None
    resync_serial: int = -1
    incidents: Map[str, Incident] = field(default_factory=Map)
    missing: str = ""
    due_ms: int = field(default=0, compare=False)

    def to_row(self) -> dict[str, Any]:
        """The fields of the state's row; the images have separate rows."""
        return {
            "known": self.image is not None,
            "collects": self.resync is not None,
            "serial": self.resync_serial,
            "incidents": dict(self.incidents.items()),
            "missing": self.missing,
        }


UNKNOWN_PARTITIONS: Final = PartitionsState()


def state_of_rows(rows: Mapping[str, bytes]) -> PartitionsState | None:
    """The state in rows, given by row name; None: operations were not followed.

    Raises:
        KeyError, TypeError, ValueError: The rows are not those that this version writes.
    """
    if FAMILY not in rows:
        return None
    row = orjson.loads(rows[FAMILY])
    serial = row["serial"]
    return PartitionsState(
        image=partitions_of_rows(rows, FAMILY) if row["known"] else None,
        resync=partitions_of_rows(rows, RESYNC_FAMILY, serial) if row["collects"] else None,
        resync_serial=serial,
        incidents=Map({name: Incident(*fields) for name, fields in row["incidents"].items()}),
        missing=row["missing"],
    )
