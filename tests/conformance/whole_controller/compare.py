"""What two controllers wrote and sent, in a form in which it can be compared; pure.

Each run has its own ids of topics, epochs, ports and times; they become names that both runs have
in common. The order of independent partitions is undefined: Kafka keeps them in hash maps.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any
from uuid import UUID

from featurewatch.kafka.messages import Message
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text
from tests.conformance.whole_controller.znode_log import ZnodeWrite

Json = dict[str, Any]
_STATES = "/brokers/topics/"
_BY_CLIENTS = re.compile("/(config/topics|brokers/topics|admin/delete_topics)/[^/]+")
"""What Kafka's request threads write for clients; ours is the controller, under its fence."""


@dataclass
class Names:
    """The names that one run has for what both runs have.

    ``broker_epochs`` are registrations by epoch, ``ports`` broker ids by port, ``topic_ids`` topics
    by the text of their id. ``first_epoch`` is the epoch of the first controller.
    """

    first_epoch: int
    broker_epochs: dict[int, str] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)

    def add_topic_id(self, topic: str, topic_id: str) -> None:
        """Names an id by its topic, and by its turn if the topic was recreated."""
        if topic_id not in self.topic_ids:
            turn = sum(name.split("#")[0] == topic for name in self.topic_ids.values())
            self.topic_ids[topic_id] = f"{topic}#{turn}"

    def value(self, name: str, value: Any) -> Any:
        """A value of any message or znode, by the name of its field."""
        if isinstance(value, UUID):
            value = topic_id_text(value)
        match name:
            case "topic_id":
                return self.topic_ids.get(value, value)
            case "broker_epoch":
                return self.broker_epochs.get(value, value)
            case "controller_epoch" if isinstance(value, int):
                return value - self.first_epoch
            case "port":
                return f"port of {self.ports.get(value, value)}"
            case "timestamp":
                return "a time"
        return value


@dataclass(frozen=True)
class Observation:
    """What a controller did in one step: its writes, its requests by broker, and the response."""

    writes: Sequence[Json] = ()
    requests: Mapping[int, Sequence[Json]] = field(default_factory=dict)
    result: Any = None


# -- common names ----------------------------------------------------------------------------------


def write_json(write: ZnodeWrite, names: Names) -> Json:
    """A write with its content; its path has no chroot any more."""
    try:
        content = json.loads(write.data) if write.data else None
    except ValueError:
        content = repr(write.data)
    if isinstance(content, dict) and write.path.startswith(_STATES) and "topic_id" in content:
        names.add_topic_id(write.path.removeprefix(_STATES), content["topic_id"])
    return {
        "operation": write.operation,
        "path": write.path,
        "content": named(content, names),
        "version": write.version,
        "checked": [*write.checked],
    }


def request_json(message: Any, names: Names) -> Json:
    """A request with its partitions in order, whatever its version."""
    values: Json = {"request": type(message).__name__, "version": message.__version__}
    values |= named(plain(message), names)
    if "topic_states" in values:
        values["topic_states"] = sorted(values["topic_states"], key=lambda item: item["topic_name"])
        for topic in values["topic_states"]:
            topic["partition_states"].sort(key=lambda item: item["partition_index"])
    if "live_brokers" in values:
        values["live_brokers"].sort(key=lambda item: item["id"])
    if "live_leaders" in values:
        values["live_leaders"].sort(key=lambda item: item["broker_id"])
    return values


def plain(entity: Any) -> Any:
    """A message as dictionaries and lists."""
    if isinstance(entity, Message):
        return {item.name: plain(getattr(entity, item.name)) for item in entity.__fields__}
    if isinstance(entity, tuple | list):
        return [plain(item) for item in entity]
    return entity


def named(content: Any, names: Names, name: str = "") -> Any:
    """Content whose values have the names of `Names`."""
    if isinstance(content, dict):
        return {key: named(value, names, key) for key, value in content.items()}
    if isinstance(content, list):
        return [named(item, names, name) for item in content]
    return names.value(name, content)


def ordered_writes(writes: Iterable[Json]) -> list[Json]:
    """Writes of the same kind to partitions, one after the other, by their paths.

    Those to one partition keep their order.
    """
    runs: list[list[Json]] = []
    for write in writes:
        last = runs[-1] if runs else []
        if last and _kind(last[0]) == _kind(write) is not None:
            last.append(write)
        else:
            runs.append([write])
    return [write for run in runs for write in sorted(run, key=lambda write: str(write["path"]))]


def _kind(write: Json) -> tuple[str, int, str] | None:
    """What a write to a partition is; None for other writes, whose order counts."""
    path = write["path"]
    if not path.startswith(_STATES) or "/partitions" not in path:
        return None
    return write["operation"], path.count("/"), path.rsplit("/", 1)[-1] * path.endswith("/state")


# -- comparison ------------------------------------------------------------------------------------


def differences(kafka: Observation, ours: Observation) -> list[str]:
    """Each difference in one line; empty if both controllers did the same."""
    found = _in_turn("write", *_writes(kafka.writes, ours.writes))
    for broker_id in sorted(kafka.requests.keys() | ours.requests.keys()):
        found += _in_turn(
            f"request to {broker_id}",
            kafka.requests.get(broker_id, ()),
            ours.requests.get(broker_id, ()),
        )
    if (theirs := _in_order(kafka.result)) != (own := _in_order(ours.result)):
        found.append(f"response: Kafka {theirs}, we {own}")
    return found


def _writes(kafka: Sequence[Json], ours: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """The writes in a common order; those that only ours does under the fence look like Kafka's."""
    theirs, own = ordered_writes(kafka), ordered_writes(ours)
    for write, counterpart in zip(own, theirs, strict=False):
        if _BY_CLIENTS.fullmatch(write["path"]) and not counterpart["checked"]:
            own[own.index(write)] = write | {"checked": []}
    return theirs, own


def _in_order(result: Any) -> Any:
    """A response with its partitions in order."""
    if isinstance(result, dict):
        return {name: _in_order(value) for name, value in result.items()}
    if isinstance(result, list):
        return sorted(map(_in_order, result), key=str)
    return result


def _in_turn(what: str, kafka: Sequence[Json], ours: Sequence[Json]) -> list[str]:
    return [
        f"{what} {number}, {_title(theirs or own)}: {'; '.join(_leaves(theirs, own))}"
        for number, (theirs, own) in enumerate(zip_longest(kafka, ours))
        if theirs != own
    ]


def _title(content: Json | None) -> str:
    """The kind of a request, or the operation and path of a write."""
    values = content or {}
    return " ".join(str(values[key]) for key in ("request", "operation", "path") if key in values)


def _leaves(kafka: Any, ours: Any, place: str = "") -> Iterator[str]:
    """Each value that differs, with its place."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in kafka.keys() | ours.keys():
            yield from _leaves(kafka.get(key), ours.get(key), f"{place}.{key}")
    elif isinstance(kafka, list) and isinstance(ours, list):
        for number, (theirs, own) in enumerate(zip_longest(kafka, ours)):
            yield from _leaves(theirs, own, f"{place}[{number}]")
    elif kafka != ours:
        yield f"{place} Kafka {kafka}, we {ours}"
