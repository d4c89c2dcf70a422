"""Ids for people."""

from collections.abc import Sequence

import pytest

from featurewatch.common.id_runs import format_ids


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([], ""),
        ([7], "7"),
        ([3, 1, 2, 7, 2], "1-3, 7"),
        (range(10_000), "0-9999"),
        (range(1, 10_001, 2), "1, 3, 5, 7, 9, 11, 13, 15 and 4,992 more"),
    ],
)
def test_ids_are_drawn_together(nodes: Sequence[int], text: str) -> None:
    """Runs of ids are one part, and after some runs only a count is shown."""
    assert format_ids(nodes) == text
