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


class MalformedLogError(ValueError):
    """Bytes that are no record batches, or not the ones that must follow."""


class NotALogDirectoryError(ValueError):
    """There is nothing that the storage tool formatted: one line that says what to give."""


class DamagedDirectoryError(ValueError):
    """A file of a log directory cannot be read: one line that says which and why."""


class NotAControllerError(ValueError):
    """The node's listener does not serve the metadata log; one line."""
