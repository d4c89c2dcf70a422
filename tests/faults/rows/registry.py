"""All rows of the table, in its order. A row is added to the tuple of its family."""

from typing import Final

from tests.faults.fault import Fault
from tests.faults.rows import (
    addresses,
    certificates,
    clusters,
    ensemble,
    network,
    outages,
    pipeline,
    poison,
    processes,
    resources,
    rights,
    topics,
)

ROWS: Final[tuple[Fault, ...]] = (
    *processes.ROWS,
    *network.ROWS,
    *resources.ROWS,
    *topics.ROWS,
    *poison.ROWS,
    *rights.ROWS,
    *certificates.ROWS,
    *addresses.ROWS,
    *clusters.ROWS,
    *outages.ROWS,
    *ensemble.ROWS,
    *pipeline.ROWS,
)
