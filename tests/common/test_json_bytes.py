"""JSON that is kept takes as much memory as it has bytes."""

from pathlib import Path

import orjson

from featurewatch.common.json_bytes import json_bytes

COUNT = 20_000


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_many_short_values_take_little_memory() -> None:
    """Each result of `orjson.dumps` keeps a buffer of some KiB, which is not in its size."""
    before = _resident_bytes()
    rows = [json_bytes([number]) for number in range(COUNT)]
    assert _resident_bytes() - before < 200 * COUNT
    assert rows[7] == orjson.dumps([7])
    assert json_bytes({1, 2}, default=sorted) == b"[1,2]"
