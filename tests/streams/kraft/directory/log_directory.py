"""A metadata log directory that a test writes, and the batches in it."""

from pathlib import Path

from featurewatch.streams.kraft.directory.reader import LogDirectoryReader
from featurewatch.streams.types import LOG_START, NO_CHECKSUM, OffsetAndEpoch
from tests.streams.kraft.log_bytes import NOOP, batch

CLUSTER = "k3nkSGPhQsiT8EDDBw8qVg"


def leader_change(first: int, epoch: int, append_ms: int, voters: int = 3) -> bytes:
    """The control batch with which an epoch begins."""
    ids = b"".join(id_.to_bytes(4, "big") + b"\0" for id_ in range(1, voters + 1))
    array = bytes([voters + 1]) + ids
    value = b"\0\0" + (1).to_bytes(4, "big") + array + array + b"\0"
    return batch(first, [value], epoch, append_ms, key=b"\0\0\0\2")


def entry(first: int, epoch: int, append_ms: int, count: int = 1) -> bytes:
    """A batch of data records appended at a time."""
    return batch(first, [NOOP] * count, epoch, append_ms)


class LogDirectory:
    """A metadata log directory that a test writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "__cluster_metadata-0"
        self.log.mkdir(parents=True)
        (root / "meta.properties").write_text(f"version=1\ncluster.id={CLUSTER}\n")

    def append(self, base: int, *batches: bytes) -> None:
        """Append to the segment that begins at ``base``."""
        with (self.log / f"{base:020}.log").open("ab") as file:
            file.write(b"".join(batches))

    def write(self, base: int, *batches: bytes) -> None:
        """Cut a segment to this content, in place as Kafka does."""
        with (self.log / f"{base:020}.log").open("r+b") as file:
            file.truncate(0)
            file.write(b"".join(batches))

    def snapshot(self, end: int, epoch: int, data: bytes = b"state") -> None:
        """Write a snapshot file; its content is not looked into here."""
        (self.log / f"{end:020}-{epoch:010}.checkpoint").write_bytes(data)

    def reader(
        self, at: OffsetAndEpoch = LOG_START, checksum: int = NO_CHECKSUM
    ) -> LogDirectoryReader:
        """A reader with a settling time of one second."""
        return LogDirectoryReader(
            self.root, CLUSTER, at, settle_ms=1000, poll_ms=1, checksum=checksum
        )
