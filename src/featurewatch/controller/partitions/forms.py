"""The two written forms of a ZooKeeper controller's operations on partitions."""

from enum import StrEnum


class OperationsForm(StrEnum):
    """Kafka Controller Internals, and what Kafka 2.8 to 3.9 does."""

    RELEASED = "released"
    DOCUMENT = "document"
