"""Errors of reading a metadata log. Reasons never contain bytes or values of what was read."""


class RecordDecodeError(ValueError):
    """Bytes that are not what they should be.

    ::

        RecordDecodeError           a record, or a part of one
        └── CorruptSnapshotError    a snapshot that must not be used

    ``reason`` is one clear phrase without a full stop.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CorruptSnapshotError(RecordDecodeError):
    """A snapshot whose content cannot be trusted as a whole: nothing of it may be applied."""


class MalformedLogError(ValueError):
    """Bytes that are not record batches, or not the ones that must follow."""


class NotALogDirectoryError(ValueError):
    """The directory is not formatted: one line that says what to give instead."""


class DamagedDirectoryError(ValueError):
    """A file of a log directory cannot be read: one line that says which and why."""


class NotAControllerError(ValueError):
    """The node's listener does not serve the metadata log; one line."""
