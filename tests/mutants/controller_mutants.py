"""The bugs of the rows about the controller's internals (C) and KIP-4 (A), for `tests.mutants`.

The file is long, since it is a list.
"""

from typing import Final

from tests.mutants.mutant import Mutant

_TOPICS: Final = "reference/zookeeper/machines/topics"
_OPERATIONS: Final = f"{_TOPICS}/operations"
_DIALECT: Final = f"{_TOPICS}/dialect.py"
_REPLICAS: Final = f"{_TOPICS}/replica_machine.py"
_PARTS: Final = f"{_OPERATIONS}/parts.py"
_STORE: Final = f"{_TOPICS}/state_store.py"
_REASSIGNMENT: Final = f"{_OPERATIONS}/reassignment.py"
_SELECTORS: Final = "controller/partitions/selectors.py"
_STATES: Final = "controller/partitions/states.py"
_ASSIGNMENT: Final = "controller/partitions/assignment.py"
_KIP_4: Final = "reference/zookeeper/kip4"
_DRAFT_CLIENT: Final = "admin/kip4/client.py"
_READS: Final = "frozenset({_CLUSTER_METADATA, 30_404, 30_405, 30_407})"
_TOPIC_ADMIN: Final = "admin/topics/client.py"
_REASSIGNMENT_ADMIN: Final = "admin/reassignments/client.py"
_ELECTION_STATUS: Final = "admin/elections/status.py"

