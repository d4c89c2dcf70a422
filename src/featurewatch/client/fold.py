"""Messages of one topic in, typed values and problems out. Pure: no clock, no input, no output."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from featurewatch.client.errors import (
    ClientError,
    ClusterRetiredError,
    LaterVersionError,
    RevisionBackError,
    RevisionsLostError,
    UnreadableError,
)
from featurewatch.common.text import shortened
from featurewatch.streams.codec.cloudevents import version_in
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.codec.outputs import Output, decode_output, event_id
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.topics import EPOCHS, FEATURE_CHANGES, STATE, Topic

OutputT = TypeVar("OutputT", bound=Output)

_MAX_IDS: Final = 10_000
"""Ids that are kept to recognize a message that was published twice. That happens after a crash,
and so within seconds."""

_MAX_CLUSTERS: Final = 100_000

_COUNTED: Final = (EPOCHS, FEATURE_CHANGES)
"""Topics with a message of each revision."""


class Record(NamedTuple):
    """A message as Kafka has it; ``topic`` is a full name."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] | None = None

    @property
    def place(self) -> str:
        """The message's position on the bus, for texts."""
        return f"{self.topic} partition {self.partition} offset {self.offset}"

    @property
    def name(self) -> str:
        """The key as text: a cluster id, or an alert's id."""
        return (self.key or b"").decode(errors="replace")


def read(topic: Topic, cls: type[OutputT], record: Record) -> OutputT | ClientError | None:
    """Returns the value of a message, the problem with it, or None for a deletion of its key."""
    if record.value is None:
        return None
    version = version_in(topic, record.headers or ())
    if version > topic.version:
        return LaterVersionError(record.place, record.name, version, topic.version)
    try:
        output = decode_output(cls, record.value)
    except MalformedEventError as error:
        return UnreadableError(record.place, record.name, str(error))
    key = output.id if isinstance(output, Alert) else output.cluster
    if record.key != key.encode(errors="replace"):
        reason = f"the key is {shortened(record.name)!r}, and the value is of {shortened(key)!r}"
        return UnreadableError(record.place, record.name, reason)
    return output


class TopicFold(Generic[OutputT]):
    """Reads the messages of one topic in order, each of them once.

    ``revisions`` are the last ones that were processed, by cluster. ``cluster``: only the messages
    of this one count (empty: all).
    """

    def __init__(
        self,
        topic: Topic,
        cls: type[OutputT],
        revisions: Mapping[str, int] | None = None,
        cluster: str = "",
    ) -> None:
        self._topic, self._cls, self._cluster = topic, cls, cluster
        self._revisions = OrderedDict(revisions or {})
        self._seen: OrderedDict[str, int] = OrderedDict()

    def restart(self) -> None:
        """The topic is another one now: what comes may have the ids and revisions of before."""
        self._revisions.clear()
        self._seen.clear()

    def apply(self, record: Record) -> Iterator[OutputT | ClientError]:
        """Yields what a message means: problems, then its value; nothing for one seen before."""
        if self._cluster and not self._is_wanted(record.name):
            return
        output = read(self._topic, self._cls, record)
        if output is None:
            yield from self._deleted(record.name)
        elif isinstance(output, ClientError):
            yield output
        else:
            yield from self._value(output, record.value or b"")

    def _is_wanted(self, key: str) -> bool:
        if self._cls is Alert:
            return key.startswith(f"{self._cluster}/")
        return key == self._cluster

    def _deleted(self, key: str) -> Iterator[ClientError]:
        # Of clusters alone: an alert's key is deleted long after the alert was resolved.
        if self._topic == STATE and self._revisions.pop(key, None) is not None:
            yield ClusterRetiredError(key)

    def _value(self, output: OutputT, value: bytes) -> Iterator[OutputT | ClientError]:
        name, content = event_id(output), hash(value)
        if self._topic == STATE:
            name = f"{name}/{content}"
        elif isinstance(output, Snapshot):
            content = hash(output.digest)  # one revision may be published with several times
        before = self._seen.get(name)
        if before == content:
            return
        self._seen[name] = content
        if len(self._seen) > _MAX_IDS:
            self._seen.popitem(last=False)
        if isinstance(output, FeatureChange | Snapshot):
            yield from self._in_order(output, is_other=before is not None)
        yield output

    def _in_order(
        self, output: FeatureChange | Snapshot, *, is_other: bool
    ) -> Iterator[ClientError]:
        """``is_other``: another message had its id."""
        cluster, revision = output.cluster, output.revision
        known = self._revisions.get(cluster)
        if known is not None and (revision < known or is_other):
            yield RevisionBackError(cluster, known, revision)
        elif known is not None and revision > known + 1 and self._topic in _COUNTED:
            yield RevisionsLostError(cluster, known, revision)
        self._revisions[cluster] = revision
        self._revisions.move_to_end(cluster)
        if len(self._revisions) > _MAX_CLUSTERS:
            self._revisions.popitem(last=False)
