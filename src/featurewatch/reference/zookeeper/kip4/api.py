"""Serves the requests of KIP-4's draft on a node that may be the controller.

Any node responds to ClusterMetadata, which names the controller. The others are processed by the
controller alone: another node responds with code 22, and any failure is code 21 with its reason.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from featurewatch.common.text import plain, shortened
from featurewatch.kafka import messages
from featurewatch.kafka.messages import response_class
from featurewatch.reference.zookeeper.kip4.codes import (
    ADMIN_REQUEST_FAILED,
    NO_ERROR,
    NOT_CONTROLLER_FOR_ADMIN_REQUEST,
    UNEXPECTED_ERROR,
    AdminRequestFailedError,
    NotControllerForAdminError,
)
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.kip4.replica_commands import (
    PreferredReplicaLeaderElectionCommandHelper,
    ReassignPartitionsCommandHelper,
)
from featurewatch.reference.zookeeper.kip4.topic_command import Kip4Config, TopicCommandHelper
from featurewatch.reference.zookeeper.sessions.slots import MachineExitedError
from featurewatch.reference.zookeeper.wire.api_keys import (
    KIP4_ALTER_TOPIC,
    KIP4_CLUSTER_METADATA,
    KIP4_CREATE_TOPIC,
    KIP4_DELETE_TOPIC,
    KIP4_DESCRIBE_TOPIC,
    KIP4_LIST_TOPICS,
    KIP4_PREFERRED_REPLICA_LEADER_ELECTION,
    KIP4_REASSIGN_PARTITION,
    KIP4_VERIFY_REASSIGN_PARTITION,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.responses import ClusterView

_log = logging.getLogger("featurewatch.reference.zookeeper")
_MAX_DESCRIPTION_CHARS: Final = 2_000

Fields = Mapping[str, Any]
"""The fields of a response beside its error."""

_FIELDS_OF_ERROR: Final[Mapping[int, Fields]] = {
    KIP4_CLUSTER_METADATA: {"brokers": (), "controller": None},
    KIP4_DESCRIBE_TOPIC: {"description": None},
    KIP4_LIST_TOPICS: {"topics": None, "marked_for_deletion": None},
    KIP4_VERIFY_REASSIGN_PARTITION: {"results": ()},
}
"""Those fields where there is an error."""


class Kip4Api:
    """One node's; ``view`` returns the cluster as this node knows it."""

    def __init__(self, controller: ControllerAccess, view: Callable[[], ClusterView]) -> None:
        self._view = view
        self._topics = TopicCommandHelper(controller)
        self._reassignments = ReassignPartitionsCommandHelper(controller)
        self._elections = PreferredReplicaLeaderElectionCommandHelper(controller)
        self._performers: Mapping[int, Callable[[Any], Awaitable[Fields]]] = {
            KIP4_CLUSTER_METADATA: self._cluster_metadata,
            KIP4_CREATE_TOPIC: self._create_topic,
            KIP4_ALTER_TOPIC: self._alter_topic,
            KIP4_DELETE_TOPIC: self._delete_topic,
            KIP4_DESCRIBE_TOPIC: self._describe_topic,
            KIP4_LIST_TOPICS: self._list_topics,
            KIP4_REASSIGN_PARTITION: self._reassign_partition,
            KIP4_VERIFY_REASSIGN_PARTITION: self._verify_reassign_partition,
            KIP4_PREFERRED_REPLICA_LEADER_ELECTION: self._preferred_replica_leader_election,
        }

    async def serve(self, request: WireRequest) -> Any:
        """The response to a request.

        Raises:
            MachineExitedError: if this node ends meanwhile.
        """
        code, description, fields = NO_ERROR, None, _FIELDS_OF_ERROR.get(request.key, {})
        try:
            fields = await self._performers[request.key](request.body)
        except NotControllerForAdminError as error:
            code, description = NOT_CONTROLLER_FOR_ADMIN_REQUEST, str(error)
        except AdminRequestFailedError as error:
            code, description = ADMIN_REQUEST_FAILED, _fitting(str(error))
        except MachineExitedError:
            raise
        except Exception as error:
            # The draft has a code for unexpected errors, and the other requests continue.
            _log.exception("request %d of KIP-4 failed", request.key)
            reason = f"{UNEXPECTED_ERROR} {type(error).__name__}: {error}"
            code, description = ADMIN_REQUEST_FAILED, _fitting(reason)
        values: dict[str, Any] = {"error_code": code, **fields}
        if request.key != KIP4_CLUSTER_METADATA:
            values["error_description"] = description
        return response_class(request.body)(**values)

    # -- requests ----------------------------------------------------------------------------------

    async def _cluster_metadata(self, _: Any) -> Fields:
        broker, view = messages.ClusterMetadataResponseV0.Broker, self._view()
        brokers = {
            node_id: broker(node_id=node_id, host=endpoint.host, port=endpoint.port)
            for node_id, endpoint in sorted(view.brokers.items())
        }
        return {
            "brokers": tuple(brokers.values()),
            "controller": brokers.get(view.controller_id),
        }

    async def _create_topic(self, body: Any) -> Fields:
        await self._topics.create(
            body.topic_name,
            body.partitions,
            body.replicas,
            body.replica_assignment,
            _pairs(body.configs),
        )
        return {}

    async def _alter_topic(self, body: Any) -> Fields:
        await self._topics.alter(
            body.topic_name,
            body.partitions,
            body.replica_assignment,
            _pairs(body.added_configs),
            body.deleted_configs,
        )
        return {}

    async def _delete_topic(self, body: Any) -> Fields:
        await self._topics.delete(body.topic_name)
        return {}

    async def _describe_topic(self, body: Any) -> Fields:
        topic = await self._topics.describe(body.topic_name)
        form = messages.DescribeTopicResponseV0
        config = form.TopicConfigDetails(
            partitions=len(topic.partitions),
            replication_factor=topic.replication_factor,
            configs=tuple(
                form.ConfigEntry(key=pair.key, value=pair.value) for pair in topic.configs
            ),
        )
        partitions = tuple(
            form.TopicPartitionDetails(
                partition_id=partition.number,
                leader=partition.leader,
                replicas=partition.replicas,
                isr=partition.isr,
            )
            for partition in topic.partitions
        )
        description = form.TopicDescription(
            topic_name=topic.name, config=config, partitions=partitions
        )
        return {"description": description}

    async def _list_topics(self, _: Any) -> Fields:
        names = self._topics.list()
        return {"topics": names.alive, "marked_for_deletion": names.marked_for_deletion}

    async def _reassign_partition(self, body: Any) -> Fields:
        await self._reassignments.reassign(body.manual_assignment)
        return {}

    async def _verify_reassign_partition(self, body: Any) -> Fields:
        form = messages.VerifyReassignPartitionResponseV0
        codes = self._reassignments.verify(body.manual_assignment)
        results = tuple(
            form.ReassignmentResult(
                topic_and_partition=form.TopicAndPartition(
                    topic_name=partition.topic, partition=partition.number
                ),
                result_code=int(code),
            )
            for partition, code in codes.items()
        )
        return {"results": results}

    async def _preferred_replica_leader_election(self, body: Any) -> Fields:
        await self._elections.elect(body.partitions_serialized)
        return {}


def _pairs(entries: Sequence[Any]) -> tuple[Kip4Config, ...]:
    return tuple(Kip4Config(entry.key, entry.value) for entry in entries)


def _fitting(description: str) -> str:
    """One line that fits into a string of the protocol."""
    return shortened(plain(description), _MAX_DESCRIPTION_CHARS)