CONTROLLER_MUTANTS: Final = (
    # One controller
    Mutant(
        "C-01",
        "an operation of an earlier epoch is performed",
        f"{_TOPICS}/topic_controller.py",
        "        if not self.active or self.context.epoch != epoch:\n",
        "        if not self.active:\n",
    ),
    # States
    Mutant(
        "C-14",
        "a new partition cannot go offline",
        _STATES,
        "    _P.OFFLINE: (_P.NEW, _P.ONLINE),\n",
        "    _P.OFFLINE: (_P.ONLINE,),\n",
    ),
    Mutant(
        "C-14 as released",
        "an offline partition cannot go offline again",
        _STATES,
        "    _P.OFFLINE: (_P.NEW, _P.ONLINE, _P.OFFLINE),\n",
        "    _P.OFFLINE: (_P.NEW, _P.ONLINE),\n",
    ),
    Mutant(
        "C-36",
        "an online replica can be deleted",
        _STATES,
        "    _R.NON_EXISTENT: (_R.OFFLINE,),\n",
        "    _R.NON_EXISTENT: (_R.OFFLINE, _R.ONLINE),\n",
    ),
    Mutant(
        "C-36 as released",
        "an ineligible replica does not go online",
        _STATES,
        "    _R.ONLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE),\n",
        "    _R.ONLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE),\n",
    ),
    Mutant(
        "C-36 as released",
        "an invalid transition is made",
        _REPLICAS,
        "        return reason is None\n",
        "        return True\n",
    ),
    # Selectors
    Mutant(
        "C-07",
        "the first ISR is the leader alone",
        _SELECTORS,
        "    return SelectedLeader(live[0], live, live) if live else None\n",
        "    return SelectedLeader(live[0], live[:1], live) if live else None\n",
    ),
    Mutant(
        "C-06",
        "the assignment in memory is reversed",
        f"{_OPERATIONS}/creation.py",
        "                context.assignments[partition] = assignment\n                added.append",
        "                assignment = ReplicaAssignment(assignment.replicas[::-1])\n"
        "                context.assignments[partition] = assignment\n                added.append",
    ),
    Mutant(
        "C-08",
        "only the ISR learns of a new leader",
        f"{_TOPICS}/request_batch.py",
        "        self.add_update_metadata(self._context.brokers, [partition])\n",
        "        self.add_update_metadata(leadership.isr, [partition])\n",
    ),
    Mutant(
        "C-09",
        "a dead replica leads a new partition",
        _SELECTORS,
        "    return SelectedLeader(live[0], live, live) if live else None\n",
        "    live = live or partition.assignment.replicas\n"
        "    return SelectedLeader(live[0], live, live) if live else None\n",
    ),
    Mutant(
        "C-15",
        "ties go by the assignment",
        _SELECTORS,
        "    ties_by_isr=True,\n",
        "    ties_by_isr=False,\n",
    ),
    Mutant(
        "C-15 as released",
        "ties go by the ISR",
        _SELECTORS,
        "    ties_by_isr=False,\n",
        "    ties_by_isr=True,\n",
    ),
    Mutant(
        "C-16",
        "unclean elections must be allowed",
        _SELECTORS,
        "    always_unclean=True,\n",
        "    always_unclean=False,\n",
    ),
    Mutant(
        "C-16 as released",
        "any live replica leads",
        _SELECTORS,
        "    always_unclean=False,\n",
        "    always_unclean=True,\n",
    ),
    Mutant(
        "C-17",
        "dead members stay in the ISR",
        _SELECTORS,
        "_within(partition.isr, partition.live), receivers)\n",
        "partition.isr, receivers)\n",
    ),
    Mutant(
        "C-17",
        "the leader is marked as recovering",
        _DIALECT,
        "    marks_recovery=False,\n",
        "    marks_recovery=True,\n",
    ),
    Mutant(
        "C-17 as released",
        "the leader is not marked as recovering",
        _DIALECT,
        "    marks_recovery=True,\n",
        "    marks_recovery=False,\n",
    ),
    Mutant(
        "C-19",
        "a leader of the target must be in the ISR",
        _SELECTORS,
        "    reassigned_in_isr=False,\n",
        "    reassigned_in_isr=True,\n",
    ),
    Mutant(
        "C-19 as released",
        "a leader of the target need not be in the ISR",
        _SELECTORS,
        "    reassigned_in_isr=True,\n",
        "    reassigned_in_isr=False,\n",
    ),
    Mutant(
        "C-21",
        "a preferred replica outside the ISR leads",
        _SELECTORS,
        "    if not replicas or replicas[0] not in partition.isr:\n",
        "    if not replicas:\n",
    ),
    Mutant(
        "C-21",
        "the preferred replica must be alive",
        _SELECTORS,
        "    preferred_alive=False,\n",
        "    preferred_alive=True,\n",
    ),
    Mutant(
        "C-21 as released",
        "a dead preferred replica leads",
        _SELECTORS,
        "    preferred_alive=True,\n",
        "    preferred_alive=False,\n",
    ),
    Mutant(
        "C-23",
        "who takes over at a shutdown must be alive",
        _SELECTORS,
        "    shutdown_alive=False,\n",
        "    shutdown_alive=True,\n",
    ),
    Mutant(
        "C-23 as released",
        "a dead replica takes over at a shutdown",
        _SELECTORS,
        "    shutdown_alive=True,\n",
        "    shutdown_alive=False,\n",
    ),
    Mutant(
        "C-24",
        "the ISR loses one of the brokers that shut down",
        _SELECTORS,
        "    isr = without(partition.isr, shutting_down)\n",
        "    isr = without(partition.isr, sorted(shutting_down)[:1])\n",
    ),
    Mutant(
        "C-24",
        "the ISR keeps a broker that shuts down",
        _SELECTORS,
        "    isr = without(partition.isr, shutting_down)\n",
        "    isr = partition.isr\n",
    ),
    Mutant(
        "C-25",
        "brokers that shut down are informed",
        _SELECTORS,
        "    informs_stopping=False,\n",
        "    informs_stopping=True,\n",
    ),
    Mutant(
        "C-25 as released",
        "brokers that shut down are not informed",
        _SELECTORS,
        "    informs_stopping=True,\n",
        "    informs_stopping=False,\n",
    ),
    # Replicas
    Mutant(
        "C-31",
        "a started replica is not assigned",
        _REPLICAS,
        "                self._assign(replica)\n",
        "                pass\n",
    ),
    Mutant(
        "C-10",
        "a state of a later controller is written over",
        _STORE,
        "        if leadership.controller_epoch > self._context.epoch and not accepts_newer:\n",
        "        if False:\n",
    ),
    *(
        Mutant(
            row,
            "a replica stays in an ISR that changed meanwhile",
            _REPLICAS,
            "            remaining = updates.overtaken\n",
            "            remaining = []\n",
        )
        for row in ("C-34", "C-34 as released")
    ),
    Mutant(
        "C-34 as released",
        "the leader alone is informed",
        _DIALECT,
        "    informs_leader_only=False,\n",
        "    informs_leader_only=True,\n",
    ),
    Mutant(
        "C-34 as released",
        "the last member leaves the ISR",
        _DIALECT,
        "    keeps_sole_member=True,\n",
        "    keeps_sole_member=False,\n",
    ),
    Mutant(
        "C-33",
        "StopReplica leaves last",
        _DIALECT,
        "    stops_first=True,\n",
        "    stops_first=False,\n",
    ),
    Mutant(
        "C-33 as released",
        "StopReplica leaves first",
        _DIALECT,
        "    stops_first=False,\n",
        "    stops_first=True,\n",
    ),
    Mutant(
        "C-34",
        "nobody learns of a replica without a leader that goes offline",
        _REPLICAS,
        "                self._batch.add_update_metadata(context.brokers, [partition])\n",
        "",
    ),
    Mutant(
        "C-35",
        "a deleted replica gets no StopReplica",
        _REPLICAS,
        "                if not self._dialect.deletes_by_states:\n",
        "                if False:\n",
    ),
    # Operations
    Mutant(
        "C-38",
        "replicas are new before their partitions",
        f"{_OPERATIONS}/creation.py",
        "        yield from self._parts.partitions.move(created, PartitionState.NEW)\n"
        "        yield from self._parts.replicas.move(replicas, ReplicaState.NEW)\n",
        "        yield from self._parts.replicas.move(replicas, ReplicaState.NEW)\n"
        "        yield from self._parts.partitions.move(created, PartitionState.NEW)\n",
    ),
    Mutant(
        "C-39",
        "the second of two dead brokers is ignored",
        f"{_OPERATIONS}/brokers.py",
        "        yield from self.lose_replicas(self._context.replicas_on(broker_ids))\n",
        "        yield from self.lose_replicas(self._context.replicas_on(broker_ids[:1]))\n",
    ),
    Mutant(
        "C-40 as released",
        "the other brokers learn last of a new one",
        _DIALECT,
        "    informs_others_first=True,\n",
        "    informs_others_first=False,\n",
    ),
    Mutant(
        "C-41",
        "new partitions are not elected",
        f"{_TOPICS}/partition_machine.py",
        "self._context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)",
        "self._context.partitions_in(PartitionState.OFFLINE)",
    ),
    Mutant(
        "C-41",
        "a broker that was shut down stays excluded",
        f"{_TOPICS}/context.py",
        "        self.shutting_down.discard(broker_id)\n",
        "",
    ),
    Mutant(
        "C-42",
        "only replicas of the target count",
        _DIALECT,
        "    resumes_any_replica=True,\n",
        "    resumes_any_replica=False,\n",
    ),
    Mutant(
        "C-42 as released",
        "any replica counts",
        _DIALECT,
        "    resumes_any_replica=False,\n",
        "    resumes_any_replica=True,\n",
    ),
    Mutant(
        "C-42 as released",
        "only added replicas count",
        _REASSIGNMENT,
        "bool(started & {*assignment.target})",
        "bool(started & {*assignment.adding})",
    ),
    Mutant(
        "C-43",
        "the target comes first",
        _DIALECT,
        "    appends_target=True,\n",
        "    appends_target=False,\n",
    ),
    Mutant(
        "C-43 as released",
        "the old replicas come first",
        _ASSIGNMENT,
        "dict.fromkeys((*target, *origin))",
        "dict.fromkeys((*origin, *target))",
    ),
    *(
        Mutant(
            row,
            "a leader's own write ends the step",
            _PARTS,
            "                self.context.leaderships[partition] = written\n"
            "                return True\n",
            "                self.context.leaderships[partition] = written\n"
            "            return written is not None\n",
        )
        for row in ("C-44", "C-49")
    ),
    Mutant(
        "C-44",
        "nobody learns of a reassignment that needs no copy",
        _REASSIGNMENT,
        "        if not is_complete or self._parts.dialect.takes_all_steps:\n",
        "        if not is_complete:\n",
    ),
    Mutant(
        "C-44 as released",
        "all learn of a reassignment that needs no copy",
        _DIALECT,
        "    takes_all_steps=False,\n",
        "    takes_all_steps=True,\n",
    ),
    Mutant(
        "C-46",
        "a change of the order does not wait",
        _REASSIGNMENT,
        "assignment.is_being_reassigned and not self._parts.dialect.takes_all_steps:\n",
        "assignment.is_being_reassigned:\n",
    ),
    Mutant(
        "C-46 as released",
        "a change of the order waits",
        _REASSIGNMENT,
        "assignment.is_being_reassigned and not self._parts.dialect.takes_all_steps:\n",
        "assignment.replicas:\n",
    ),
    Mutant(
        "C-46",
        "one replica of the target suffices",
        _ASSIGNMENT,
        "{*self.target} <= {*isr}\n",
        "bool({*self.target} & {*isr})\n",
    ),
    Mutant(
        "C-47 as released",
        "the whole target goes online again",
        _DIALECT,
        "    starts_all_target=False,\n",
        "    starts_all_target=True,\n",
    ),
    Mutant(
        "C-49",
        "nobody learns that the leader stays",
        _REASSIGNMENT,
        "            yield from self._raise_epoch(partition)\n        else:\n",
        "            yield from self._parts.raise_leader_epoch(partition)\n        else:\n",
    ),
    Mutant(
        "C-49",
        "a dead leader of the target is replaced",
        _DIALECT,
        "    replaces_dead_leader=False,\n",
        "    replaces_dead_leader=True,\n",
    ),
    Mutant(
        "C-49 as released",
        "a dead leader of the target stays",
        _DIALECT,
        "    replaces_dead_leader=True,\n",
        "    replaces_dead_leader=False,\n",
    ),
    Mutant(
        "C-52",
        "the target is not written",
        _REASSIGNMENT,
        "        yield from self._parts.write_topic(partition.topic, {partition: completed})"
        "  # step 10\n",
        "",
    ),
    Mutant(
        "C-51 as released",
        "deleted replicas have the document's states",
        _DIALECT,
        "    deletes_by_states=True,\n",
        "    deletes_by_states=False,\n",
    ),
    Mutant(
        "C-53 as released",
        "an entry with another target is removed",
        _REASSIGNMENT,
        "or (replicas is not None and entry.replicas != tuple(replicas))\n",
        "or False\n",
    ),
    Mutant(
        "C-65",
        "the target is written before the old replicas are dropped",
        _REASSIGNMENT,
        "        yield from self._lead_from_target(partition)  # step 7\n",
        "        yield from self._parts.write_topic(partition.topic, {partition: completed})\n"
        "        yield from self._lead_from_target(partition)  # step 7\n",
    ),
    Mutant(
        "C-66",
        "the target's first replica is preferred at once",
        _DIALECT,
        "    appends_target=True,\n",
        "    appends_target=False,\n",
    ),
    Mutant(
        "C-58",
        "one live replica learns the leader",
        f"{_OPERATIONS}/failover.py",
        "            yield from machine.move([*live, *dead], ReplicaState.ONLINE)\n",
        "            yield from machine.move([*live[:1], *dead], ReplicaState.ONLINE)\n",
    ),
    Mutant(
        "C-58 as released",
        "the replicas of dead brokers go online",
        _DIALECT,
        "    restarts_dead=False,\n",
        "    restarts_dead=True,\n",
    ),
    Mutant(
        "C-56",
        "the znode has no replicas that are added",
        _DIALECT,
        "    assignment_schema=2,\n",
        "    assignment_schema=1,\n",
    ),
    Mutant(
        "C-56",
        "the target of a request is lost with its controller",
        _DIALECT,
        "    notes_requests=True,\n",
        "    notes_requests=False,\n",
    ),
    Mutant(
        "C-61",
        "partitions start before replicas",
        f"{_OPERATIONS}/failover.py",
        "        yield from self._start_replicas()\n"
        "        parts.partitions.restore_states()\n"
        "        yield from parts.partitions.elect_leaderless()\n",
        "        parts.partitions.restore_states()\n"
        "        yield from parts.partitions.elect_leaderless()\n"
        "        yield from self._start_replicas()\n",
    ),
    Mutant(
        "C-61",
        "leaders are elected after the reassignments",
        f"{_OPERATIONS}/failover.py",
        "        yield from parts.partitions.elect_leaderless()\n"
        "        started = yield from self._reassignments.start_requested()\n"
        "        yield from self._reassignments.resume(context.reassigning - started)\n",
        "        started = yield from self._reassignments.start_requested()\n"
        "        yield from self._reassignments.resume(context.reassigning - started)\n"
        "        yield from parts.partitions.elect_leaderless()\n",
    ),
    Mutant(
        "C-61",
        "unfinished elections are not resumed",
        f"{_OPERATIONS}/failover.py",
        "        yield from self._elections.on_requested()\n",
        "",
    ),
    Mutant(
        "C-63 as released",
        "partitions with one replica are tried",
        _DIALECT,
        "    moves_single=False,\n",
        "    moves_single=True,\n",
    ),
    # KIP-4 as written
    Mutant(
        "A-01",
        "a standby has Kafka's code",
        f"{_KIP_4}/codes.py",
        "NOT_CONTROLLER_FOR_ADMIN_REQUEST: Final = 22\n",
        "NOT_CONTROLLER_FOR_ADMIN_REQUEST: Final = 41\n",
    ),
    Mutant(
        "A-01",
        "the text has no broker id",
        f"{_KIP_4}/codes.py",
        'f"Target broker (id={broker_id}) is not',
        'f"Target broker is not',
    ),
    Mutant(
        "A-02",
        "what nobody expects ends the connection",
        f"{_KIP_4}/api.py",
        "        except MachineExitedError:\n            raise\n"
        "        except Exception as error:\n",
        "        except ValueError as error:\n",
    ),
    Mutant(
        "A-05",
        "an unknown controller is the first broker",
        f"{_KIP_4}/api.py",
        '            "controller": brokers.get(view.controller_id),\n',
        '            "controller": brokers.get(view.controller_id, [*brokers.values()][0]),\n',
    ),
    Mutant(
        "A-47",
        "what nobody expects has its cause alone",
        f"{_KIP_4}/api.py",
        '            reason = f"{UNEXPECTED_ERROR} {type(error).__name__}: {error}"\n',
        '            reason = f"{type(error).__name__}: {error}"\n',
    ),
    Mutant(
        "A-08",
        "neither form creates a topic of one partition",
        f"{_KIP_4}/topic_command.py",
        "        elif partition_count is None or replication_factor is None:\n",
        "        elif partition_count is replication_factor is None:\n"
        "            topic = NewTopic(name, 1, 1, configs=settings)\n"
        "        elif partition_count is None or replication_factor is None:\n",
    ),
    Mutant(
        "A-13",
        "a change is made in part",
        f"{_KIP_4}/topic_command.py",
        "        for validate_only in (True, False):\n",
        "        for validate_only in (False,):\n",
    ),
    Mutant(
        "A-14",
        "a deleted setting is empty",
        f"{_KIP_4}/topic_command.py",
        "        *(ConfigChange(key, ConfigOperation.DELETE, None) for key in deleted),\n",
        '        *(ConfigChange(key, ConfigOperation.SET, "") for key in deleted),\n',
    ),
    Mutant(
        "A-19",
        "the ISR has members outside the replicas",
        f"{_KIP_4}/topic_command.py",
        "for broker_id in leadership.isr if broker_id in replicas)\n",
        "for broker_id in (*leadership.isr, 99))\n",
    ),
    Mutant(
        "A-20",
        "a list that failed is empty",
        f"{_KIP_4}/api.py",
        '    KIP4_LIST_TOPICS: {"topics": None, "marked_for_deletion": None},\n',
        '    KIP4_LIST_TOPICS: {"topics": (), "marked_for_deletion": ()},\n',
    ),
    Mutant(
        "A-21",
        "marked topics are among the living",
        f"{_KIP_4}/topic_command.py",
        "tuple(sorted(context.topics - marked))",
        "tuple(sorted(context.topics))",
    ),
    Mutant(
        "A-23",
        "the valid partitions of a bad string are moved",
        f"{_KIP_4}/replica_commands.py",
        "ReassignRequest(targets, all_or_nothing=True)",
        "ReassignRequest(targets)",
    ),
    Mutant(
        "A-27",
        "completed partitions have no result",
        f"{_KIP_4}/replica_commands.py",
        "                codes[partition] = ReassignmentCode.COMPLETED\n",
        "                pass\n",
    ),
    Mutant(
        "A-28",
        "what runs counts as completed",
        f"{_KIP_4}/codes.py",
        "    IN_PROGRESS = 0\n    COMPLETED = 1\n",
        "    IN_PROGRESS = 1\n    COMPLETED = 0\n",
    ),
    Mutant(
        "A-28",
        "a reassignment that adds replicas is completed at once",
        f"{_KIP_4}/replica_commands.py",
        "            if partition in context.reassigning:\n",
        "            is_whole = context.assignment(partition).replicas == replicas\n"
        "            if partition in context.reassigning and not is_whole:\n",
    ),
    Mutant(
        "A-28",
        "a code that the draft does not have is completed",
        _DRAFT_CLIENT,
        "        return OperationState.IN_PROGRESS\n",
        "        return OperationState.COMPLETED\n",
    ),
    Mutant(
        "A-44",
        "a code is no error",
        "admin/kip4/client.py",
        "    if response.error_code:\n        raise DraftApiError",
        "    if response.error_code > 21:\n        raise DraftApiError",
    ),
    Mutant(
        "A-45",
        "marked topics are listed",
        "admin/kip4/client.py",
        "        return (await self._send(messages.ListTopicsRequestV0())).topics or ()\n",
        "        listed = await self._send(messages.ListTopicsRequestV0())\n"
        "        return (*(listed.topics or ()), *(listed.marked_for_deletion or ()))\n",
    ),
    Mutant(
        "A-46",
        "a future has no response",
        "admin/kip4/client.py",
        '"reassignment")\n        return response\n',
        '"reassignment")\n        return None\n',
    ),
    Mutant(
        "A-48",
        "a failed election has another number",
        "admin/kip4/client.py",
        "    FAILED = -1\n",
        "    FAILED = -2\n",
    ),
    Mutant(
        "A-29",
        "no string elects nobody",
        f"{_KIP_4}/replica_commands.py",
        "        partitions = None\n        if partitions_serialized",
        "        partitions: tuple[TopicPartition, ...] | None = ()\n"
        "        if partitions_serialized",
    ),
    Mutant(
        "A-31",
        "a partition without a leader counts as elected",
        _ELECTION_STATUS,
        "    if leader == preferred:\n",
        "    if leader in (None, preferred):\n",
    ),
    Mutant(
        "A-33",
        "the draft's client drops the settings of TLS",
        _DRAFT_CLIENT,
        "addresses, security=config.security, client_id",
        "addresses, client_id",
    ),
    Mutant(
        "A-33",
        "a client drops the login of its properties",
        "admin/session.py",
        "                properties.security,\n                client_id=",
        "                client_id=",
    ),
    Mutant(
        "A-34",
        "there is no deadline while nodes answer 22",
        _DRAFT_CLIENT,
        '                reason = f"{connection.address}: {_description(response)}"\n',
        '                reason = f"{connection.address}: {_description(response)}"\n'
        "                deadline = self._monotonic() + self._timeout_s\n",
    ),
    Mutant(
        "A-36",
        "an unanswered deletion is sent again",
        _DRAFT_CLIENT,
        _READS,
        _READS.replace("30_404", "30_403, 30_404"),
    ),
    Mutant(
        "A-37",
        "an unanswered reassignment is sent again",
        _DRAFT_CLIENT,
        _READS,
        _READS.replace("30_407", "30_406, 30_407"),
    ),
    Mutant(
        "A-39",
        "an unanswered election is sent again",
        _DRAFT_CLIENT,
        _READS,
        _READS.replace("30_407", "30_407, 30_408"),
    ),
    Mutant(
        "A-39",
        "the election of a dead broker never ends",
        _ELECTION_STATUS,
        "    can_lead = preferred in isr and preferred in running\n",
        "    can_lead = preferred in isr\n",
    ),
    Mutant(
        "A-39",
        "a requested election is lost with its controller",
        f"{_TOPICS}/topic_controller.py",
        "        self._queue(_replying(self._elections.request(partitions), reply))\n",
        "        chosen = [*self.context.assignments] if partitions is None else partitions\n"
        "        reply(dict.fromkeys(chosen, PartitionResult(0)))\n"
        "        self._queue(_replying(self._elections.elect(chosen), lambda _: None))\n",
    ),
    Mutant(
        "A-40",
        "a partition without a leader is in progress for ever",
        _ELECTION_STATUS,
        "    can_lead = preferred in isr and preferred in running\n",
        "    can_lead = leader is None or preferred in isr\n",
    ),
    # KIP-4 as released
    Mutant(
        "A-01 as released",
        "a standby has the draft's code",
        "reference/zookeeper/machines/requests.py",
        "    NOT_CONTROLLER = 41\n",
        "    NOT_CONTROLLER = 22\n",
    ),
    Mutant(
        "A-01 as released",
        "an election whose partitions are refused is not repeated",
        "admin/elections/client.py",
        "NOT_CONTROLLER in (response.error_code, *codes)",
        "NOT_CONTROLLER == response.error_code or codes is None",
    ),
    Mutant(
        "A-08 as released",
        "both forms create a topic",
        f"{_OPERATIONS}/new_topics.py",
        "        if topic.assignments and ",
        "        if False and ",
    ),
    Mutant(
        "A-13 as released",
        "an assignment without a number of partitions is dropped",
        _TOPIC_ADMIN,
        "        if assignment is not None and partitions is None:\n",
        "        if False:\n",
    ),
    Mutant(
        "A-20 as released",
        "an empty list of topics means all",
        "reference/zookeeper/wire/cluster_responses.py",
        "    if requested is None or (request.version == 0 and not requested):\n",
        "    if not requested:\n",
    ),
    Mutant(
        "A-35",
        "a topic is created without its settings",
        _TOPIC_ADMIN,
        "TopicSpec(name, partitions, replication_factor, configs or {}, assignment)",
        "TopicSpec(name, partitions, replication_factor, {}, assignment)",
    ),
    Mutant(
        "A-36 as released",
        "partitions are added though settings were refused",
        _TOPIC_ADMIN,
        "            check_changes(await self.alter_configs({name: settings}))\n",
        "            await self.alter_configs({name: settings})\n",
    ),
    Mutant(
        "A-36 as released",
        "a refused deletion is no error",
        _TOPIC_ADMIN,
        "        check_changes(await self.delete([name]))\n",
        "        await self.delete([name])\n",
    ),
    Mutant(
        "A-36 as released",
        "deleted settings are ignored",
        _TOPIC_ADMIN,
        "        settings += map(SettingChange.delete, deleted)\n",
        "",
    ),
    Mutant(
        "A-37 as released",
        "a reassignment returns at once",
        _REASSIGNMENT_ADMIN,
        "        return await self.wait(targets, max_wait_s=max_wait_s, report=report)\n",
        "        return await self.verify(targets)\n",
    ),
    Mutant(
        "A-37 as released",
        "a refused reassignment is no error",
        _REASSIGNMENT_ADMIN,
        "        if errors := [",
        "        if errors := 0 and [",
    ),
    Mutant(
        "A-38 as released",
        "the order of the replicas does not count",
        _REASSIGNMENT_ADMIN,
        "    if found is not None and found.replicas == replicas:\n",
        "    if found is not None and {*found.replicas} == {*replicas}:\n",
    ),
    Mutant(
        "A-27 as released",
        "what is completed stays in the list",
        _REASSIGNMENT,
        "        context.reassigning.discard(partition)\n",
        "",
    ),
    Mutant(
        "A-30 as released",
        "partitions that have no leader elected have no error",
        "reference/zookeeper/wire/topic_responses.py",
        "                        error_code=shown[partition].error,\n",
        "                        error_code=ErrorCode.NONE,\n",
    ),
)
