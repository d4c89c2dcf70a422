"""Audits a simulated cluster from outside, transaction by transaction."""

from collections.abc import Iterator, Mapping
from itertools import count

from featurewatch.reference.zookeeper.machines.requests import Request, Response, UpdateResponse
from tests.simulation.reference.claims import Claim, Levels, Written, balance, levels_in
from tests.simulation.reference.node import Process
from tests.simulation.reference.tree import History, Transaction, Tree

CONTROLLER, EPOCH, BROKERS = "/controller", "/controller_epoch", "/brokers/ids/"


def fits(ranges: Mapping[str, tuple[int, int]], levels: Mapping[str, int]) -> bool:
    """Whether a broker with these ranges supports these levels."""
    return all(
        name in ranges and ranges[name][0] <= level <= ranges[name][1]
        for name, level in levels.items()
    )


class Auditor:
    """Checks every invariant; each `AssertionError` names the violated one."""

    def __init__(self, history: History, features: str) -> None:
        self._history = history
        self._features = features
        self._read = 0
        self._numbers = count(1)
        self._elected: dict[int, int] = {}
        self._processes: dict[int, Process] = {}
        self._epochs: dict[Process, int] = {}
        self.claims: dict[int, Claim] = {}
        self.written: list[Written] = []

    # -- clients -----------------------------------------------------------------------------------

    def on_request(self, process: Process, request: Request) -> int:
        """Records a request; returns its number."""
        number = next(self._numbers)
        self.claims[number] = Claim(process, request, len(self._history.log))
        return number

    def on_response(self, number: int, response: Response) -> None:
        """Records the response to a request."""
        claim = self.claims[number]
        assert claim.response is None, f"answered twice: {claim}, then {response}"
        claim.response = response
        claim.responded_at = len(self._history.log)

    @property
    def elections(self) -> int:
        """The number of elections so far."""
        return len(self._elected)

    def outcomes(self) -> Iterator[str]:
        """The outcome of each update request, as text."""
        for claim in self.claims.values():
            response = claim.response
            if response is None:
                yield "nothing"
            elif isinstance(response, UpdateResponse):
                first_error = next(
                    (item.error for item in response.results if item.error), response.error
                )
                yield "unknown" if response.unknown else (response.error or first_error).name

    # -- the cluster -------------------------------------------------------------------------------

    def on_session(self, process: Process) -> None:
        """Records the process of a session."""
        self._processes[process.session_id] = process

    @property
    def levels(self) -> Levels:
        """The finalized levels."""
        node = self._history.tree.get(self._features)
        return {} if node is None else levels_in(node.data)

    def true_controller(self) -> int:
        """The session whose writes are valid; 0 before the first election."""
        node = self._history.tree.get(EPOCH)
        return 0 if node is None else self._elected.get(int(node.data), 0)

    def check(self, process: Process | None) -> None:
        """Checks the transactions since the last check, and the process that acted."""
        for transaction in self._history.log[self._read :]:
            self._transaction(transaction)
        self._read = len(self._history.log)
        if process is None:
            return
        epoch = process.broker.cached.epoch
        assert epoch >= self._epochs.get(process, -1), f"broker {process.node_id} went back"
        self._epochs[process] = epoch
        if process.controller.active and process.session_id == self.true_controller():
            self._live_set(process)

    def _transaction(self, transaction: Transaction) -> None:
        before, after = transaction.before, transaction.after
        if _value(before, EPOCH) != _value(after, EPOCH):
            self._election(transaction)
        features = after.get(self._features)
        old = before.get(self._features)
        if features is old:
            return
        assert features is not None, "the finalized features were deleted"
        assert old is None or features.stat.version == old.stat.version + 1, "epoch made a jump"
        assert old is None or features.stat.czxid == old.stat.czxid, "the znode was recreated"
        elected = self._elected.get(_value(before, EPOCH))
        assert elected == transaction.session, (
            f"session {transaction.session} wrote, elected is {elected}"
        )
        process = self._processes[transaction.session]
        self._live_set(process, levels_in(features.data))
        if old is not None:
            levels = levels_in(old.data), levels_in(features.data)
            self.written.append(Written(transaction.zxid, process, *levels))

    def _election(self, transaction: Transaction) -> None:
        epoch, old = _value(transaction.after, EPOCH), _value(transaction.before, EPOCH)
        assert epoch > old, "the controller epoch went back"
        if CONTROLLER in {change.path for change in transaction.changes}:
            assert epoch not in self._elected, f"epoch {epoch} was given twice"
            self._elected[epoch] = transaction.session

    def _live_set(self, process: Process, levels: Levels | None = None) -> None:
        expected = self.levels if levels is None else levels
        for broker_id, ranges in process.controller.accepted.items():
            assert fits(ranges, expected), (
                f"broker {broker_id} {ranges} is in the live set with {expected} finalized"
            )

    # -- at the end --------------------------------------------------------------------------------

    def check_at_rest(self, processes: list[Process]) -> None:
        """Checks what must hold when nothing is in flight and every connection is up."""
        imbalance = balance([*self.claims.values()], self.written)
        assert imbalance is None, imbalance
        alive = set(processes)
        for claim in self.claims.values():
            assert claim.response is not None or claim.process not in alive, f"no answer: {claim}"
        node = self._history.tree.get(self._features)
        if not processes:
            return
        assert node is not None, "there are brokers and no finalized features"
        registered = {path for path in self._history.tree if path.startswith(BROKERS)}
        assert registered == {f"{BROKERS}{process.node_id}" for process in processes}
        for process in processes:
            cached = process.broker.cached
            assert fits(process.ranges, self.levels), f"{process.node_id} should have gone"
            assert (cached.epoch, cached.levels) == (node.stat.version, self.levels)
            assert process.broker.controller_id == process.controller.controller_id is not None
        active = [process for process in processes if process.controller.active]
        assert [process.session_id for process in active] == [self.true_controller()]
        accepted = active[0].controller.accepted
        assert accepted == {process.node_id: process.ranges for process in processes}


def _value(tree: Tree, path: str) -> int:
    node = tree.get(path)
    return 0 if node is None else int(node.data)
