"""The files that Spark writes into the checkpoint of a streaming query."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

FOLD: Final = "fold"
"""The checkpoint of the query that fills silver and gold."""
OLDER_FOLD: Final = "gold"
"""That of the versions before, in which the state of a cluster was a map."""


def with_place(content: str, place: str) -> str:
    """Returns the content of a file of a checkpoint with its paths below ``place``, where the
    checkpoint is now: Spark writes whole paths, and looks for its files where they were at first.

    ``place`` is a path with a scheme, such as ``file:/lake/checkpoints/fold``.
    """
    scheme, _, path = place.partition(":")
    name = path.rpartition("/")[2]

    def moved(found: re.Match[str]) -> str:
        # In the log of a source of files the path is a URI.
        is_uri = found[1].startswith(f"{scheme}:///")
        return f'"{scheme}://{quote(path)}/' if is_uri else f'"{place}/'

    return re.sub(rf'"([^"]*/checkpoints/{re.escape(name)})/', moved, content)


def batch_end(offsets: str) -> Mapping[str, Any]:
    """Returns where a batch ends in the query's first source, as that source writes it; ``offsets``
    is the content of the batch's file in the checkpoint's folder ``offsets``.

    Raises:
        ValueError: The content is not what Spark writes.
    """
    # A version, the metadata of the batch, and then a line for each source.
    lines = offsets.splitlines()
    end = json.loads(lines[2]) if 3 <= len(lines) <= 4 else None
    if not isinstance(end, dict):
        raise ValueError(f"a batch's offsets have another form: {offsets[:80]!r}")
    return end


def end_of_batches(checkpoint: Path) -> Mapping[str, Any] | None:
    """Returns where the last batch of a query ended, as `batch_end`.

    Empty: there was no batch yet. None: the last batch did not finish.

    Raises:
        OSError, ValueError, LookupError: The checkpoint is not one that Spark writes.
    """
    started, finished = _newest(checkpoint / "offsets"), _newest(checkpoint / "commits")
    if started != finished:
        return None
    if started is None:
        return {}
    return batch_end((checkpoint / "offsets" / str(started)).read_text())


def followed_version(checkpoint: Path) -> int | None:
    """Returns the version of a table from which the query that follows it may still read (None: it
    is not known, or there were not two batches yet).

    That is where its newest finished batch began: a query that starts again first asks Delta for
    that batch, although it does not process it again (Spark's `MicroBatchExecution`).
    """
    finished = _newest(checkpoint / "commits")
    try:
        end = batch_end((checkpoint / "offsets" / str((finished or 0) - 1)).read_text())
        return int(end["reservoirVersion"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _newest(batches: Path) -> int | None:
    """The highest number among files that are named after batches."""
    if not batches.is_dir():
        return None
    numbers = [int(file.name) for file in batches.iterdir() if file.name.isdigit()]
    return max(numbers, default=None)
