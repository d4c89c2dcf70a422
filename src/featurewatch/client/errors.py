"""What a reader of the topics must know about, each as an exception with its facts as attributes.

Those that concern a message or a topic reach the caller in the order of the messages: they are
raised, or given to ``on_problem``, after which reading continues.
"""

from collections.abc import Callable, Iterable
from typing import Final

_MAX_NAMED: Final = 5


class ClientError(Exception):
    """Base of all errors of this package; the text is one line."""


OnProblem = Callable[[ClientError], None]
"""Takes a problem; reading continues when it returns."""


class LaterVersionError(ClientError):
    """A message has a later version of its topic's schema than this client reads."""

    def __init__(self, place: str, key: str, version: int, known: int) -> None:
        super().__init__(
            f"{place} has version {version} of its schema, and this client reads {known}: "
            "install a newer featurewatch"
        )
        self.place, self.key, self.version, self.known = place, key, version, known


class UnreadableError(ClientError):
    """A message is not of its topic's schema."""

    def __init__(self, place: str, key: str, reason: str) -> None:
        super().__init__(f"{place} cannot be read: {reason}")
        self.place, self.key, self.reason = place, key, reason


class HoleError(ClientError):
    """Messages are missing between what was read and what comes next."""


class MessagesLostError(HoleError):
    """Messages of a partition expired before they were read: offsets ``first`` to below ``next``.

    ``topic`` is a full name.
    """

    def __init__(self, topic: str, partition: int, first: int, next_offset: int) -> None:
        super().__init__(
            f"{topic} partition {partition}: the messages from offset {first} to below "
            f"{next_offset} expired before they were read"
        )
        self.topic, self.partition = topic, partition
        self.first, self.next_offset = first, next_offset


class RevisionsLostError(HoleError):
    """No message came of the revisions of a cluster between ``known`` and ``revision``."""

    def __init__(self, cluster: str, known: int, revision: int) -> None:
        super().__init__(
            f"cluster {cluster}: revision {revision} follows revision {known}: the messages of "
            "those between them are lost"
        )
        self.cluster, self.known, self.revision = cluster, known, revision


class RevisionBackError(ClientError):
    """The revisions of a cluster restarted: it was retired and followed again, or its state lost.

    A gate keeps the later revision until ``accept`` is called.
    """

    def __init__(self, cluster: str, known: int, revision: int) -> None:
        super().__init__(
            f"cluster {cluster}: revision {revision} follows revision {known}: the cluster was "
            "retired and is followed again, or its state was rebuilt"
        )
        self.cluster, self.known, self.revision = cluster, known, revision


class TopicRecreatedError(ClientError):
    """A topic was deleted and recreated; it is read from its beginning. ``topic``: a full name."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(f"topic {topic} was recreated ({reason}): reading it from its beginning")
        self.topic, self.reason = topic, reason


class ClusterRetiredError(ClientError):
    """A cluster was retired: featurewatch has forgotten it."""

    def __init__(self, cluster: str) -> None:
        super().__init__(f"cluster {cluster} was retired (featurewatch retire)")
        self.cluster = cluster


class WrongPrefixError(ClientError):
    """The bus has no topics under a prefix; ``others`` are the prefixes that it has."""

    def __init__(self, servers: str, prefix: str, others: Iterable[str]) -> None:
        self.prefix, self.others = prefix, tuple(others)
        super().__init__(
            f"the bus at {servers} has no topics of the prefix {prefix}: "
            + (f"it has {_listed(self.others)}" if self.others else "no featurewatch uses it")
        )


class UnknownClusterError(ClientError):
    """Nothing is known of a cluster; ``others`` are those that are known."""

    def __init__(self, cluster: str, others: Iterable[str]) -> None:
        self.cluster, self.others = cluster, tuple(others)
        super().__init__(
            f"nothing is known of the cluster {cluster}: "
            + (f"the bus has {_listed(self.others)}" if self.others else "the bus has no cluster")
        )


class NotReadyError(ClientError):
    """The levels of a cluster are not known yet: its source has not caught up."""

    def __init__(self, cluster: str) -> None:
        super().__init__(f"the levels of cluster {cluster} are not known yet: no source caught up")
        self.cluster = cluster


class WaitTimeoutError(ClientError, TimeoutError):
    """A level was not reached in time; the text has what was known at the end."""


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
