"""The topics of featurewatch: one registry, from which the tables of the documents follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PREFIX = "featurewatch"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its short name, its content, and the settings that it is created with.

    The full name is ``<prefix>.<short name>``. ``key`` names what its keys are. ``source`` is the
    source whose events an input has (empty: not an input). ``version`` is that of the schema of its
    values: fields may be added to one, and a field is removed or gets another type in the next.
    """

    short_name: str
    about: str
    config: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    key: str = "cluster id"
    version: int = 1

    @property
    def is_compacted(self) -> bool:
        """Whether the bus keeps the newest message of each key alone."""
        return self.config.get("cleanup.policy") == "compact"

    @property
    def schema_id(self) -> str:
        """The ``$id`` of the schema of its values; from version 2 on it ends with the version."""
        version = f":{self.version}" if self.version > 1 else ""
        return f"urn:featurewatch:{self.short_name}{version}"

    def name(self, prefix: str = PREFIX) -> str:
        """The full name under a prefix."""
        return f"{prefix}.{self.short_name}"


# Kafka compacts whole segments alone, never the one that is written. By default that is a gigabyte
# or a week, all of which whoever starts would read. A segment has room for the largest message.
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(64 << 20),
}
"""The settings of a topic that is read from its beginning for the newest message of each key."""

_DAY_MS = 24 * 3600 * 1000

# Sources publish their whole state once a day (`streams.source_shell.RESYNC_INTERVAL_MS`), so a
# worker that starts without its tables needs no more than that. Heartbeats alone would make an
# input topic grow by 5.7 GB a year and source. Only whole segments are deleted.
# Producers' clocks differ, and what waited for the bus has an old time: only the time at which the
# bus appended a message never runs backwards along the offsets.
_INPUT = {
    "retention.ms": str(7 * _DAY_MS),
    "segment.ms": str(_DAY_MS),
    "message.timestamp.type": "LogAppendTime",
}

METADATA_LOG = Topic(
    "metadata-log",
    "committed batches, transactions and snapshots of the metadata log",
    _INPUT,
    source="kraft",
)
API_VERSIONS = Topic(
    "api-versions",
    "supported ranges and finalized levels of nodes, when they change",
    _INPUT,
    source="api-versions",
)
ZOOKEEPER = Topic(
    "zookeeper",
    "contents of a cluster's znodes, and each observed change",
    _INPUT,
    source="zookeeper",
)
FEATURE_CHANGES = Topic("feature-changes", "each change of a finalized level")
# A webhook that is down for a day misses no message, also of alerts that fire and end meanwhile.
ALERTS = Topic(
    "alerts",
    "alerts that fire and resolve",
    {**COMPACTED, "min.compaction.lag.ms": str(_DAY_MS)},
    key="alert id",
)
EPOCHS = Topic("epochs", "a snapshot of the cluster's state at each feature revision")
STATE = Topic("state", "the latest snapshot of each cluster", COMPACTED)
OPERATIONS = Topic("operations", "each step of the operations of a cluster's controller")
DEAD_LETTERS = Topic("dead-letters", "input that could not be read, with its bytes and the reason")
RESYNC_REQUESTS = Topic(
    "resync-requests",
    "requests that a source publish the whole state of its cluster again",
    {"retention.ms": "86400000"},
)

INPUTS = (METADATA_LOG, API_VERSIONS, ZOOKEEPER)
INPUT_OF_SOURCE = {topic.source: topic for topic in INPUTS}
OUTPUTS = (FEATURE_CHANGES, ALERTS, EPOCHS, STATE, DEAD_LETTERS)
"""The topics that every worker publishes on."""
WORKER_OUTPUTS = (*OUTPUTS, OPERATIONS)
"""The topics that a worker that follows operations publishes on."""
ALL = (*INPUTS, *WORKER_OUTPUTS, RESYNC_REQUESTS)
