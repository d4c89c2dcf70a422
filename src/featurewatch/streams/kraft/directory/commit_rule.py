"""Which records of a log directory are committed.

The high watermark is not in the files of a metadata log directory. They allow three conclusions:

1. A snapshot other than ``bootstrap.checkpoint`` holds committed records only: a controller makes
   one from its committed state, or takes it over from the leader. Everything below its end offset
   is committed.
2. In a quorum of one voter a record is committed when it is written.
3. A leader that a majority has not fetched from for 1.5 x ``controller.quorum.fetch.timeout.ms``
   resigns (Kafka 3.7 and newer) and appends nothing more in that epoch. If an epoch's log holds
   a record that was appended at t and another appended at t + settle or later, a majority has
   therefore fetched between the two, if settle is longer than those 1.5 timeouts. (With more than
   three voters the fetches of a majority may be in two such spans, so settle is doubled there, and
   where the number of voters is not known.) The remaining assumption is that a majority that
   fetches is not behind by more than the rest of settle: with the defaults of 2 s and 5 s, by 2 s.
   By Raft's rule everything before a committed record is committed too, whatever its epoch.

Times are those that the leaders wrote into the log; no clock of ours takes part, and a log that
does not grow releases nothing (idle controllers write a NoOpRecord every half second). Where the
assumption fails, or before 3.7 in the directory of a leader that is cut off from the others, a
record may be released that is truncated later: that is noticed, published as a gap with
``reset``, and the log is read again.
"""

from collections.abc import Iterable
from typing import Final

from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.types import NO_LEADER, LeaderAndEpoch

SETTLE_MS: Final = 5000
"""Longer than 1.5 x the default ``controller.quorum.fetch.timeout.ms`` of 2000."""

_ONE_SPAN_VOTERS: Final = 3
"""Up to so many voters one follower's fetch makes a majority with the leader."""


class CommitRule:
    """Applies the rules above to the batches of a log, in order."""

    def __init__(self, settle_ms: int = SETTLE_MS) -> None:
        self.leader = NO_LEADER
        self._settle_ms = settle_ms
        self._voters = 0
        self._newest_ms: dict[int, int] = {}
        self._control = RecordDecoder(frozenset({"LEADER_CHANGE", "KRAFT_VOTERS"}))

    def observe(self, batch: RecordBatch) -> None:
        """Apply a batch of the log."""
        if batch.error:
            return
        epoch = batch.leader_epoch
        newest_ms = self._newest_ms.get(epoch, batch.append_ms)
        self._newest_ms[epoch] = max(newest_ms, batch.append_ms)
        if batch.control and epoch >= self.leader.epoch:
            for record in self._control.decode(batch).records:
                if "voters" in record["data"]:
                    self._voters = len(record["data"]["voters"])
                if "leaderId" in record["data"]:
                    self.leader = LeaderAndEpoch(record["data"]["leaderId"], epoch)

    def high_watermark(self, batches: Iterable[RecordBatch], snapshot_end: int) -> int:
        """The end of the committed log, from ``batches`` and the newest snapshot; or -1."""
        committed = snapshot_end
        one_span = 0 < self._voters <= _ONE_SPAN_VOTERS
        settle_ms = self._settle_ms if one_span else 2 * self._settle_ms
        for batch in batches:
            settled_ms = self._newest_ms.get(batch.leader_epoch, 0) - settle_ms
            if self._voters == 1 or batch.append_ms <= settled_ms:
                committed = max(committed, batch.last_offset + 1)
        return committed

    def forget_before(self, epoch: int) -> None:
        """Forget the epochs before ``epoch``."""
        self._newest_ms = {e: ms for e, ms in self._newest_ms.items() if e >= epoch}
