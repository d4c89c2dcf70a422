"""What the record decoder raises. Reasons never hold bytes or values of what was read."""


class RecordDecodeError(ValueError):
    """Bytes that are not what they should be.

    ::

        Unreadable            a record, or a part of one
        └── BadSnapshot       a snapshot that must not be used

    ``reason`` is one clear phrase without a full stop.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CorruptSnapshotError(RecordDecodeError):
    """A snapshot whose content cannot be trusted as a whole: nothing of it may be applied."""
