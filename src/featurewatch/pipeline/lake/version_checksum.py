"""The version checksum: a small file beside a commit in a table's log, with the table's schema.

Delta's library for Spark writes it with each commit, and Delta's Rust library does not. Without it,
a stream that looks for new commits runs a job of a quarter of a second to find the schema.

Source: Delta's protocol, "Version Checksum File".
"""

from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

_WITH_FEATURES: Final = 7
"""The first version of Delta's protocol for writers in which a table lists its features; some of
them would add to the checksum."""


def write_checksum(path: Path, table: DeltaTable) -> None:
    """Writes the checksum of the version that ``table``, at ``path``, is at.

    One that exists stays. Readers do without a checksum that is missing or incomplete, so there is
    no error if it cannot be written.
    """
    if table.protocol().min_writer_version >= _WITH_FEATURES:
        return
    file = path / "_delta_log" / f"{table.version():020}.crc"
    try:
        with file.open("xb") as opened:
            opened.write(orjson.dumps(checksum(table)))
    except OSError:
        return


def checksum(table: DeltaTable) -> dict[str, Any]:
    """Returns the checksum of the version that a table is at."""
    protocol, metadata = table.protocol(), table.metadata()
    sizes = pa.table(table.get_add_actions()).column("size_bytes")
    return {
        "tableSizeBytes": pc.sum(sizes, min_count=0).as_py(),
        "numFiles": len(sizes),
        "numMetadata": 1,
        "numProtocol": 1,
        "protocol": {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
        },
        "metadata": {
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": metadata.partition_columns,
            "configuration": metadata.configuration,
            "createdTime": metadata.created_time,
        },
    }
