"""Directory ids that name no directory."""

import base64

import pytest

from featurewatch.streams.kraft.records.directory_ids import (
    LOST,
    MIGRATING,
    UNASSIGNED,
    is_online,
)

OWN = "mi3AfDvQLGEvjOJmSJoj_w"


def test_their_values_are_those_of_kafka() -> None:
    """``DirectoryId`` of 3.9.1, 4.3.1 and 4.4.0 has 0, 1 and 2."""
    ids = [base64.urlsafe_b64decode(f"{one}==") for one in (MIGRATING, UNASSIGNED, LOST)]
    assert [int.from_bytes(one) for one in ids] == [0, 1, 2]
    assert {len(one) for one in ids} == {16}


@pytest.mark.parametrize(
    ("directory", "online", "works"),
    [
        (MIGRATING, (OWN,), True),
        (UNASSIGNED, (OWN,), True),
        (LOST, (), False),
        (LOST, (LOST,), False),
        (OWN, (), True),
        (OWN, None, True),
        (OWN, (OWN,), True),
        (OWN, ("other",), False),
    ],
)
def test_what_is_online(directory: str, online: tuple[str, ...] | None, works: bool) -> None:
    """A broker that names no directories is not known to have lost one."""
    assert is_online(directory, online) is works
