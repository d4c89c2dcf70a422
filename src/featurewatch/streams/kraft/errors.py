"""Errors of reading a metadata log. Reasons never contain bytes or values of what was read."""


class RecordDecodeError(ValueError):
    """Bytes that are not what they should be.

    ::

        RecordDecodeError           a record, or a part of one
        ├── CorruptSnapshotError    a snapshot that must not be used
        └── UnknownRecordError      a record of a type or a version that no known release has

    ``reason`` is one clear phrase without a full stop.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CorruptSnapshotError(RecordDecodeError):
    """A snapshot whose content cannot be trusted as a whole: nothing of it may be applied."""


class UnknownRecordError(RecordDecodeError):
    """A record of a type, or of a version of its type, that no known release of Kafka has.

    ``kind`` names the type and the version in one word. ``hides_state``: it may be about
    registrations, levels or voters, so that these are not known to be complete any more.
    """

    def __init__(self, kind: str, reason: str, *, hides_state: bool = True) -> None:
        super().__init__(reason)
        self.kind = kind
        self.hides_state = hides_state


class MalformedLogError(ValueError):
    """Bytes that are not record batches, or not the ones that must follow."""


class NotALogDirectoryError(ValueError):
    """The directory is not formatted: one line that says what to give instead."""


class DamagedDirectoryError(ValueError):
    """A file of a log directory cannot be read: one line that says which and why."""


class NotAControllerError(ValueError):
    """The node's listener does not serve the metadata log; one line."""
