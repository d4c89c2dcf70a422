"""Replicas of the metadata log, by id and directory (KIP-853; ``ReplicaKey``, ``VoterSet``)."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from featurewatch.streams.types import SupportedRange

ANY_KRAFT_VERSION: Final = SupportedRange(0, 1)
"""What the controllers of Kafka 3.9 and later support of kraft.version."""


class ReplicaKey(NamedTuple):
    """A replica; ``directory`` is None where it is not known (kraft.version 0).

    A node whose disk was replaced has the same id and another directory: it is another replica.
    """

    id: int
    directory: UUID | None = None

    def is_matched_by(self, other: "ReplicaKey") -> bool:
        """Whether ``other`` may be this replica: an unknown directory here matches every one."""
        return self.id == other.id and self.directory in (None, other.directory)

    def __str__(self) -> str:
        return f"{self.id}" if self.directory is None else f"{self.id} ({text_of(self.directory)})"


class Endpoint(NamedTuple):
    """A listener of a controller."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VoterNode:
    """A voter as in the log (``VoterSet.VoterNode``)."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: SupportedRange = ANY_KRAFT_VERSION


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters of the quorum, ordered by id (``VoterSet``)."""

    nodes: tuple[VoterNode, ...]

    @classmethod
    def of(cls, nodes: Iterable[VoterNode]) -> "VoterSet":
        """A set of these voters."""
        return cls(tuple(sorted(nodes, key=lambda node: node.key.id)))

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the voters, ascending."""
        return tuple(node.key.id for node in self.nodes)

    @property
    def majority(self) -> int:
        """How many voters are a majority."""
        return len(self.nodes) // 2 + 1

    def get(self, replica_id: int) -> VoterNode | None:
        """The voter with an id."""
        for node in self.nodes:  # asked at every event: no generator
            if node.key.id == replica_id:
                return node
        return None

    def has(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter; one with another directory is not."""
        node = self.get(key.id)
        return node is not None and node.key.is_matched_by(key)

    def with_node(self, node: VoterNode) -> "VoterSet":
        """This set with one more voter, or with a new description of one."""
        return VoterSet.of([*(one for one in self.nodes if one.key.id != node.key.id), node])

    def without(self, replica_id: int) -> "VoterSet":
        """This set without a voter."""
        return VoterSet.of(node for node in self.nodes if node.key.id != replica_id)

    def to_record(self) -> dict[str, Any]:
        """The data of a VotersRecord of version 0."""
        return {
            "version": 0,
            "voters": [
                {
                    "voterId": node.key.id,
                    "voterDirectoryId": text_of(node.key.directory),
                    "endpoints": [endpoint._asdict() for endpoint in node.endpoints],
                    "kRaftVersionFeature": {
                        "minSupportedVersion": node.kraft_versions.minimum,
                        "maxSupportedVersion": node.kraft_versions.maximum,
                    },
                }
                for node in self.nodes
            ],
        }

    @classmethod
    def from_record(cls, data: dict[str, Any]) -> "VoterSet":
        """The voters in a VotersRecord."""
        return cls.of(
            VoterNode(
                ReplicaKey(voter["voterId"], uuid_of(voter["voterDirectoryId"])),
                tuple(
                    Endpoint(endpoint["name"], endpoint["host"], endpoint["port"])
                    for endpoint in voter["endpoints"]
                ),
                SupportedRange(
                    voter["kRaftVersionFeature"]["minSupportedVersion"],
                    voter["kRaftVersionFeature"]["maxSupportedVersion"],
                ),
            )
            for voter in data["voters"]
        )


_ZERO: Final = UUID(int=0)


def text_of(directory: UUID | None) -> str:
    """A directory id as Kafka writes it: URL-safe base64 of 22 characters."""
    return urlsafe_b64encode((directory or _ZERO).bytes).decode().rstrip("=")


def uuid_of(text: str) -> UUID | None:
    """The id in Kafka's text; None of the id that is zero. Raises ``ValueError`` on other text."""
    found = UUID(bytes=urlsafe_b64decode(text + "=="))
    return found if found.int else None
