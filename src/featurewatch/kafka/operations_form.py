"""The two written forms of the operations of a controller in ZooKeeper mode."""

from enum import StrEnum


class OperationsForm(StrEnum):
    """What Kafka 2.8 to 3.9 does, and the document Kafka Controller Internals."""

    RELEASED = "released"
    DOCUMENT = "document"
