"""An engine for tests: takes in events as the worker does, and may be killed between any rows."""

from collections.abc import Mapping, Sequence
from random import Random

from featurewatch.controller.monitor import MonitorState, StepResult, step
from featurewatch.controller.readiness import DEFAULT_LIMITS
from featurewatch.controller.rows import rows_of_step, states_of_rows
from featurewatch.controller.snapshot import snapshot
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.sources import MessagePosition
from tests.simulation.auditor import Auditor
from tests.simulation.records import CLUSTER
from tests.simulation.world import World

Output = FeatureChange | Alert | Snapshot
EncodedOutput = tuple[str, bytes]


class Engine:
    """A state, the table's rows, and all that was said; nothing else survives `restart`."""

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
        """Forget everything but the rows."""
        found = states_of_rows(self.rows.items())
        self.state = found.get(self.cluster, MonitorState.of(self.cluster))

    def apply(
        self, event: Event, rows_written: int | None = None, offset: int | None = None
    ) -> StepResult:
        """Say, then keep; with ``rows_written`` the process dies after so many rows.

        ``offset`` is where the event stands on a topic, if it comes from there.
        """
        delivery = None if offset is None else MessagePosition("topic", offset, offset)
        outcome = step(self.state, event, delivery, self.limits)
        if self.auditor is not None:
            self.auditor.check(self.state, outcome, event)
        self.published += encoded_outputs(outcome)
        rows = rows_of_step(self.state, outcome) if outcome.state is not self.state else []
        for key, value in rows if rows_written is None else rows[:rows_written]:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        if rows_written is None:
            self.state = outcome.state
        else:
            self.restart()
        return outcome

    def apply_all(self, events: Sequence[Event], first: int | None = None) -> None:
        """Take in events in order, from one topic.

        The first of them stands at offset ``first``, or follows what was taken from there before.
        """
        for offset, event in enumerate(events, start=self.end if first is None else first):
            self.apply(event, offset=offset)
            self.end = max(self.end, offset + 1)


def encoded_outputs(outcome: StepResult) -> list[EncodedOutput]:
    """Each output's id (the ``ce_id``), and its value as it goes to the topic."""
    outputs: list[Output] = [*outcome.changes, *outcome.alerts]
    if outcome.snapshot is not None:
        outputs.append(outcome.snapshot)
    found = []
    for output in outputs:
        message = encode_output(output)
        found.append((dict(message.headers)["ce_id"].decode(), message.value or b""))
    return found


def rows_of(state: MonitorState, event: Event) -> int:
    """How many rows taking in an event writes."""
    outcome = step(state, event)
    return 0 if outcome.state is state else len(rows_of_step(state, outcome))


def simulated_outputs(seeds: range) -> list[Output]:
    """What is said of some simulated clusters, and their newest states."""
    outputs: list[Output] = []
    for seed in seeds:
        engine = Engine()
        for event in World(Random(seed)).history(steps=20):
            outcome = engine.apply(event)
            outputs += [*outcome.changes, *outcome.alerts]
            outputs += [outcome.snapshot] if outcome.snapshot else []
        outputs.append(snapshot(engine.state.image, 5))
    return outputs
