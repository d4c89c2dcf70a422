"""More bugs of the rows about the controller's internals (C), for `tests.mutants`; a list."""

# ruff: noqa: E501 - lines of the product, as they are there

from typing import Final

from tests.mutants.mutant import Mutant

_TOPICS: Final = "reference/zookeeper/machines/topics"
_OPERATIONS: Final = f"{_TOPICS}/operations"
_CONTROLLER: Final = f"{_TOPICS}/topic_controller.py"
_CREATION: Final = f"{_OPERATIONS}/creation.py"
_BROKERS: Final = f"{_OPERATIONS}/brokers.py"
_FAILOVER: Final = f"{_OPERATIONS}/failover.py"
_REASSIGNMENT: Final = f"{_OPERATIONS}/reassignment.py"
_DELETION: Final = f"{_OPERATIONS}/deletion.py"
_LEADERS: Final = f"{_OPERATIONS}/leaders.py"
_PARTITIONS: Final = f"{_TOPICS}/partition_machine.py"
_REPLICAS: Final = f"{_TOPICS}/replica_machine.py"
_STORE: Final = f"{_TOPICS}/state_store.py"
_DIALECT: Final = f"{_TOPICS}/dialect.py"
_SELECTORS: Final = "controller/partitions/selectors.py"
_STATES: Final = "controller/partitions/states.py"
_ASSIGNMENT: Final = "controller/partitions/assignment.py"

_UPDATED: Final = (
    "            self._context.partition_states.update(dict.fromkeys(valid, target))\n"
)
_FOLLOWED: Final = "        yield from parts.replicas.move(replicas, ReplicaState.OFFLINE)\n"

