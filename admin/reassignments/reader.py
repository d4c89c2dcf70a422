"""What clients of partitions read and set at the brokers: topics, directories, throttles."""

from collections.abc import Iterable, Mapping

from featurewatch.admin.errors import UnreachableError, UpdateRefusedError
from featurewatch.admin.metadata import read_metadata
from featurewatch.admin.reassignments import configs, messages
from featurewatch.admin.reassignments.configs import ConfigChanges, ConfigOwner, ResourceKind
from featurewatch.admin.reassignments.requests import AdminRequests, Compose
from featurewatch.admin.reassignments.throttles import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    broker,
    topic,
)
from featurewatch.admin.reassignments.types import (
    BrokerReplica,
    ClusterTopics,
    PartitionError,
    ReplicaDirectory,
    RunningBroker,
)
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.streams.types import SupportedRanges


class RequestRefusedError(UpdateRefusedError):
    """A request was refused as a whole; ``error`` has Kafka's number."""

    def __init__(self, error: PartitionError) -> None:
        super().__init__(error.text)
        self.error = error


class PartitionReader(AdminRequests):
    """Brokers, topics, directories and throttles of one cluster.

    Each call raises `UnreachableError` where a broker does not respond.
    """

    async def topics(self, names: Iterable[str] | None) -> ClusterTopics:
        """The running brokers, and these topics (None: all) as a broker knows them."""
        wanted = None if names is None else tuple(dict.fromkeys(names))
        response = await self.to_any_broker(
            messages.METADATA, (9, 9), lambda _: messages.metadata_request(wanted)
        )
        return messages.read_metadata(response)

    async def supported(self) -> SupportedRanges:
        """The feature levels that the first node supports, which tell its release."""
        connection = await self.any_node()
        response = connection.last_api_versions
        if response is None:
            response = await connection.request_api_versions(self.timeout_s)
        return read_metadata(response, connection.address).supported

    async def directories(
        self, replicas: Iterable[BrokerReplica], brokers: Mapping[int, RunningBroker]
    ) -> dict[BrokerReplica, ReplicaDirectory]:
        """Where these replicas are, and their sizes; those that no broker has are left out.

        Raises:
            UnreachableError: A broker that has one of them does not respond.
            UpdateRefusedError: The login may not read them.
        """
        by_broker: dict[int, list[TopicPartition]] = {}
        for replica in replicas:
            by_broker.setdefault(replica.broker_id, []).append(replica.partition)
        found: dict[BrokerReplica, ReplicaDirectory] = {}
        for broker_id, partitions in by_broker.items():
            if broker_id not in brokers:
                raise UnreachableError(f"broker {broker_id} is not running")
            response = await self.to_broker(
                brokers[broker_id],
                messages.DESCRIBE_LOG_DIRS,
                (1, 4),
                _log_dirs(partitions),
            )
            check_response(messages.api_error(int(getattr(response, "error_code", 0))))
            found |= messages.read_log_dirs(response, broker_id)
        return found

    async def move_directories(
        self, targets: Mapping[BrokerReplica, str], brokers: Mapping[int, RunningBroker]
    ) -> dict[BrokerReplica, PartitionError | None]:
        """Requests that replicas move to other directories of their brokers."""
        results: dict[BrokerReplica, PartitionError | None] = {}
        for broker_id in sorted({replica.broker_id for replica in targets}):
            if broker_id not in brokers:
                raise UnreachableError(f"broker {broker_id} is not running")
            wanted = {
                replica.partition: directory
                for replica, directory in targets.items()
                if replica.broker_id == broker_id
            }
            response = await self.to_broker(
                brokers[broker_id],
                messages.ALTER_LOG_DIRS,
                (1, 2),
                _move(wanted),
                changes=True,
            )
            for partition, error in messages.read_move(response).items():
                results[BrokerReplica(partition, broker_id)] = error
        return results

    async def set_configs(
        self, changes: ConfigChanges, brokers: Mapping[int, RunningBroker]
    ) -> dict[ConfigOwner, PartitionError | None]:
        """Changes settings: a broker's own at that broker, as only it accepts them.

        Raises:
            UnreachableError: A broker is not running.
        """
        results: dict[ConfigOwner, PartitionError | None] = {}
        for owner, values in changes.items():
            if owner.kind is not ResourceKind.BROKER:
                continue
            if int(owner.name) not in brokers:
                raise UnreachableError(f"broker {owner.name} is not running")
            response = await self.to_broker(
                brokers[int(owner.name)],
                configs.ALTER_CONFIGS,
                (1, 1),
                _change({owner: values}),
                changes=True,
            )
            results |= configs.read_change(response)
        others = {
            owner: value for owner, value in changes.items() if owner.kind is ResourceKind.TOPIC
        }
        if others:
            response = await self.to_any_broker(
                configs.ALTER_CONFIGS,
                (1, 1),
                _change(others),
                changes=True,
            )
            results |= configs.read_change(response)
        return results

    async def throttles(
        self, topics: Iterable[str], brokers: Mapping[int, RunningBroker]
    ) -> dict[ConfigOwner, dict[str, str]]:
        """The throttles that are set on these topics and brokers."""
        found: dict[ConfigOwner, dict[str, str]] = {}
        for broker_id, node in brokers.items():
            response = await self.to_broker(
                node,
                configs.DESCRIBE_CONFIGS,
                (1, 4),
                _describe([broker(broker_id)], BROKER_SETTINGS),
            )
            found |= configs.read_describe(response)
        if owners := [topic(name) for name in topics]:
            response = await self.to_any_broker(
                configs.DESCRIBE_CONFIGS, (1, 4), _describe(owners, TOPIC_SETTINGS)
            )
            found |= configs.read_describe(response)
        return found


def check_response(error: PartitionError | None) -> None:
    """Raises `RequestRefusedError` for the error of a whole response; None: there is none."""
    if error is not None:
        raise RequestRefusedError(error)


def _log_dirs(partitions: list[TopicPartition]) -> Compose:
    return lambda version: messages.log_dirs_request(partitions, version)


def _move(directories: Mapping[TopicPartition, str]) -> Compose:
    return lambda version: messages.move_request(directories, version)


def _change(changes: ConfigChanges) -> Compose:
    return lambda _: configs.change_request(changes)


def _describe(owners: Iterable[ConfigOwner], names: Iterable[str]) -> Compose:
    named = tuple(owners)
    return lambda version: configs.describe_request(named, names, version)
