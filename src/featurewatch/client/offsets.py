"""Where a reader continues: positions, and stores that keep them across restarts."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Positions:
    """What was processed of a topic.

    ``topic_id`` is Kafka's (empty: the bus has none), ``offsets`` the next offset of each
    partition, and ``revisions`` the last revision of each cluster on topics that count them.
    """

    topic_id: str
    offsets: Mapping[int, int]
    revisions: Mapping[str, int] = field(default_factory=dict)


class OffsetStore(Protocol):
    """Keeps positions by the full name of a topic; called by one thread of a reader at a time."""

    def load(self, topic: str) -> Positions | None:
        """Returns what was saved last; None: nothing."""

    def save(self, topic: str, positions: Positions) -> None:
        """Keeps positions in place of earlier ones; what it raises ends the reader."""


class MemoryOffsets:
    """Keeps positions as long as the process lives."""

    def __init__(self) -> None:
        self.positions: dict[str, Positions] = {}

    def load(self, topic: str) -> Positions | None:
        """Returns what was saved last; None: nothing."""
        return self.positions.get(topic)

    def save(self, topic: str, positions: Positions) -> None:
        """Keeps positions in place of earlier ones."""
        self.positions[topic] = positions


class FileOffsets:
    """Keeps positions in one JSON file, which is replaced as a whole and survives a crash.

    One process uses a file at a time. Raises `ValueError` for a file that is not of this form.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._topics: dict[str, Positions] = {}
        if self._path.exists():
            try:
                content = json.loads(self._path.read_bytes())
                self._topics = {name: _positions(each) for name, each in content.items()}
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(f"{path} has no offsets that can be read: {error}") from None

    def load(self, topic: str) -> Positions | None:
        """Returns what was saved last; None: nothing."""
        return self._topics.get(topic)

    def save(self, topic: str, positions: Positions) -> None:
        """Keeps positions in place of earlier ones; raises `OSError`."""
        self._topics[topic] = positions
        text = json.dumps({name: asdict(each) for name, each in self._topics.items()})
        beside = self._path.with_name(f"{self._path.name}.new")
        with beside.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)


def _positions(content: Any) -> Positions:
    return Positions(
        str(content["topic_id"]),
        {int(number): int(offset) for number, offset in content["offsets"].items()},
        {str(cluster): int(revision) for cluster, revision in content["revisions"].items()},
    )
