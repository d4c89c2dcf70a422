"""The APIs of a quorum: their names, keys and versions."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from featurewatch.reference.kraft.machines.requests import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    DescribeQuorum,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RemoveVoter,
    UpdateVoter,
    Vote,
)

FETCH: Final = 1
API_VERSIONS: Final = 18
VERSIONS: Final[Mapping[type, tuple[str, int, tuple[int, int]]]] = MappingProxyType(
    {
        Fetch: ("Fetch", 1, (13, 18)),
        Vote: ("Vote", 52, (0, 2)),
        BeginQuorumEpoch: ("BeginQuorumEpoch", 53, (0, 1)),
        EndQuorumEpoch: ("EndQuorumEpoch", 54, (0, 1)),
        DescribeQuorum: ("DescribeQuorum", 55, (0, 2)),
        FetchSnapshot: ("FetchSnapshot", 59, (0, 1)),
        AddVoter: ("AddRaftVoter", 80, (0, 1)),
        RemoveVoter: ("RemoveRaftVoter", 81, (0, 0)),
        UpdateVoter: ("UpdateRaftVoter", 82, (0, 0)),
        AskVersions: ("ApiVersions", API_VERSIONS, (3, 4)),
    }
)
"""The API of each request: its name, its key, and the versions that are written and read."""
NAMES: Final = {key: name for name, key, _ in VERSIONS.values()}
"""The names of the APIs by key."""