INTERNALS_MUTANTS: Final = (
    # The controller
    Mutant(
        "C-01",
        "a deposed controller performs what is queued",
        _CONTROLLER,
        "        if not self.active or self.context.epoch != epoch:\n",
        "        if not self.active:\n",
    ),
    Mutant(
        "C-01",
        "a deposed controller writes",
        _STORE,
        "            outcomes = yield tuple(Multi((fence, operations[index])) for index in open_indexes)\n",
        "            outcomes = yield tuple(Multi((operations[index],)) for index in open_indexes)\n",
    ),
    # Partitions
    Mutant(
        "C-02",
        "a partition that was never created is offline",
        _PARTITIONS,
        "states.setdefault(partition, PartitionState.NON_EXISTENT)",
        "states.setdefault(partition, PartitionState.OFFLINE)",
    ),
    Mutant(
        "C-03",
        "a new partition is elected at once",
        _PARTITIONS,
        _UPDATED,
        _UPDATED + "            if target is PartitionState.NEW:\n"
        "                yield from self._initialize(valid, failures)\n",
    ),
    Mutant(
        "C-04",
        "a partition with a leader is not online",
        _PARTITIONS,
        "        self._context.partition_states[partition] = PartitionState.ONLINE\n",
        "",
    ),
    Mutant(
        "C-05",
        "a partition whose leader dies stays online",
        _BROKERS,
        "        yield from parts.partitions.move("
        "context.leaderless_partitions(), PartitionState.OFFLINE)\n",
        "",
    ),
    Mutant(
        "C-05 as released",
        "a partition of a deleted topic skips offline",
        _DELETION,
        "        yield from self._parts.partitions.move(partitions, PartitionState.OFFLINE)\n",
        "",
    ),
    Mutant(
        "C-09 as released",
        "a failed election is not logged",
        _PARTITIONS,
        '            self._emit(WriteLog(f"partition {partition} cannot be {target}: {reason}", True))\n',
        "            pass\n",
    ),
    Mutant(
        "C-11",
        "all replicas get LeaderAndIsr",
        _PARTITIONS,
        "        self._batch.add_leader_and_isr(receivers, partition, is_new=is_new)\n",
        "        receivers = self._context.assignment(partition).replicas\n"
        "        self._batch.add_leader_and_isr(receivers, partition, is_new=is_new)\n",
    ),
    Mutant(
        "C-12",
        "all learn of a partition that goes offline",
        _PARTITIONS,
        _UPDATED,
        _UPDATED + "            if target is PartitionState.OFFLINE:\n"
        "                self._batch.add_update_metadata(self._context.brokers, valid)\n"
        "                self._batch.send()\n",
    ),
    Mutant(
        "C-13",
        "the leadership of a deleted partition is forgotten",
        _PARTITIONS,
        _UPDATED,
        _UPDATED + "            if target is PartitionState.NON_EXISTENT:\n"
        "                for partition in valid:\n"
        "                    self._context.leaderships.pop(partition, None)\n",
    ),
    # Selectors
    Mutant(
        "C-18",
        "dead replicas get LeaderAndIsr",
        _SELECTORS,
        "    receivers = _within(partition.assignment.replicas, partition.live)\n"
        "    leader = _first(dialect, partition, partition.live)\n",
        "    receivers = partition.assignment.replicas\n"
        "    leader = _first(dialect, partition, partition.live)\n",
    ),
    Mutant(
        "C-20",
        "only live replicas of the target are informed",
        _SELECTORS,
        "SelectedLeader(candidates[0], partition.isr, target) if",
        "SelectedLeader(candidates[0], partition.isr, candidates) if",
    ),
    Mutant(
        "C-20",
        "the ISR loses the old replicas at once",
        _SELECTORS,
        "SelectedLeader(candidates[0], partition.isr, target) if",
        "SelectedLeader(candidates[0], _within(partition.isr, target), target) if",
    ),
    Mutant(
        "C-22",
        "only live replicas learn the preferred leader",
        _SELECTORS,
        "    return SelectedLeader(replicas[0], partition.isr, replicas)\n",
        "    receivers = _within(replicas, partition.live)\n"
        "    return SelectedLeader(replicas[0], partition.isr, receivers)\n",
    ),
    Mutant(
        "C-23",
        "another broker that shuts down takes over",
        _SELECTORS,
        "    leader = _first(dialect, partition, present - shutting_down)\n",
        "    leader = _first(dialect, partition, present)\n",
    ),
    # Replicas
    Mutant(
        "C-26",
        "the leader becomes new",
        _REPLICAS,
        "                if leadership is not None and leadership.leader == broker_id:\n",
        "                if False:\n",
    ),
    Mutant(
        "C-27",
        "a started replica is new",
        _REPLICAS,
        "                    self._batch.add_leader_and_isr([broker_id], partition, is_new=False)\n",
        "                    self._batch.add_leader_and_isr([broker_id], partition, is_new=True)\n",
    ),
    Mutant(
        "C-28",
        "the replica of a dead broker stays online",
        _REPLICAS,
        "            context.replica_states[PartitionReplica(partition, broker_id)] = "
        "ReplicaState.OFFLINE\n",
        "",
    ),
    Mutant(
        "C-28 as released",
        "a failed log directory counts for nothing",
        _BROKERS,
        "                failed.add(partition)\n",
        "                pass\n",
    ),
    Mutant(
        "C-29",
        "a deleted replica stays assigned",
        _REPLICAS,
        "            self._context.assignments[partition] = remaining\n",
        "            del remaining\n",
    ),
    Mutant(
        "C-30",
        "a new replica is not marked as new",
        _REPLICAS,
        "                    self._batch.add_leader_and_isr([broker_id], partition, is_new=True)\n",
        "                    self._batch.add_leader_and_isr([broker_id], partition, is_new=False)\n",
    ),
    Mutant(
        "C-32",
        "a replica that was offline gets nothing",
        _REPLICAS,
        "            case ReplicaState.ONLINE:\n                if leadership is not None:\n",
        "            case ReplicaState.ONLINE:\n"
        "                if leadership is not None and state is ReplicaState.ONLINE:\n",
    ),
    Mutant(
        "C-32 as released",
        "an ineligible replica does not go online",
        _STATES,
        "    _R.ONLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE, _R.DELETION_INELIGIBLE),\n",
        "    _R.ONLINE: (_R.NEW, _R.ONLINE, _R.OFFLINE),\n",
    ),
    Mutant(
        "C-35 as released",
        "a deleted replica has the document's states",
        _DIALECT,
        "    deletes_by_states=True,\n",
        "    deletes_by_states=False,\n",
    ),
    # Operations
    Mutant(
        "C-37",
        "only the first partition of new topics starts",
        _CREATION,
        "        yield from self.leave_controllers(added)\n"
        "        yield from self.start_partitions(added)\n",
        "        yield from self.leave_controllers(added)\n"
        "        yield from self.start_partitions(added[:1])\n",
    ),
    Mutant(
        "C-38",
        "replicas are online before their partitions",
        _CREATION,
        "        yield from self._parts.partitions.move(created, PartitionState.ONLINE)\n"
        "        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)\n",
        "        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)\n"
        "        yield from self._parts.partitions.move(created, PartitionState.ONLINE)\n",
    ),
    Mutant(
        "C-39",
        "new partitions are not elected when a broker dies",
        _PARTITIONS,
        "self._context.partitions_in(PartitionState.OFFLINE, PartitionState.NEW)",
        "self._context.partitions_in(PartitionState.OFFLINE)",
    ),
    Mutant(
        "C-40",
        "new brokers learn of the partitions last",
        _BROKERS,
        "        parts.send_metadata(broker_ids, led)\n"
        "        replicas = context.replicas_on(broker_ids)\n"
        "        yield from parts.replicas.move(replicas, ReplicaState.ONLINE)\n",
        "        replicas = context.replicas_on(broker_ids)\n"
        "        yield from parts.replicas.move(replicas, ReplicaState.ONLINE)\n"
        "        parts.send_metadata(broker_ids, led)\n",
    ),
    Mutant(
        "C-41",
        "followers on a new broker get nothing",
        _BROKERS,
        "        yield from parts.replicas.move(replicas, ReplicaState.ONLINE)\n"
        "        yield from parts.partitions.elect_leaderless()\n"
        "        yield from self._reassignments",
        "        yield from parts.partitions.elect_leaderless()\n"
        "        yield from self._reassignments",
    ),
    Mutant(
        "C-44",
        "the old replicas do not learn of the reassignment",
        _REASSIGNMENT,
        "            batch.add_leader_and_isr(assignment.origin, partition, is_new=False)\n",
        "",
    ),
    Mutant(
        "C-44 as released",
        "the added replicas do not learn of the reassignment",
        _REASSIGNMENT,
        "            batch.add_leader_and_isr(assignment.adding, partition, is_new=True)\n",
        "",
    ),
    Mutant(
        "C-45",
        "the added replicas do not become new",
        _REASSIGNMENT,
        "            yield from self._parts.replicas.move([replica], ReplicaState.NEW)  # step 3\n",
        "            del replica\n",
    ),
    Mutant(
        "C-47",
        "only the added replicas go online",
        _DIALECT,
        "    starts_all_target=True,\n",
        "    starts_all_target=False,\n",
    ),
    Mutant(
        "C-48",
        "the target is in ZooKeeper at once",
        _REASSIGNMENT,
        "        context.assignments[partition] = completed  # step 6\n",
        "        context.assignments[partition] = completed\n"
        "        yield from self._parts.write_topic(partition.topic, {partition: completed})\n",
    ),
    Mutant(
        "C-48",
        "the assignment in memory stays",
        _REASSIGNMENT,
        "        context.assignments[partition] = completed  # step 6\n",
        "",
    ),
    Mutant(
        "C-48",
        "the assignment changes before the target is online",
        _REASSIGNMENT,
        "        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)  # step 5\n"
        "        completed = ReplicaAssignment(assignment.target)\n"
        "        context.assignments[partition] = completed  # step 6\n",
        "        completed = ReplicaAssignment(assignment.target)\n"
        "        context.assignments[partition] = completed  # step 6\n"
        "        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)  # step 5\n",
    ),
    Mutant(
        "C-50",
        "the old replicas stay in the ISR",
        _REPLICAS,
        "        isr = without(state.isr, [broker_id])\n",
        "        isr = state.isr\n",
    ),
    Mutant(
        "C-51",
        "the old replicas are stopped and not deleted",
        _REASSIGNMENT,
        "        for state in (*states, ReplicaState.NON_EXISTENT):\n",
        "        for state in states:\n",
    ),
    Mutant(
        "C-53",
        "a completed reassignment stays requested",
        _REASSIGNMENT,
        "        yield from self._forget([partition], completed.replicas)  # step 11\n",
        "",
    ),
    Mutant(
        "C-54",
        "the target alone learns that a reassignment is complete",
        _REASSIGNMENT,
        "        self._parts.send_metadata(context.registered_brokers, [partition])  # step 12\n",
        "        self._parts.send_metadata(completed.replicas, [partition])\n",
    ),
    Mutant(
        "C-55",
        "the ISR is the target when its leader is elected",
        _SELECTORS,
        "SelectedLeader(candidates[0], partition.isr, target) if",
        "SelectedLeader(candidates[0], _within(partition.isr, target), target) if",
    ),
    Mutant(
        "C-55 as released",
        "the old replicas come first",
        _ASSIGNMENT,
        "dict.fromkeys((*target, *origin))",
        "dict.fromkeys((*origin, *target))",
    ),
    Mutant(
        "C-66 as released",
        "the first of the old replicas stays the preferred one",
        _ASSIGNMENT,
        "dict.fromkeys((*target, *origin))",
        "dict.fromkeys((*origin, *target))",
    ),
    *(
        Mutant(
            row,
            "the next controller does not resume",
            _FAILOVER,
            "        yield from self._reassignments.resume(context.reassigning - started)\n",
            "",
        )
        for row in ("C-56", "C-61")
    ),
    Mutant(
        "C-57",
        "replicas of dead brokers begin online",
        _REPLICAS,
        "= ReplicaState.ONLINE if is_online else dead\n",
        "= ReplicaState.ONLINE if is_online else ReplicaState.ONLINE\n",
    ),
    Mutant(
        "C-57 as released",
        "replicas of dead brokers begin offline",
        _REPLICAS,
        "            ReplicaState.DELETION_INELIGIBLE\n            if self._dialect",
        "            ReplicaState.OFFLINE\n            if self._dialect",
    ),
    Mutant(
        "C-59",
        "a partition whose leader is dead begins online",
        _PARTITIONS,
        "            elif context.is_online(leadership.leader, partition):\n",
        "            elif True:\n",
    ),
    Mutant(
        "C-59",
        "a partition without a state begins offline",
        _PARTITIONS,
        "                state = PartitionState.NEW\n",
        "                state = PartitionState.OFFLINE\n",
    ),
    Mutant(
        "C-60",
        "a new controller elects nobody",
        _FAILOVER,
        "        yield from parts.partitions.elect_leaderless()\n",
        "",
    ),
    Mutant(
        "C-62",
        "a request elects for all partitions",
        f"{_OPERATIONS}/elections.py",
        "            yield from self.elect(decode_preferred_elections(result.data))\n",
        "            decode_preferred_elections(result.data)\n"
        "            yield from self.elect([*self._context.assignments])\n",
    ),
    Mutant(
        "C-63",
        "partitions with one replica are left alone",
        _DIALECT,
        "    moves_single=True,\n",
        "    moves_single=False,\n",
    ),
    Mutant(
        "C-64",
        "followers on a broker that shuts down stay online",
        _LEADERS,
        _FOLLOWED,
        "",
    ),
    Mutant(
        "C-64",
        "followers on a broker that shuts down are deleted",
        _LEADERS,
        "            parts.batch.add_stop_replica(broker_id, partition, deletes=False)\n",
        "            parts.batch.add_stop_replica(broker_id, partition, deletes=True)\n",
    ),
    Mutant(
        "C-67",
        "partitions start before replicas",
        _FAILOVER,
        "        yield from self._start_replicas()\n"
        "        parts.partitions.restore_states()\n"
        "        yield from parts.partitions.elect_leaderless()\n",
        "        parts.partitions.restore_states()\n"
        "        yield from parts.partitions.elect_leaderless()\n"
        "        yield from self._start_replicas()\n",
    ),
    Mutant(
        "C-15",
        "the document's controller has Kafka's selectors",
        _DIALECT,
        "    selectors=DOCUMENT_SELECTORS,\n",
        "    selectors=RELEASED_SELECTORS,\n",
    ),
    Mutant(
        "C-16",
        "the document's controller allows no unclean election",
        _DIALECT,
        "    selectors=DOCUMENT_SELECTORS,\n",
        "    selectors=__import__('dataclasses').replace(DOCUMENT_SELECTORS, always_unclean=False),\n",
    ),
    Mutant(
        "C-19",
        "the document's controller takes a target in the ISR",
        _DIALECT,
        "    selectors=DOCUMENT_SELECTORS,\n",
        "    selectors=__import__('dataclasses').replace(DOCUMENT_SELECTORS, reassigned_in_isr=True),\n",
    ),
    Mutant(
        "C-21",
        "the document's controller takes a live preferred replica",
        _DIALECT,
        "    selectors=DOCUMENT_SELECTORS,\n",
        "    selectors=__import__('dataclasses').replace(DOCUMENT_SELECTORS, preferred_alive=True),\n",
    ),
    Mutant(
        "C-23",
        "the document's controller takes a live member at a shutdown",
        _DIALECT,
        "    selectors=DOCUMENT_SELECTORS,\n",
        "    selectors=__import__('dataclasses').replace(DOCUMENT_SELECTORS, shutdown_alive=True),\n",
    ),
    Mutant(
        "C-49",
        "a leader outside of the target stays",
        _REASSIGNMENT,
        "        keeps_leader = leader in context.assignment(partition).replicas and (\n",
        "        keeps_leader = leader is not None and (\n",
    ),
)
