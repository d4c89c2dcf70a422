"""An engine for tests: applies events as the worker does, and can be killed between any two
rows."""

from collections.abc import Mapping, Sequence
from random import Random

from featurewatch.controller.partitions.kraft_election import PartitionChange
from featurewatch.monitor.readiness import DEFAULT_LIMITS
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.monitor.rows import rows_of_step, states_of_rows
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState, StepResult, step
from featurewatch.streams.codec.outputs import Output, encode_output
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, Operation
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.sources import MessagePosition
from tests.simulation.auditor import Auditor
from tests.simulation.controller_log import ControllerLog, change_record
from tests.simulation.records import CLUSTER, following
from tests.simulation.world import World

EncodedOutput = tuple[str, bytes]


class Engine:
    """A state, the table's rows, and all published outputs; nothing else survives `restart`."""

    def __init__(
        self, rows: Mapping[str, bytes] | None = None, cluster: ClusterId = CLUSTER
    ) -> None:
        self.cluster = cluster
        self.rows: dict[str, bytes] = dict(rows or {})
        self.published: list[EncodedOutput] = []
        self.end = 0
        self.state = MonitorState.of(cluster)
        self.auditor: Auditor | None = None
        self.limits = DEFAULT_LIMITS
        if self.rows:
            self.restart()

    def restart(self) -> None:
        """Restores the state from the rows."""
        states = states_of_rows(self.rows.items())
        self.state = states.get(self.cluster, MonitorState.of(self.cluster))

    def apply(
        self, event: Event, rows_written: int | None = None, offset: int | None = None
    ) -> StepResult:
        """Publishes, then persists; with ``rows_written`` the process is killed after that many
        rows.

        ``offset`` is that of the event on its topic (None: it comes from no topic).
        """
        delivery = None if offset is None else MessagePosition("topic", offset, event.seen_ms)
        result = step(self.state, event, delivery, self.limits)
        if self.auditor is not None:
            self.auditor.check(self.state, result, event)
        self.published += encoded_outputs(result)
        rows = rows_of_step(self.state, result) if result.state is not self.state else []
        for key, value in rows if rows_written is None else rows[:rows_written]:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        if rows_written is None:
            self.state = result.state
        else:
            self.restart()
        return result

    def apply_all(self, events: Sequence[Event], first: int | None = None) -> None:
        """Applies events of one topic in order.

        The first event has offset ``first``, or follows the last event applied so far.
        """
        for offset, event in enumerate(events, start=self.end if first is None else first):
            self.apply(event, offset=offset)
            self.end = max(self.end, offset + 1)


def encoded_outputs(result: StepResult) -> list[EncodedOutput]:
    """Each output's id (the ``ce_id``) and its encoded value."""
    outputs: list[Output] = [*result.changes, *result.alerts]
    if result.snapshot is not None:
        outputs.append(result.snapshot)
    encoded = []
    for output in outputs:
        message = encode_output(output)
        encoded.append((dict(message.headers)["ce_id"].decode(), message.value or b""))
    return encoded


def rows_of(state: MonitorState, event: Event) -> int:
    """The number of rows that applying an event writes."""
    result = step(state, event)
    return 0 if result.state is state else len(rows_of_step(state, result))


def simulated_outputs(seeds: range) -> list[Output]:
    """The outputs of some simulated clusters, and their last states."""
    outputs: list[Output] = []
    for seed in seeds:
        engine = Engine()
        engine.limits = Limits(quorum_ms=1)
        for event in World(Random(seed)).history(steps=20):
            outputs += engine.apply(event).outputs
        outputs += _outputs_of_operations(seed)
        outputs.append(snapshot(engine.state.image, 5))
    return outputs


def _outputs_of_operations(seed: int) -> list[Output]:
    """The operations of a simulated controller and the alerts about partitions, one of a fault."""
    log, engine = ControllerLog(seed), Engine()
    engine.limits = Limits(operations=True, below_min_isr_ms=1, not_preferred_ms=1)
    start = log.start()
    events: list[Event] = [start, following(start.last_offset, seen_ms=log.now_ms)]
    events += [commit for _ in range(20) if (commit := log.step()) is not None]
    for topic_id, topic in log.topics.items():
        replica = topic.partitions[0].replicas[:1]
        fault = PartitionChange(adding=replica, removing=replica)
        events.append(log.commit([change_record(topic_id, 0, fault)]))
    outputs = (output for event in events for output in engine.apply(event).outputs)
    return [
        output
        for output in outputs
        if isinstance(output, Operation)
        or (isinstance(output, Alert) and "partitions" in output.subject)
    ]
