"""Topics, their settings and the results of changes: plain values (KIP-4, KIP-195, KIP-339)."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from featurewatch.admin.errors import KafkaApiError, OutcomeUnknownError, RequestError
from featurewatch.streams.types import NodeId

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_ID_BYTES = 16
_LONGEST_ID = 24
_REQUEST_TIMED_OUT = 7


class BrokerNode(NamedTuple):
    """A broker and its listener."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None


class ClusterMetadata(NamedTuple):
    """The brokers of a cluster, ordered by id, and its controller.

    In KRaft mode ``controller_id`` is a broker that forwards to the active controller. It is None
    while there is none: the cluster has to be asked again.
    """

    cluster_id: str | None
    controller_id: NodeId | None
    brokers: tuple[BrokerNode, ...]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create: by counts, or by an assignment, which gives both counts.

    A count of None is the cluster's default. ``assignment`` has the replicas of each partition from
    0 on, the preferred leader first.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=lambda: _NO_SETTINGS)
    assignment: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        """Raises `RequestError` for both forms at once."""
        counts = (self.partitions, self.replication_factor)
        if self.assignment is not None and counts != (None, None):
            raise RequestError(f"topic {self.name!r}: give counts or an assignment, and not both")


@dataclass(frozen=True, slots=True)
class PartitionIncrease:
    """How many partitions a topic shall have in all, and the replicas of each new one."""

    topic: str
    count: int
    assignment: Sequence[Sequence[int]] | None = None


class ConfigOp(IntEnum):
    """What happens to a setting (``AlterConfigOp.OpType``); append and subtract are of lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class SettingChange(NamedTuple):
    """A change of one setting; with DELETE it returns to its default."""

    name: str
    value: str | None
    operation: ConfigOp = ConfigOp.SET

    @classmethod
    def delete(cls, name: str) -> "SettingChange":
        """Returns a setting to its default."""
        return cls(name, None, ConfigOp.DELETE)


class ConfigSource(IntEnum):
    """Where a value is from (``ConfigEntry.ConfigSource``)."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    BROKER_DEFAULT = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigValue(NamedTuple):
    """A setting and its value; a sensitive one has None."""

    name: str
    value: str | None
    source: int
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is Kafka's own default, which neither topic nor broker overrides."""
        return self.source == ConfigSource.DEFAULT


class PartitionDetails(NamedTuple):
    """A partition; no leader is None. The two last are None where the broker has no such fields
    (KIP-966)."""

    partition: int
    leader: NodeId | None
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    eligible_leaders: tuple[NodeId, ...] | None = None
    last_known_leaders: tuple[NodeId, ...] | None = None


class TopicListing(NamedTuple):
    """A topic; ``topic_id`` is None on clusters without topic ids."""

    name: str
    topic_id: UUID | None
    is_internal: bool


class TopicDetails(NamedTuple):
    """A topic with its partitions, ordered by number, or Kafka's error for it."""

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: tuple[PartitionDetails, ...] = ()
    error: int = 0
    text: str | None = None


class TopicConfig(NamedTuple):
    """All settings of a topic in the order of the response, or Kafka's error for it."""

    topic: str
    values: tuple[ConfigValue, ...] = ()
    error: int = 0
    text: str | None = None

    @property
    def overridden(self) -> Mapping[str, str | None]:
        """The settings that the topic itself has."""
        return {
            value.name: value.value for value in self.values if value.source == ConfigSource.TOPIC
        }


@dataclass(frozen=True, slots=True)
class ChangedTopic:
    """The result of a change for one topic: ``error`` is 0, or Kafka's number with its text.

    A topic that was created has its id and counts, None where they may not be read.
    """

    topic: str
    error: int = 0
    text: str | None = None
    topic_id: UUID | None = None
    partitions: int | None = None
    replication_factor: int | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether the cluster gave up waiting: the change goes on, or was never made."""
        return self.error == _REQUEST_TIMED_OUT


def check_changes(results: Iterable[ChangedTopic]) -> None:
    """Does nothing if all was changed.

    Raises:
        OutcomeUnknownError: The cluster gave up waiting for one or more of them.
        KafkaApiError: The first that was refused, with Kafka's number and text.
    """
    results = tuple(results)
    for result in results:
        if result.error and not result.is_unknown:
            raise KafkaApiError(result.error, result.text)
    if names := [result.topic for result in results if result.is_unknown]:
        raise OutcomeUnknownError(
            f"whether the change of {', '.join(names)} was applied is unknown: the cluster gave up "
            "waiting"
        )


def topic_id_of(text: str) -> UUID | None:
    """The topic id of Kafka's text, 22 signs of base64; None is the id zero.

    Raises:
        RequestError: It is none; the text is that of Kafka's class ``Uuid``.
    """
    if len(text) > _LONGEST_ID:
        raise RequestError(
            f"Input string with prefix `{text[:_LONGEST_ID]}` is too long to be decoded as a "
            "base64 UUID"
        )
    try:
        content = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise RequestError(f"{text!r} is no topic id: it is not base64") from None
    if len(content) != _ID_BYTES:
        raise RequestError(
            f"Input string `{text}` decoded as {len(content)} bytes, which is not equal to the "
            f"expected {_ID_BYTES} bytes of a base64-encoded UUID"
        )
    return UUID(bytes=content) if any(content) else None


def text_of_id(topic_id: UUID) -> str:
    """A topic id as Kafka prints it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
