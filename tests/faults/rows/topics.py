"""Topics that are deleted, recreated, or lose messages by retention."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from tests.faults.fault import Fault
from tests.faults.rows.processes import STALLED, killed
from tests.faults.stack import Stack

CHANGELOG: Final = "changelog"
INPUT: Final = "metadata-log"
OUTPUTS: Final = ("feature-changes", "alerts", "epochs", "state", "dead-letters")
LOST: Final = (*STALLED, "messages-lost", "outputs-lost", "log-gap")
"""Rules that say that messages are lost."""


def full_name(stack: Stack, name: str) -> str:
    """The topic's name on the bus; the changelog is found by what its name ends with."""
    if name != CHANGELOG:
        return stack.topic(name)
    topics = stack.admin.list_topics(timeout=60).topics
    (found,) = (one for one in topics if one.startswith(stack.prefix) and one.endswith(CHANGELOG))
    return str(found)


def delete(stack: Stack, topic: str) -> None:
    """Deletes a topic and waits until no broker knows it."""
    for future in stack.admin.delete_topics([topic]).values():
        future.result()
    deadline = time.monotonic() + 60
    while topic in stack.admin.list_topics(timeout=60).topics and time.monotonic() < deadline:
        time.sleep(0.05)


@contextmanager
def deleted(stack: Stack, name: str, *, worker_killed: bool = False) -> Iterator[None]:
    """A topic is deleted, and nobody but featurewatch makes it again."""
    topic = full_name(stack, name)
    if worker_killed:
        with killed(stack, "worker"):
            delete(stack, topic)
            yield
    else:
        delete(stack, topic)
        yield
    stack.reader.read_again()


@contextmanager
def recreated(stack: Stack, name: str) -> Iterator[None]:
    """A topic is deleted and at once made again with its settings, empty."""
    topic = full_name(stack, name)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (described,) = stack.admin.describe_configs([resource]).values()
    settings = {
        entry.name: entry.value for entry in described.result().values() if not entry.is_default
    }
    partitions = len(stack.admin.list_topics(topic, timeout=60).topics[topic].partitions)
    delete(stack, topic)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        new = NewTopic(topic, partitions, 1, config=settings)
        (created,) = stack.admin.create_topics([new]).values()
        if created.exception() is None:
            break
        if topic in stack.admin.list_topics(timeout=60).topics:
            break  # featurewatch was quicker
        time.sleep(0.1)
    stack.reader.read_again()
    yield


@contextmanager
def expired(stack: Stack) -> Iterator[None]:
    """Deletes what the worker has not read: DeleteRecords does at once what retention does."""
    topic = stack.topic(INPUT)
    with killed(stack, "worker"):
        yield
        partitions = stack.admin.list_topics(topic, timeout=60).topics[topic].partitions
        ends = [TopicPartition(topic, number, -1) for number in partitions]
        for future in stack.admin.delete_records(ends).values():
            future.result()


ROWS: Final = (
    *(
        Fault(
            f"delete-{name}",
            f"the topic {name} is deleted, and stays so unless featurewatch makes it",
            partial(deleted, name=name),
            hold_s=10,
            may_fire=LOST,
        )
        for name in (INPUT, *OUTPUTS, CHANGELOG)
    ),
    *(
        Fault(
            f"recreate-{name}",
            f"the topic {name} is deleted and recreated empty",
            partial(recreated, name=name),
            hold_s=10,
            may_fire=LOST,
        )
        for name in (INPUT, *OUTPUTS, CHANGELOG)
    ),
    Fault(
        "delete-input-worker-away",
        "the worker is killed, metadata-log is deleted, the worker comes back",
        lambda stack: deleted(stack, INPUT, worker_killed=True),
        hold_s=5,
        may_fire=LOST,
    ),
    Fault(
        "delete-changelog-worker-away",
        "the worker is killed, its changelog is deleted, the worker comes back",
        lambda stack: deleted(stack, CHANGELOG, worker_killed=True),
        hold_s=5,
        may_fire=LOST,
    ),
    Fault(
        "expire-input",
        "the worker is killed, what it has not read is deleted (DeleteRecords)",
        expired,
        hold_s=5,
        may_fire=LOST,
        may_lose=True,
    ),
)
