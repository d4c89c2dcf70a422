"""The two written forms of the controller's operations as data: one field for each difference.

The document is Kafka Controller Internals, which describes Kafka 0.8; the released form is what
``KafkaController`` of Kafka 2.8 to 3.9 does in ZooKeeper mode.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.partitions.selectors import (
    DOCUMENT_SELECTORS,
    RELEASED_SELECTORS,
    SelectorDialect,
)
from featurewatch.controller.partitions.states import (
    DOCUMENT_PARTITIONS,
    DOCUMENT_REPLICAS,
    RELEASED_PARTITIONS,
    RELEASED_REPLICAS,
    PartitionTransitions,
    ReplicaTransitions,
)
from featurewatch.kafka.operations_form import OperationsForm


@dataclass(frozen=True, slots=True)
class OperationsDialect:
    """One form of the controller's operations.

    - ``partitions``, ``replicas``: the valid transitions; ``selectors``: the rules of elections;
    - ``deletes_by_states``: a replica is deleted through the three deletion states; else by the
      transition from offline to non-existent;
    - ``stops_first``: a replica that goes offline gets StopReplica before it leaves the ISR; else
      StopReplica leaves last, after the requests to the others;
    - ``informs_leader_only``: after a replica leaves the ISR, only the leader is informed; else all
      other replicas are, even if nothing was written;
    - ``keeps_sole_member``: the last member of the ISR stays in it when it goes offline;
    - ``marks_recovery``: an unclean election marks the leader as recovering;
    - ``assignment_schema``: the schema of the topic's znode; from 2 on it has the adding and
      removing replicas, from 3 on the topic's id. The document names no schema: with 2 the replicas
      before a reassignment (OAR) can be read from the znode even if the target has some of them;
    - ``appends_target``: during a reassignment the present replicas come first and the added ones
      last; else the target comes first;
    - ``takes_all_steps``: every reassignment informs its replicas and waits for the ISR; else one
      whose target is in the ISR already informs nobody before it completes, and one that changes
      the order alone waits for nothing;
    - ``notes_requests``: the target of each reassignment is kept in ``/admin/reassign_partitions``
      until it is complete, also if the request came otherwise; else only where it came that way;
    - ``resumes_any_replica``: a broker that starts continues the reassignments of all partitions
      with a replica on it; else of those with a replica of the target on it;
    - ``restarts_dead``: at the start of a controller the replicas of dead brokers become online
      too; else they become offline;
    - ``starts_all_target``: a completing reassignment sets all target replicas online; else only
      the added ones;
    - ``replaces_dead_leader``: a completing reassignment elects a leader also if the present one is
      in the target and dead;
    - ``moves_single``: a controlled shutdown also handles partitions with one replica;
    - ``informs_others_first``: when brokers start, the others learn of them before anything else;
    - ``fences_fetches``: brokers refuse fetches of followers with another leader epoch (since 2.1);
      else a follower that was not informed of an epoch continues.
    """

    name: OperationsForm
    partitions: PartitionTransitions
    replicas: ReplicaTransitions
    selectors: SelectorDialect
    deletes_by_states: bool
    stops_first: bool
    informs_leader_only: bool
    keeps_sole_member: bool
    marks_recovery: bool
    assignment_schema: int
    appends_target: bool
    takes_all_steps: bool
    notes_requests: bool
    resumes_any_replica: bool
    restarts_dead: bool
    starts_all_target: bool
    replaces_dead_leader: bool
    moves_single: bool
    informs_others_first: bool
    fences_fetches: bool


DOCUMENT_OPERATIONS: Final = OperationsDialect(
    name=OperationsForm.DOCUMENT,
    partitions=DOCUMENT_PARTITIONS,
    replicas=DOCUMENT_REPLICAS,
    selectors=DOCUMENT_SELECTORS,
    deletes_by_states=False,
    stops_first=True,
    informs_leader_only=True,
    keeps_sole_member=False,
    marks_recovery=False,
    assignment_schema=2,
    appends_target=True,
    takes_all_steps=True,
    notes_requests=True,
    resumes_any_replica=True,
    restarts_dead=True,
    starts_all_target=True,
    replaces_dead_leader=False,
    moves_single=True,
    informs_others_first=False,
    fences_fetches=False,
)

RELEASED_OPERATIONS: Final = OperationsDialect(
    name=OperationsForm.RELEASED,
    partitions=RELEASED_PARTITIONS,
    replicas=RELEASED_REPLICAS,
    selectors=RELEASED_SELECTORS,
    deletes_by_states=True,
    stops_first=False,
    informs_leader_only=False,
    keeps_sole_member=True,
    marks_recovery=True,
    assignment_schema=3,
    appends_target=False,
    takes_all_steps=False,
    notes_requests=False,
    resumes_any_replica=False,
    restarts_dead=False,
    starts_all_target=False,
    replaces_dead_leader=True,
    moves_single=False,
    informs_others_first=True,
    fences_fetches=True,
)

OPERATIONS_DIALECTS: Final[Mapping[OperationsForm, OperationsDialect]] = {
    dialect.name: dialect for dialect in (RELEASED_OPERATIONS, DOCUMENT_OPERATIONS)
}
