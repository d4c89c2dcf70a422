"""The result of a replay, which holds as long as the files and the lake are as they were.

A replay of what the lake has already adds nothing, and Spark is not needed to find that out: the
files have not changed since, bronze still has their messages, and silver and gold have all of
bronze.
"""

from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from featurewatch.pipeline.idle import is_processed, versions
from featurewatch.pipeline.lake.answers import SavedAnswer, fingerprint
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.replay.assembly import ClusterReplay

_FIELDS: Final = ("cluster", "first", "end", "records", "notes")
"""The fields that a result is restored from."""


class SavedReplay:
    """The result of the last replay of some files into a local lake.

    ``arguments`` are whatever else the replay depends on.
    """

    def __init__(self, directory: Path, paths: Sequence[Path], arguments: list[str]) -> None:
        self._directory = directory
        self._paths = paths
        self._arguments = [*arguments, version("featurewatch")]
        names = "\n".join([*(str(path.absolute()) for path in paths), *arguments])
        digest = sha256(names.encode(errors="surrogateescape")).hexdigest()[:16]
        self._answer = SavedAnswer(directory, f"replay-{digest}")
        self._files = fingerprint(paths)

    def load(self) -> tuple[list[str], list[ClusterReplay]] | None:
        """Returns the notes on all files and the result for each cluster, without new messages.

        None: no result is saved for the files and the lake as they are.
        """
        key = self._key()
        answer = None if key is None else self._answer.load(key)
        if answer is None or not is_processed(self._directory):
            return None
        try:
            return answer["notes"], [ClusterReplay(**document) for document in answer["clusters"]]
        except (LookupError, TypeError):
            return None

    def save(self, notes: list[str], replays: list[ClusterReplay]) -> None:
        """Keeps the result of a replay without problems, unless the files have changed since."""
        key = self._key()
        if key is not None and fingerprint(self._paths) == self._files:
            clusters = [{name: getattr(one, name) for name in _FIELDS} for one in replays]
            self._answer.save(key, {"notes": notes, "clusters": clusters})

    def _key(self) -> dict[str, Any] | None:
        """The inputs of the result; bronze only grows, unless it is another or old days of it are
        deleted."""
        tables = versions(self._directory, (MESSAGES,))
        if self._files is None or tables is None or tables["expired"]:
            return None
        bronze = tables[MESSAGES.path][0]
        return {"files": self._files, "bronze": bronze, "arguments": self._arguments}
