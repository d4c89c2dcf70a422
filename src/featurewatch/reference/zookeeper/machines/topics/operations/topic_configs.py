"""The topics' own settings that clients read and change.

Follows ``AdminZkClient.changeTopicConfig`` of Kafka 3.9: brokers learn of a change by a znode below
``/config/changes``. The checks and their texts are those of ``ZkAdminManager``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import orjson

from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.requests import (
    ConfigChange,
    ConfigOperation,
    TopicResult,
)
from featurewatch.reference.zookeeper.machines.topics.setting_rules import (
    SETTING_RULES,
    SettingKind,
    conflict,
    invalid_setting_name,
    invalid_value,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import topic_config_path
from featurewatch.reference.zookeeper.machines.zookeeper import (
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
                reason = f"The topic '{topic}' does not exist."
                results[topic] = TopicResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
                continue
            settings = _changed(topic, present[topic], changed)
            if isinstance(settings, TopicResult):
                results[topic] = settings
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
    topic: str, settings: Mapping[str, str] | None, changes: Sequence[ConfigChange]
) -> dict[str, str] | TopicResult:
    """Settings after changes, or why they cannot be changed so."""
    if settings is None:
        reason = "The settings cannot be read: repair the topic's znode below /config/topics."
        return TopicResult(ErrorCode.INVALID_CONFIG, reason)
    refused = _refused(changes)
    if refused is not None:
        return refused
    changed = dict(settings)
    for name, operation, value in changes:
        if value is None or operation == ConfigOperation.DELETE:
            changed.pop(name, None)
            continue
        if operation == ConfigOperation.SET:
            changed[name] = value
            continue
        present = changed.get(name, SETTING_RULES[name].default)
        entries = [entry for entry in present.split(",") if entry]
        if operation == ConfigOperation.APPEND:
            added = [entry for entry in value.split(",") if entry not in entries]
            changed[name] = ",".join([*entries, *added])
        else:
            removed = value.split(",")
            changed[name] = ",".join(entry for entry in entries if entry not in removed)
    invalid = invalid_setting_name(changed)
    if invalid is None and (value_reason := invalid_value(changed)) is not None:
        resource = f"ConfigResource(type=TOPIC, name='{topic}')"
        invalid = f"Invalid config value for resource {resource}: {value_reason}"
    invalid = invalid or conflict(changed)
    return changed if invalid is None else TopicResult(ErrorCode.INVALID_CONFIG, invalid)


def _refused(changes: Sequence[ConfigChange]) -> TopicResult | None:
    """Why the changes are impossible, whatever comes of them; None if they are not."""
    names = [change.name for change in changes]
    if len({*names}) < len(names):
        return TopicResult(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    changed = [change for change in changes if change.operation != ConfigOperation.DELETE]
    null = ",".join(change.name for change in changed if change.value is None)
    if null:
        return TopicResult(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {null}")
    for name, operation, _ in changed:
        if operation == ConfigOperation.SET:
            continue
        if operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            reason = f"There is no operation {operation} for config key: {name}"
            return TopicResult(ErrorCode.INVALID_REQUEST, reason)
        if name not in SETTING_RULES:
            return TopicResult(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
        if SETTING_RULES[name].kind is not SettingKind.LIST:
            verb = ConfigOperation(operation).name.lower()
            reason = f"Config value {verb} is not allowed for config key: {name}"
            return TopicResult(ErrorCode.INVALID_CONFIG, reason)
    return None
