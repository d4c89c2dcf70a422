"""The newest revisions and operations of each cluster, folded from ``epochs`` and ``operations``.

Pure. Its size is bounded for each cluster: `MAX_REVISIONS`, `MAX_OPERATIONS`, and `MAX_BYTES` of
each. The values are held compressed and decoded on request, all of them at once, so what they are
then is bounded too: a cluster of 40 nodes that fills both counts takes 140 kB.
"""

import zlib
from collections import OrderedDict
from collections.abc import Container
from itertools import islice
from typing import Final, NamedTuple

from featurewatch.streams.codec.outputs import decode_operation, decode_snapshot
from featurewatch.streams.outputs import Operation, Snapshot
from featurewatch.streams.topics import EPOCHS, OPERATIONS
from featurewatch.web.change_index import ChangeIndex, DocumentKey

MAX_REVISIONS: Final = 50
"""Revisions of a cluster that are held."""

MAX_OPERATIONS: Final = 200
"""Steps of operations of a cluster that are held."""

MAX_BYTES: Final = 1 << 20
"""Of the compressed revisions of a cluster, and of its operations."""

MAX_CONTENT_BYTES: Final = 16 << 20
"""Of the same before they are compressed. A hostile cluster has 2 MB a revision, and a tenth of a
percent of that is left if all of it is alike."""

RETIRED_MS: Final = 60_000
"""A cluster that has had no state for this long, in milliseconds, was retired: its history stays on
its topics, and the topics of a new cluster are not read in step."""

_KINDS: Final = {EPOCHS.short_name: "revisions", OPERATIONS.short_name: "operations"}
_LIMITS: Final = {"revisions": MAX_REVISIONS, "operations": MAX_OPERATIONS}


class _Value(NamedTuple):
    """A compressed value, and its length before."""

    compressed: bytes
    length: int


class _NewestValues:
    """The newest values by their keys, within a count and two sizes; the newest one in any case."""

    def __init__(self, max_count: int) -> None:
        self._max_count = max_count
        self._values: OrderedDict[str, _Value] = OrderedDict()
        self._byte_count = self._content_byte_count = 0

    def put(self, key: str, value: bytes) -> None:
        if key in self._values:
            self._forget(key)
        self._values[key] = held = _Value(zlib.compress(value, 1), len(value))
        self._byte_count += len(held.compressed)
        self._content_byte_count += held.length
        while len(self._values) > 1 and self._is_over():
            self._forget(next(iter(self._values)))

    def newest_first(self, max_count: int | None = None) -> list[bytes]:
        newest = islice(reversed(self._values.values()), max_count)
        return [zlib.decompress(value.compressed) for value in newest]

    def get(self, key: str) -> bytes | None:
        value = self._values.get(key)
        return None if value is None else zlib.decompress(value.compressed)

    def _is_over(self) -> bool:
        return (
            len(self._values) > self._max_count
            or self._byte_count > MAX_BYTES
            or self._content_byte_count > MAX_CONTENT_BYTES
        )

    def _forget(self, key: str) -> None:
        value = self._values.pop(key)
        self._byte_count -= len(value.compressed)
        self._content_byte_count -= value.length


_Clusters = dict[tuple[str, str], _NewestValues]


class ClusterHistory:
    """The fold of ``epochs`` and ``operations``; ``index`` counts what changes."""

    def __init__(self, index: ChangeIndex) -> None:
        self.is_complete = False
        """Whether the topics have been read to their end once."""
        self.error: str | None = None
        """Why nothing new arrives; None if no reason is known."""
        self._index = index
        self._clusters: _Clusters = {}
        self._reading: _Clusters | None = None
        self._stateless_since_ms: dict[str, int] = {}

    def apply(self, topic: str, value: bytes | None) -> None:
        """Folds one message of the topic with this short name.

        Raises:
            MalformedEventError: It cannot be read; nothing has changed.
        """
        kind = _KINDS.get(topic)
        if kind is None or value is None:
            return
        if kind == "revisions":
            snapshot = decode_snapshot(value)
            cluster, key = snapshot.cluster, str(snapshot.revision)
        else:
            operation = decode_operation(value)
            cluster, key = operation.cluster, operation.id
        clusters = self._clusters if self._reading is None else self._reading
        values = clusters.setdefault((kind, cluster), _NewestValues(_LIMITS[kind]))
        if self._reading is None and values.get(key) == value:
            return
        values.put(key, value)
        if self._reading is None:
            self._index.mark_changed(DocumentKey(kind, cluster))

    def begin_reading(self) -> None:
        """The topics are read from their beginning; until their end what was before remains."""
        self._reading = {}

    def end_reading(self) -> None:
        """The topics have been read to their end."""
        if self._reading is not None:
            self._clusters, self._reading = self._reading, None
            for kind, cluster in self._clusters:
                self._index.mark_changed(DocumentKey(kind, cluster))
        self.is_complete = True
        self.error = None

    def remove(self, cluster: str) -> None:
        """Drops a cluster that was retired."""
        for kind in _LIMITS:
            self._clusters.pop((kind, cluster), None)
            if self._reading is not None:
                self._reading.pop((kind, cluster), None)
            self._index.forget(DocumentKey(kind, cluster))

    def remove_retired(self, with_state: Container[str] | None, now_ms: int) -> None:
        """Drops clusters that have had no state for `RETIRED_MS`; call once a second.

        None: it is not known now which have one, and what is known counts again from then on.
        """
        if with_state is None:
            self._stateless_since_ms = {}
            return
        since = self._stateless_since_ms
        stateless = {cluster for _, cluster in self._clusters if cluster not in with_state}
        self._stateless_since_ms = {name: since.get(name, now_ms) for name in stateless}
        for cluster, since_ms in [*self._stateless_since_ms.items()]:
            if now_ms - since_ms >= RETIRED_MS:
                del self._stateless_since_ms[cluster]
                self.remove(cluster)

    def revisions(self, cluster: str, max_count: int | None = None) -> list[Snapshot]:
        """The states of a cluster at its newest revisions, newest first; all that are held, or at
        most ``max_count``."""
        values = self._newest("revisions", cluster, max_count)
        return [decode_snapshot(value) for value in values]

    def revision(self, cluster: str, revision: int) -> Snapshot | None:
        """The state of a cluster at a revision; None: it is not held."""
        values = self._clusters.get(("revisions", cluster))
        value = values and values.get(str(revision))
        return decode_snapshot(value) if value else None

    def operations(self, cluster: str, max_count: int | None = None) -> list[Operation]:
        """The newest steps of a cluster's operations, newest first; all that are held, or at
        most ``max_count``."""
        values = self._newest("operations", cluster, max_count)
        return [decode_operation(value) for value in values]

    def _newest(self, kind: str, cluster: str, max_count: int | None) -> list[bytes]:
        values = self._clusters.get((kind, cluster))
        return [] if values is None else values.newest_first(max_count)
