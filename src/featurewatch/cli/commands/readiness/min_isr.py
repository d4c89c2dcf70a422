"""Reads where min.insync.replicas is set: in the metadata log, and in the brokers' files."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.admin.cluster import configs
from featurewatch.admin.cluster.configs import ConfigOwner
from featurewatch.admin.cluster.reader import ClusterReader
from featurewatch.admin.errors import AdminError
from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.output.terminal import print_error
from featurewatch.cli.runtime.cluster_image import LogReading
from featurewatch.kafka.messages.config_entries import ConfigSource
from featurewatch.monitor.readiness.elr_settings import MinIsrFacts
from featurewatch.streams.events import LogCommit, LogGap, RecordJson, SnapshotChunk
from featurewatch.streams.types import NodeId
from featurewatch.tables.partitions.minimums import (
    CONFIG_RECORD,
    NO_MIN_ISRS,
    SETTING,
    configure,
    topic_resource,
)

_TOPIC: Final = "TOPIC_RECORD"
_REMOVE_TOPIC: Final = "REMOVE_TOPIC_RECORD"
_TIMEOUT_S: Final = 10.0
_FROM_FILES: Final = (ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT)


class MinIsrLog:
    """The settings and the topics by the events of a metadata log so far."""

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}
        self._clear()

    def _clear(self) -> None:
        self._settings = NO_MIN_ISRS
        self._topics.clear()

    def reading(self) -> LogReading:
        """What is read of the log for it."""
        kinds = frozenset({CONFIG_RECORD, _TOPIC, _REMOVE_TOPIC})
        return LogReading(kinds, frozenset({SETTING}), self._apply)

    def facts(self, files: Mapping[NodeId, int]) -> MinIsrFacts:
        """What is known now; ``files`` are the values of `values_in_files`."""
        return MinIsrFacts(self._settings, frozenset(self._topics.values()), files)

    def _apply(self, event: object) -> None:
        match event:
            case SnapshotChunk():
                if event.index == 0:
                    self._clear()
                self._apply_all(event.records)
            case LogCommit():
                self._apply_all(event.records)
            case LogGap() if event.reset:
                self._clear()

    def _apply_all(self, records: Iterable[RecordJson]) -> None:
        for record in records:
            kind, data = record["type"], record["data"]
            try:
                if kind == CONFIG_RECORD:
                    self._settings, _ = configure(self._settings, record["offset"], data)
                elif kind == _TOPIC:
                    self._topics[data["topicId"]] = data["name"]
                elif kind == _REMOVE_TOPIC:
                    name = self._topics.pop(data["topicId"])
                    if topic_resource(name) in self._settings:
                        self._settings = self._settings.delete(topic_resource(name))
            except (LookupError, TypeError, ValueError):
                continue  # the source counts unreadable records, and readiness says so


def values_in_files(cluster: ClusterSection) -> dict[NodeId, int]:
    """The values in the files of running brokers, where no other setting hides them.

    It takes brokers' addresses, and DESCRIBE_CONFIGS on the cluster; empty otherwise, after a line
    on stderr.
    """
    if not cluster.servers:
        return {}
    try:
        return asyncio.run(_values_in_files(cluster))
    except AdminError as error:
        print_error(f"the brokers' files were not read: {error}")
        return {}


async def _values_in_files(cluster: ClusterSection) -> dict[NodeId, int]:
    found: dict[NodeId, int] = {}
    async with ClusterReader.connect(
        cluster.servers, config=cluster.command_config, timeout_s=_TIMEOUT_S
    ) as reader:
        for node in (await reader.cluster()).brokers:
            request = configs.describe_request([ConfigOwner.broker(node.node_id)], (SETTING,))
            response = await reader.exchange_with(node.address, request)
            for entry in (entry for result in response.results for entry in result.configs):
                is_number = (entry.value or "").isdecimal()
                if entry.name == SETTING and entry.source in _FROM_FILES and is_number:
                    found[node.node_id] = int(entry.value or "")
    return found
