"""What reassignments change at single brokers: throttles, and the directories of replicas."""

from collections.abc import Iterable, Mapping

from featurewatch.admin.api_errors import NOT_CONTROLLER, ResponseError
from featurewatch.admin.cluster import configs
from featurewatch.admin.cluster.configs import (
    ConfigOwner,
    OwnConfigs,
    ResourceKind,
    SettingChange,
)
from featurewatch.admin.cluster.reader import ClusterReader, running
from featurewatch.admin.cluster.values import BrokerNode, BrokerReplica
from featurewatch.admin.reassignments import requests
from featurewatch.admin.reassignments.throttles import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    ConfigChanges,
)


class BrokerAdmin(ClusterReader):
    """Throttles and directories of one cluster.

    Each call raises `UnreachableError` where a broker does not respond, or `OutcomeUnknownError`
    if a change was sent to it.
    """

    serves_controllers = True

    async def move_directories(
        self, targets: Mapping[BrokerReplica, str], brokers: Mapping[int, BrokerNode]
    ) -> dict[BrokerReplica, ResponseError | None]:
        """Requests that replicas move to other directories of their brokers."""
        results: dict[BrokerReplica, ResponseError | None] = {}
        for broker_id in sorted({replica.broker_id for replica in targets}):
            wanted = {
                replica.partition: directory
                for replica, directory in targets.items()
                if replica.broker_id == broker_id
            }
            response = await self.exchange_with(
                running(broker_id, brokers).address, requests.move_request(wanted), changes=True
            )
            for partition, error in requests.read_move(response).items():
                results[BrokerReplica(partition, broker_id)] = error
        return results

    async def set_configs(
        self, changes: ConfigChanges, brokers: Mapping[int, BrokerNode]
    ) -> dict[ConfigOwner, ResponseError | None]:
        """Changes settings: a broker's own at that broker, as only it accepts them."""
        results: dict[ConfigOwner, ResponseError | None] = {}
        of_topics = []
        for owner, values in changes.items():
            settings = [
                SettingChange.delete(name) if value is None else SettingChange(name, value)
                for name, value in values.items()
            ]
            if owner.kind is ResourceKind.TOPIC:
                of_topics.append((owner, settings))
                continue
            request = configs.alter_request([(owner, settings)])
            node = running(int(owner.name), brokers)
            response = await self.exchange_with(node.address, request, changes=True)
            results |= configs.altered(response)
        if of_topics:
            request = configs.alter_request(of_topics)
            response = await self.perform(
                lambda _: request,
                lambda answer: any(item.error_code == NOT_CONTROLLER for item in answer.responses),
            )
            results |= configs.altered(response)
        return results

    async def throttles(
        self, topics: Iterable[str], brokers: Mapping[int, BrokerNode]
    ) -> OwnConfigs:
        """The throttles that are set on these topics and brokers."""
        return await self.own_configs(topics, TOPIC_SETTINGS, brokers, BROKER_SETTINGS)
