"""More bugs of the rows about KIP-4 (A), for `tests.mutants`: schemas, server, clients; a list."""

# ruff: noqa: E501 - lines of the product, as they are there

from typing import Final

from tests.mutants.mutant import Mutant

_KIP_4: Final = "reference/zookeeper/kip4"
_API: Final = f"{_KIP_4}/api.py"
_TOPIC_COMMAND: Final = f"{_KIP_4}/topic_command.py"
_REPLICA_COMMANDS: Final = f"{_KIP_4}/replica_commands.py"
_SCHEMAS: Final = "kafka/messages/drafts.py"
_CLIENT: Final = "admin/kip4/client.py"
_WIRE: Final = "reference/zookeeper/wire"
_CLUSTER_RESPONSES: Final = f"{_WIRE}/cluster_responses.py"
_TOPIC_RESPONSES: Final = f"{_WIRE}/topic_responses.py"
_RESPONSES: Final = f"{_WIRE}/responses.py"

KIP4_MUTANTS: Final = (
    # As written
    Mutant(
        "A-01",
        "a node that is not the controller does not answer ClusterMetadata",
        _API,
        "        broker, view = messages.ClusterMetadataResponseV0.Broker, self._view()\n",
        "        broker, view = messages.ClusterMetadataResponseV0.Broker, self._view()\n"
        "        self._topics.list()\n",
    ),
    Mutant(
        "A-02",
        "an error in ClusterMetadata ends the connection",
        _API,
        '    KIP4_CLUSTER_METADATA: {"brokers": (), "controller": None},\n',
        "",
    ),
    Mutant(
        "A-02 as released",
        "each failure is UNKNOWN_SERVER_ERROR",
        _TOPIC_RESPONSES,
        "                topic_id=topic_uuid(result.topic_id),\n"
        "                error_code=result.error,\n",
        "                topic_id=topic_uuid(result.topic_id),\n"
        "                error_code=result.error and ErrorCode.UNKNOWN_SERVER_ERROR,\n",
    ),
    Mutant(
        "A-03",
        "a success has a description",
        _API,
        "        code, description, fields = NO_ERROR, None, _FIELDS",
        '        code, description, fields = NO_ERROR, "", _FIELDS',
    ),
    Mutant(
        "A-03",
        "a failure has no description",
        _API,
        "            code, description = ADMIN_REQUEST_FAILED, _fitting(str(error))\n",
        "            code, description = ADMIN_REQUEST_FAILED, None\n",
    ),
    Mutant(
        "A-04",
        "ClusterMetadata has a field",
        _SCHEMAS,
        '    "ClusterMetadata": (\n        (),\n',
        '    "ClusterMetadata": (\n        (_field("flags", "int8", default=0),),\n',
    ),
    Mutant(
        "A-04 as released",
        "DescribeCluster names no controller",
        _RESPONSES,
        "view.controller_id if is_valid and view.controller_id in view.brokers else -1,\n",
        "-1,\n",
    ),
    Mutant(
        "A-05 as released",
        "Metadata names no controller",
        _RESPONSES,
        "        controller_id=view.controller_id,\n        topics=topics,\n",
        "        controller_id=-1,\n        topics=topics,\n",
    ),
    Mutant(
        "A-06",
        "a client takes the first broker for the controller",
        _CLIENT,
        "            if response.error_code or response.controller is None:\n"
        "                self._connections.rotate()\n"
        '                raise UnreachableError(f"{connection.address} names no controller")\n',
        "            if response.error_code:\n"
        "                self._connections.rotate()\n"
        '                raise UnreachableError(f"{connection.address} names no controller")\n'
        "            if response.controller is None:\n"
        "                response = response.__class__(\n"
        "                    error_code=0, brokers=response.brokers, controller=response.brokers[0]\n"
        "                )\n",
    ),
    Mutant(
        "A-06",
        "a client believes an answer with an error",
        _CLIENT,
        "            if response.error_code or response.controller is None:\n",
        "            if response.controller is None:\n",
    ),
    Mutant(
        "A-07",
        "a command goes to the bootstrap node",
        _CLIENT,
        "            return await self._connections.connection(self._cluster.controller)\n",
        "            return await self._connections.any_node()\n",
    ),
    Mutant(
        "A-08",
        "an assignment with a replication factor alone is accepted",
        _TOPIC_COMMAND,
        "            if (partition_count, replication_factor) != (None, None):\n",
        "            if partition_count is not None:\n",
    ),
    Mutant(
        "A-09",
        "an assignment has a replication factor of 1",
        _TOPIC_COMMAND,
        "            topic = NewTopic(name, assignments=dict(enumerate(replicas)), configs=settings)\n",
        "            first = {number: them[:1] for number, them in enumerate(replicas)}\n"
        "            topic = NewTopic(name, assignments=first, configs=settings)\n",
    ),
    Mutant(
        "A-10",
        "a new topic loses its settings",
        _TOPIC_COMMAND,
        "            topic = NewTopic(name, partition_count, replication_factor, configs=settings)\n",
        "            topic = NewTopic(name, partition_count, replication_factor)\n",
    ),
    Mutant(
        "A-11",
        "a description comes before the code",
        _SCHEMAS,
        '(_field("error_code", "int16"), _optional("error_description", "string"))\n',
        '(_optional("error_description", "string"), _field("error_code", "int16"))\n',
    ),
    Mutant(
        "A-11 as released",
        "one result stands for all topics",
        _TOPIC_RESPONSES,
        "                topic_config_error_code=0,\n"
        "                num_partitions=len(result.assignments) or -1,\n"
        "                replication_factor=len(result.assignments.get(0, ())) or -1,\n"
        "                configs=(),\n"
        "            )\n"
        "            for name, result in results.items()\n",
        "                topic_config_error_code=0,\n"
        "                num_partitions=len(result.assignments) or -1,\n"
        "                replication_factor=len(result.assignments.get(0, ())) or -1,\n"
        "                configs=(),\n"
        "            )\n"
        "            for name, result in [*results.items()][:1]\n",
    ),
    Mutant(
        "A-12",
        "a deleted setting has a value",
        _SCHEMAS,
        '            _field("deleted_configs", "[]string"),\n',
        '            _configs("deleted_configs"),\n',
    ),
    Mutant(
        "A-14 as released",
        "a deleted setting is set to nothing",
        "reference/zookeeper/machines/topics/operations/topic_configs.py",
        "        if value is None or operation == ConfigOperation.DELETE:\n",
        "        if value is None and operation != ConfigOperation.DELETE:\n",
    ),
    Mutant(
        "A-15",
        "DeleteTopic has a timeout",
        _SCHEMAS,
        '    "DeleteTopic": ((_TOPIC,), _RESULT),\n',
        '    "DeleteTopic": ((_TOPIC, _field("timeout", "int32", default=0)), _RESULT),\n',
    ),
    Mutant(
        "A-15 as released",
        "one topic of a list is deleted",
        _TOPIC_RESPONSES,
        "            for name, topic_id in deleted_names(request.body, name_of)\n",
        "            for name, topic_id in [*deleted_names(request.body, name_of)][:1]\n",
    ),
    Mutant(
        "A-16",
        "a topic that does not exist has a description",
        _API,
        '    KIP4_DESCRIBE_TOPIC: {"description": None},\n',
        "    KIP4_DESCRIBE_TOPIC: {\n"
        '        "description": messages.DescribeTopicResponseV0.TopicDescription(\n'
        '            topic_name="",\n'
        "            config=messages.DescribeTopicResponseV0.TopicConfigDetails(\n"
        "                partitions=0, replication_factor=0, configs=()\n"
        "            ),\n"
        "            partitions=(),\n"
        "        )\n"
        "    },\n",
    ),
    Mutant(
        "A-16",
        "a topic that is marked for deletion is not described",
        _TOPIC_COMMAND,
        "        self._existing(name)\n        response = await",
        "        self._check_alive(name)\n        response = await",
    ),
    Mutant(
        "A-16 as released",
        "an unknown topic has no error",
        _CLUSTER_RESPONSES,
        "            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,\n            name=requested.name,\n",
        "            else ErrorCode.NONE,\n            name=requested.name,\n",
    ),
    Mutant(
        "A-17",
        "the replication factor is that of a running reassignment",
        _TOPIC_COMMAND,
        "            len(context.assignment(partitions[0]).origin) if partitions else 0,\n",
        "            len(partitions),\n",
    ),
    Mutant(
        "A-18",
        "a setting with its default is listed",
        _TOPIC_COMMAND,
        "            tuple(Kip4Config(key, value) for key, value in sorted(settings.items())),\n",
        "            tuple(\n"
        "                Kip4Config(key, value)\n"
        '                for key, value in sorted({"segment.bytes": "1073741824", **settings}.items())\n'
        "            ),\n",
    ),
    Mutant(
        "A-19 as released",
        "a partition without a leader has leader 0",
        _CLUSTER_RESPONSES,
        "        leader_id=leader if has_leader else _NO_NODE,\n",
        "        leader_id=leader if has_leader else 0,\n",
    ),
    Mutant(
        "A-21 as released",
        "only topics that are being deleted are listed",
        _CLUSTER_RESPONSES,
        "sorted(context.topics - context.queued_deletions)",
        "sorted(context.queued_deletions)",
    ),
    Mutant(
        "A-22",
        "the draft has another key for its string",
        f"{_KIP_4}/strings.py",
        '    return tuple(required(entry, "replicas", list_of(_INT32)))\n',
        '    return tuple(required(entry, "brokers", list_of(_INT32)))\n',
    ),
    Mutant(
        "A-24",
        "a reassignment is accepted and not started",
        _REPLICA_COMMANDS,
        "        await self._controller.perform(ReassignRequest(targets, all_or_nothing=True))\n",
        "        del targets\n",
    ),
    Mutant(
        "A-25",
        "a future ends when one partition has failed",
        _CLIENT,
        "        while OperationState.IN_PROGRESS in (states := await verify()).values():\n",
        "        while OperationState.IN_PROGRESS in (states := await verify()).values():\n"
        "            if OperationState.FAILED in states.values():\n"
        "                break\n",
    ),
    Mutant(
        "A-37",
        "a future ends when one partition has failed",
        _CLIENT,
        "        while OperationState.IN_PROGRESS in (states := await verify()).values():\n",
        "        while OperationState.IN_PROGRESS in (states := await verify()).values():\n"
        "            if OperationState.FAILED in states.values():\n"
        "                break\n",
    ),
    Mutant(
        "A-26",
        "the verification has no string",
        _SCHEMAS,
        '    "VerifyReassignPartition": (\n        (_ASSIGNMENT,),\n',
        '    "VerifyReassignPartition": (\n        (_optional("manual_assignment", "string"),),\n',
    ),
    Mutant(
        "A-26 as released",
        "what runs is not listed",
        _TOPIC_RESPONSES,
        "            running = response.assignments if isinstance(response, RunningReassignments) else {}\n",
        "            running: Mapping[TopicPartition, ReplicaAssignment] = {}\n",
    ),
    Mutant(
        "A-30",
        "an election is performed before it is answered",
        _REPLICA_COMMANDS,
        "        await self._controller.perform(RequestElections(partitions))\n",
        "        await self._controller.perform(RequestElections(partitions))\n"
        '        raise AdminRequestFailedError("The election has not been performed yet.")\n',
    ),
    Mutant(
        "A-31",
        "a partition without a leader counts as elected in the status",
        "admin/elections/status.py",
        "    if leader == preferred:\n",
        "    if leader is None or leader == preferred:\n",
    ),
    Mutant(
        "A-32",
        "deletion does not go through its helper",
        _API,
        "        await self._topics.delete(body.topic_name)\n",
        "        self._topics._controller.context()\n"
        "        from featurewatch.reference.zookeeper.machines.topics.requests import (\n"
        "            DeleteTopicsRequest,\n"
        "        )\n\n"
        "        await self._topics._controller.perform(DeleteTopicsRequest((body.topic_name,)))\n",
    ),
    Mutant(
        "A-32",
        "the server loads code of the command line",
        _API,
        '_log = logging.getLogger("featurewatch.reference.zookeeper")\n',
        '_log = logging.getLogger("featurewatch.reference.zookeeper")\n'
        '__import__("importlib").import_module("featurewatch.cli.errors")\n',
    ),
    Mutant(
        "A-34",
        "a bootstrap node that fails is asked for ever",
        _CLIENT,
        "            except NodeError as error:\n"
        "                self._connections.rotate()\n"
        "                raise UnreachableError(str(error)) from error\n",
        "            except NodeError as error:\n"
        "                raise UnreachableError(str(error)) from error\n",
    ),
    Mutant(
        "A-34",
        "the cache is kept after a refusal",
        _CLIENT,
        "            self._cluster = None\n            if repeats",
        "            if repeats",
    ),
    Mutant(
        "A-38",
        "the map has texts",
        _CLIENT,
        "            ): _state(result.result_code)\n",
        "            ): _state(-result.result_code)\n",
    ),
    Mutant(
        "A-40",
        "an unreachable controller makes partitions fail",
        _CLIENT,
        "            except DraftApiError:\n                continue",
        "            except AdminError:\n                continue",
    ),
    Mutant(
        "A-41",
        "a request is its own response",
        _CLIENT,
        "                    return _checked(response)\n",
        "                    return _checked(response) and request  # type: ignore[return-value]\n",
    ),
    Mutant(
        "A-42",
        "there is no command for elections",
        "cli/commands/elect/__init__.py",
        '    "preferred": "Make the first replica of each partition its leader, if it is in sync.",\n',
        "",
    ),
    Mutant(
        "A-43",
        "a verification that failed has no list",
        _API,
        '    KIP4_VERIFY_REASSIGN_PARTITION: {"results": ()},\n',
        "",
    ),
    # As released
    Mutant(
        "A-40",
        "an election that cannot be is in progress",
        "admin/elections/status.py",
        "    return ElectionStatus.IN_PROGRESS if can_lead else ElectionStatus.FAILED\n",
        "    return ElectionStatus.IN_PROGRESS\n",
    ),
    Mutant(
        "A-10",
        "a setting that is given twice has the last value",
        _TOPIC_COMMAND,
        "        if len(settings) < len(configs):\n",
        "        if False:\n",
    ),
    Mutant(
        "A-14",
        "a setting is added and deleted",
        _TOPIC_COMMAND,
        "    keys = [*(pair.key for pair in added), *deleted]\n",
        "    keys = [*(pair.key for pair in added)]\n",
    ),
    Mutant(
        "A-25",
        "a client does not pause between two verifications",
        _CLIENT,
        "            await asyncio.sleep(self._network.backoff_s)\n        failed",
        "            await asyncio.sleep(0)\n        failed",
    ),
    Mutant(
        "A-29",
        "the election of a partition that is being deleted is accepted",
        _REPLICA_COMMANDS,
        "                if context.is_being_deleted(partition):\n",
        "                if False:\n",
    ),
    Mutant(
        "A-40",
        "a partition without a leader counts as elected",
        "admin/elections/status.py",
        "    if leader == preferred:\n",
        "    if leader in (None, preferred):\n",
    ),
    Mutant(
        "A-34",
        "the cache is kept after a connection is lost",
        _CLIENT,
        "                    self._cluster = None\n                    raise OutcomeUnknownError(",
        "                    raise OutcomeUnknownError(",
    ),
)
