"""How a cluster is spoken to."""

from enum import StrEnum


class FeatureDialect(StrEnum):
    """As Kafka 2.7 and later, or as a draft of KIP-584 has it: the reference system speaks all."""

    RELEASED = "released"
    EARLY = "early"
    LATE = "late"
