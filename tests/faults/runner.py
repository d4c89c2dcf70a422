"""Runs rows, several times each, on stacks that are shared as long as all is well."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.kafka.cluster import Cluster
from tests.faults.ensemble import EnsembleStack, WatchedEnsemble, running_ensemble
from tests.faults.fault import Fault, UnavailableError, play
from tests.faults.lake import PipelineStack
from tests.faults.servers import Servers, running_servers
from tests.faults.split import SplitStack, split_cluster
from tests.faults.stack import Stack
from tests.faults.table import Row
from tests.faults.verdict import Verdict
from tests.process_logs import started

_FIRST_READ_S: Final = 600.0

Report = Callable[[str], None]


class Runner:
    """Servers, and a stack on them, which is recreated after a row that did not hold."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers_stack = ExitStack()
        self._servers: Servers | None = None
        self._watched: WatchedEnsemble | None = None
        self._split: Cluster | None = None
        self._stack_stack = ExitStack()
        self._stack: Stack | None = None
        self._setup: tuple[object, ...] | None = None

    def close(self) -> None:
        """Ends everything."""
        self._drop_stack()
        self._servers_stack.close()
        self._servers = self._watched = self._split = None

    def play(self, fault: Fault, seed: int) -> Verdict:
        """One run of a row.

        Raises:
            UnavailableError: this machine cannot make the fault.
        """
        try:
            stack = self._stack_for(fault)
            verdict = play(stack, fault, seed)
        except UnavailableError:
            self._drop_stack()
            raise
        except Exception as error:
            # What a fault leaves behind may be anything: the next row gets other servers.
            self.close()
            return Verdict(recovered_s=None, notes=(f"{type(error).__name__}: {error!s:.300}",))
        if verdict.failures or fault.may_lose or fault.may_stay:
            self._drop_stack()  # the next row would count its losses, and what still fires
        return verdict

    def _stack_for(self, fault: Fault) -> Stack:
        if self._stack is not None and self._setup == fault.setup:
            return self._stack
        self._drop_stack()
        if self._servers is None:
            servers = running_servers(self._directory / f"servers-{time.monotonic_ns()}")
            self._servers = self._servers_stack.enter_context(servers)
        if fault.ensemble:
            if self._watched is None:
                ensemble = running_ensemble(self._directory, self._servers.proxy)
                self._watched = self._servers_stack.enter_context(ensemble)
            stack: Stack = EnsembleStack(
                self._servers, self._directory, fault.environment, self._watched
            )
        elif fault.split:
            if self._split is None:
                split = started(split_cluster(self._directory))
                self._split = self._servers_stack.enter_context(split)
            stack = SplitStack(self._servers, self._directory, fault.environment, self._split)
        elif fault.pipeline:
            stack = PipelineStack(self._servers, self._directory, fault.environment)
        else:
            stack = Stack(
                self._servers,
                self._directory,
                fault.environment,
                store=fault.store,
                tls=fault.tls,
                watch=fault.watch,
            )
        self._stack = self._stack_stack.enter_context(stack.running())
        self._setup = fault.setup
        truth = self._stack.truth()
        if not self._stack.reader.wait(
            lambda outputs: len(outputs.changes) >= len(truth), _FIRST_READ_S
        ):
            raise TimeoutError("the stack did not read the quorum's log before the fault")
        return self._stack

    def _drop_stack(self) -> None:
        self._stack, self._setup = None, None
        self._stack_stack.close()


@contextmanager
def runner() -> Iterator[Runner]:
    """A runner in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-faults-") as directory:
        running = Runner(Path(directory))
        try:
            yield running
        finally:
            running.close()


def run_rows(rows: Iterable[Fault], repeat: int, report: Report) -> Iterator[Row]:
    """The rows with their verdicts, each as soon as it is done; ``report`` takes a line a run."""
    with runner() as running:
        for fault in sorted(rows, key=lambda row: str(row.setup)):
            verdicts: list[Verdict] = []
            for number in range(repeat):
                start_s = time.monotonic()
                try:
                    verdict = running.play(fault, seed=number)
                except UnavailableError as error:
                    report(f"{fault.name}: not run: {error}")
                    break
                verdicts.append(verdict)
                came = ", ".join(verdict.failures) or "held"
                report(
                    f"{fault.name} {number + 1}/{repeat}: {came} ({_text(verdict)};"
                    f" {time.monotonic() - start_s:.0f} s)"
                )
            yield Row(fault.name, fault.about, tuple(verdicts))


def _text(verdict: Verdict) -> str:
    parts: dict[str, Any] = {
        "lost": verdict.lost,
        "doubled": verdict.doubled,
        "contradicted": verdict.contradicted,
        "state wrong": verdict.state_wrong,
        "false": " ".join(verdict.false_alerts),
        "stuck": " ".join(verdict.stuck_alerts),
        "": "; ".join(verdict.notes),
    }
    came = "never" if verdict.recovered_s is None else f"{verdict.recovered_s:.1f} s"
    told = [f"{name} {value}".strip() for name, value in parts.items() if value]
    return ", ".join([f"recovered {came}", *told])
