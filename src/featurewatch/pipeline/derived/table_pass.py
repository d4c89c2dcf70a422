"""One pass over messages: each is decoded once, for the rows of silver and for the fold. Pure.

Spark calls this in its Python processes, for a stream and for a batch. It needs the messages of a
cluster one after the other, in the lake's order.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from featurewatch.monitor.input_messages import InputMessage, decode_message
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.derived.packed_rows import unpack
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.fold.messages import (
    FoldState,
    flush_outputs,
    fold_message,
    restore_state,
)
from featurewatch.pipeline.gold.output_rows import add_outputs
from featurewatch.pipeline.gold.tables import GOLD
from featurewatch.pipeline.lake.row_blocks import RowBlock, RowBuilder
from featurewatch.pipeline.silver.message_rows import message_rows
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.events import Event

_MAX_SEEN: Final = 100_000
"""Causes of a cluster that are remembered, so that one that was published twice gives one row; the
tables find the others."""


class TablePass:
    """Collects the rows of silver's and gold's tables from messages; ``limits`` must be the
    worker's."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._rows = RowBuilder((*SILVER, *GOLD))
        self._state: FoldState | None = None
        self._seen: set[str] = set()

    def begin(self, cluster: str, rows: Mapping[str, bytes] | bytes) -> None:
        """Continues a cluster from the rows of its state, which may be packed (empty: none is
        known).

        Raises:
            LakeError: The rows are those of another version, or damaged.
        """
        self._seen.clear()
        try:
            known = unpack(rows) if isinstance(rows, bytes) else {**rows}
            self._state = restore_state(cluster, known)
        except (KeyError, TypeError, ValueError) as error:
            raise LakeError(
                f"the checkpoint of the fold has the state of {cluster} in the rows of another "
                f"featurewatch ({error!r}): fill a new lake from the topics"
            ) from error

    def apply(self, messages: Iterable[InputMessage]) -> Iterator[list[RowBlock]]:
        """Applies the next messages of the cluster, while the result is iterated over.

        Yields blocks of rows whenever there are enough.
        """
        assert self._state is not None  # noqa: S101 - a cluster has begun
        state, limits, rows = self._state, self._limits, self._rows
        for message in messages:
            event = decode_message(message)
            if self._is_new(event):
                rows.add_all(message_rows(message, event))
                rows.count_bytes(len(message.value or b""))
            state, outputs = fold_message(state, message, limits, event)
            add_outputs(rows, outputs)
            if rows.is_full:
                yield [*rows.take()]
        self._state = state

    def _is_new(self, event: Event | MalformedEventError) -> bool:
        if isinstance(event, MalformedEventError):
            return True
        if event.id in self._seen:
            return False
        if len(self._seen) < _MAX_SEEN:
            self._seen.add(event.id)
        return True

    def end(self) -> FoldState | None:
        """Adds the pending rows of the cluster and returns its state (None: none has begun)."""
        if self._state is None:
            return None
        state, outputs = flush_outputs(self._state)
        add_outputs(self._rows, outputs)
        self._state = None
        return state

    def take_blocks(self) -> Iterator[RowBlock]:
        """Yields the rows since the last call."""
        return self._rows.take()
