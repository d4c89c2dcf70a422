"""Topics to create and change, and the results: plain values (KIP-4, KIP-195)."""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from featurewatch.admin.api_errors import TIMED_OUT
from featurewatch.admin.errors import KafkaApiError, OutcomeUnknownError, RequestError

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_ID_BYTES = 16
_LONGEST_ID = 24


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
    """The desired total number of partitions of a topic, and the replicas of each new one."""

    topic: str
    count: int
    assignment: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class ChangedTopic:
    """The result of a change for one topic: ``error`` is 0, or Kafka's number with its text.

    A topic that was created has its id and counts, None where they may not be read. ``right`` is
    what the login lacks.
    """

    topic: str
    error: int = 0
    text: str | None = None
    topic_id: UUID | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    right: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether the cluster stopped waiting: the change may continue, or was never made."""
        return self.error == TIMED_OUT


def check_changes(results: Iterable[ChangedTopic]) -> None:
    """Does nothing if all was changed.

    Raises:
        OutcomeUnknownError: The cluster gave up waiting for one or more of them.
        KafkaApiError: The first that was refused, with Kafka's number and text.
    """
    results = tuple(results)
    for result in results:
        if result.error and not result.is_unknown:
            raise KafkaApiError(result.error, result.text, result.right)
    if names := [result.topic for result in results if result.is_unknown]:
        raise OutcomeUnknownError(
            f"whether the change of {', '.join(names)} was applied is unknown: the cluster gave up "
            "waiting"
        )


def topic_id_of(text: str) -> UUID | None:
    """The topic id of Kafka's text, 22 signs of base64; None is the id zero.

    Raises:
        RequestError: The text is not a topic id; the message is that of Kafka's class ``Uuid``.
    """
    if len(text) > _LONGEST_ID:
        raise RequestError(
            f"Input string with prefix `{text[:_LONGEST_ID]}` is too long to be decoded as a "
            "base64 UUID"
        )
    try:
        content = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise RequestError(f"{text!r} is not a topic id: it is not base64") from None
    if len(content) != _ID_BYTES:
        raise RequestError(
            f"Input string `{text}` decoded as {len(content)} bytes, which is not equal to the "
            f"expected {_ID_BYTES} bytes of a base64-encoded UUID"
        )
    return UUID(bytes=content) if any(content) else None


def text_of_id(topic_id: UUID) -> str:
    """A topic id as Kafka prints it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
