"""The topics' own settings that clients read and change.

Follows ``AdminZkClient.changeTopicConfig`` of Kafka 3.9: brokers learn of a change by a znode below
``/config/changes``. Names and values of settings are not checked, which brokers alone can do.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import orjson

from featurewatch.reference.machines.requests import ErrorCode
from featurewatch.reference.machines.task_queue import Task
from featurewatch.reference.machines.topics.operations.parts import OperationParts
from featurewatch.reference.machines.topics.requests import (
    ConfigChange,
    ConfigOperation,
    TopicResult,
)
from featurewatch.reference.machines.topics.znodes import topic_config_path
from featurewatch.reference.machines.zookeeper import (
    ANY_VERSION,
    Create,
    NoNode,
    OperationDone,
    SetData,
)

CONFIG_CHANGES: Final = "/config/changes"


class ClientConfigs:
    """Performs DescribeConfigs and IncrementalAlterConfigs for topics."""

    def __init__(self, parts: OperationParts) -> None:
        self._parts = parts

    def read(self, names: Iterable[str]) -> Task[dict[str, Mapping[str, str] | None]]:
        """The settings of those topics that exist; None: they cannot be read."""
        known = [name for name in names if name in self._parts.context.topics]
        return (yield from self._parts.configs.read(known))

    def alter(
        self, changes: Mapping[str, tuple[ConfigChange, ...]], *, dry_run: bool
    ) -> Task[dict[str, TopicResult]]:
        """Applies changes topic by topic, each as a whole or not at all."""
        present = yield from self.read(changes)
        results: dict[str, TopicResult] = {}
        for topic, changed in changes.items():
            if topic not in present:
                results[topic] = TopicResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            settings = _changed(present[topic], changed)
            if settings is None:
                reason = "A change is invalid, or the topic's settings cannot be read."
                results[topic] = TopicResult(ErrorCode.INVALID_CONFIG, reason)
            elif dry_run or settings == present[topic]:
                results[topic] = TopicResult()
            else:
                results[topic] = yield from self._write(topic, settings)
        return results

    def _write(self, topic: str, settings: Mapping[str, str]) -> Task[TopicResult]:
        data = orjson.dumps({"version": 1, "config": settings})
        path = topic_config_path(topic)
        result = yield from self._parts.write(SetData(path, data, ANY_VERSION))
        if isinstance(result, NoNode):
            result = yield from self._parts.write(Create(path, data))
        if isinstance(result, OperationDone):
            note = orjson.dumps({"version": 2, "entity_path": f"topics/{topic}"})
            result = yield from self._parts.write(
                Create(f"{CONFIG_CHANGES}/config_change_", note, sequence=True)
            )
        if isinstance(result, OperationDone):
            return TopicResult()
        return TopicResult(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"The settings cannot be written: {result}"
        )


def _changed(
    settings: Mapping[str, str] | None, changes: Iterable[ConfigChange]
) -> dict[str, str] | None:
    """Settings after changes; None if one is invalid or there are none to change."""
    if settings is None:
        return None
    changed = dict(settings)
    for name, operation, value in changes:
        if operation == ConfigOperation.DELETE:
            changed.pop(name, None)
            continue
        if value is None:
            return None
        entries = [entry for entry in changed.get(name, "").split(",") if entry]
        match operation:
            case ConfigOperation.SET:
                changed[name] = value
            case ConfigOperation.APPEND:
                added = [entry for entry in value.split(",") if entry not in entries]
                changed[name] = ",".join([*entries, *added])
            case ConfigOperation.SUBTRACT:
                removed = value.split(",")
                changed[name] = ",".join(entry for entry in entries if entry not in removed)
            case _:
                return None
    return changed
