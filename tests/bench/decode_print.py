"""Prints the records of a log segment, a line of JSON each: what `tests.bench.decode` measures.

Usage: ``python -m tests.bench.decode_print all|default FILE``.
"""

import gc
import sys
from pathlib import Path

import orjson

from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.records.selection import ALL_RECORDS, DEFAULT_RECORD_TYPES


def main(wanted: str, file: str) -> None:
    """Prints every record, or those that a monitor needs."""
    # Records make no reference cycles, and this process ends after them.
    gc.disable()
    decoder = RecordDecoder(ALL_RECORDS if wanted == "all" else DEFAULT_RECORD_TYPES)
    scan = scan_batches(Path(file).read_bytes())
    for batch in scan.batches:
        if records := decoder.decode(batch).records:
            # One call for a batch. Quotes in texts are escaped: this matches only between records.
            lines = orjson.dumps(records)[1:-1].replace(b'},{"offset":', b'}\n{"offset":')
            sys.stdout.buffer.write(lines + b"\n")
    if scan.error:
        sys.exit(scan.error)


if __name__ == "__main__":
    main(*sys.argv[1:])
