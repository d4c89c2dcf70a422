"""A fault, and a run of it: changes under way, the fault, its end, and what came of it."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from tests.faults.stack import Stack, Watch, by_controllers
from tests.faults.traffic import Traffic
from tests.faults.verdict import Outputs, Verdict, compare

RECOVERY_S: Final = 90.0
"""A stack that has published nothing new after this time counts as never recovered."""

_CATCH_UP_S: Final = 60.0
_SETTLE_S: Final = 30.0
_CHANGES: Final = 3


class UnavailableError(Exception):
    """The fault cannot be made on this machine; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the table.

    - ``inject`` does it when entered, and undoes it when left; changes continue meanwhile;
    - ``hold_s``: how long it lasts at least, with at least three changes in it; 0 as well for what
      is over as soon as it is done;
    - ``limit_s``: within so long after its end a new change is published;
    - ``may_fire``: rules that have a reason to fire while it lasts;
    - ``must_fire``: rules that must fire, because users could not see the fault otherwise;
    - ``may_stay``: rules that continue to fire for minutes after its end, as their texts say;
    - ``may_lose``: changes cannot be recovered; ``messages-lost`` must fire;
    - ``may_end``: processes may end on their own, and be started again;
    - ``settle_s``: after this time nothing fires any more;
    - ``store``, ``environment``: of the worker, and of both, where they differ;
    - ``tls``: source and worker reach the bus by TLS;
    - ``watch``: the options by which the source watches the cluster;
    - ``ensemble``: a cluster in ZooKeeper mode is watched;
    - ``split``: a cluster of a controller and a broker is watched;
    - ``pipeline``: the pipeline runs too, and the verdict is on what the lake has;
    - ``quick``: it belongs to the part that ``make nightly`` runs;
    - ``patience``: by which factor deadlines are longer than usual, on a busy machine.
    """

    name: str
    about: str
    inject: Callable[[Stack], AbstractContextManager[object]]
    hold_s: float = 2.0
    limit_s: float = 30.0
    may_fire: tuple[str, ...] = ()
    must_fire: tuple[str, ...] = ()
    may_stay: tuple[str, ...] = ()
    may_lose: bool = False
    may_end: bool = False
    settle_s: float = _SETTLE_S
    changes: int = _CHANGES
    store: str = "memory"
    environment: Mapping[str, str] = field(default_factory=dict)
    tls: bool = False
    watch: Watch = by_controllers
    pipeline: bool = False
    ensemble: bool = False
    split: bool = False
    quick: bool = False
    patience: float = 1.0

    @property
    def setup(self) -> tuple[object, ...]:
        """Rows of equal setup can share a running stack."""
        kind = self.tls, self.pipeline, self.ensemble, self.split, self.watch.__name__
        return self.store, tuple(self.environment.items()), *kind


def play(stack: Stack, fault: Fault, seed: int) -> Verdict:
    """One run of a row on a stack where all is well; leaves it running."""
    first_alert = len(stack.reader.outputs.alerts)
    stack.ends.clear()
    stack.notes.clear()
    with Traffic(stack.set_level, seed) as traffic:
        with fault.inject(stack):
            traffic.wait(fault.changes, fault.hold_s)
        recovered_s = _recovered_s(stack, traffic, RECOVERY_S * fault.patience)
    catch_up_s = _CATCH_UP_S * fault.patience
    if recovered_s is not None:
        _wait_marker(stack, traffic, catch_up_s)
    truth = stack.truth()
    stack.wait_outputs(truth, catch_up_s if recovered_s is not None else 1.0)
    settle_s = fault.settle_s * fault.patience
    stack.reader.wait(lambda _: not set(stack.reader.firing) - {*fault.may_stay}, settle_s)
    return compare(
        truth,
        stack.reader.outputs,
        may_fire=(*fault.may_fire, *fault.must_fire),
        must_fire=fault.must_fire,
        may_stay=fault.may_stay,
        may_lose=fault.may_lose,
        recovered_s=recovered_s,
        limit_s=fault.limit_s * fault.patience,
        notes=sorted({*stack.notes, *(() if fault.may_end else stack.ends)}),
        first_alert=first_alert,
    )


def _recovered_s(stack: Stack, traffic: Traffic, timeout_s: float) -> float | None:
    """From now until a change that is made now has been published; None: not in time."""
    start_s = time.monotonic()
    came = _wait_marker(stack, traffic, timeout_s)
    return round(time.monotonic() - start_s, 1) if came else None


def _wait_marker(stack: Stack, traffic: Traffic, timeout_s: float) -> bool:
    # The cluster's own epoch grows with each change: an older one that is published again has less.
    epoch = max((change["epoch"] for change in stack.reader.outputs.changes), default=-1)
    feature, level = traffic.mark()

    def came(outputs: Outputs) -> bool:
        return any(
            (change["feature"], change["after"]) == (feature, level) and change["epoch"] > epoch
            for change in outputs.changes
        )

    return stack.reader.wait(came, timeout_s)
