"""Which nodes have not loaded a downgrade yet."""

import pytest

from featurewatch.controller.compatibility import Verdict
from featurewatch.monitor.readiness.divergence import applied_by_all
from featurewatch.streams.types import Role
from tests.monitor.readiness.clusters import VOTERS, cluster, controllers, nodes, ranges
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all

YES, NO, UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN


@pytest.mark.form("document")
def test_a_node_that_has_not_loaded_the_downgrade_counts() -> None:
    """A fenced broker that is down, and a controller that has no levels yet or does not respond,
    have not loaded it (M-59)."""
    log = [
        *cluster(*controllers(*["4.3"] * 3), *nodes("4.3"), level=29),
        r.commit(70, r.level(MV, 28), r.register(9, ranges("4.3"))),
    ]
    brokers = [r.answer(1, ranges("4.3"), {}, 71, 800)]

    def answers_of_controllers(*epochs: int) -> list[object]:
        return [
            r.answer(voter, ranges("4.3"), {}, epoch, 900, role=Role.CONTROLLER)
            for voter, epoch in zip(VOTERS, epochs, strict=False)
        ]

    def loaded(*events: object) -> tuple[Verdict, list[str]]:
        image_after = fold_all([*log, *brokers, *events])  # type: ignore[list-item]
        verdict, doubtful = applied_by_all(image_after, 60_000)
        return verdict, [str(key) for key in doubtful]

    down = "broker-9"
    assert loaded(*answers_of_controllers(70, 70, 70)) == (UNKNOWN, [down])
    fenced = r.answer(9, ranges("4.3"), {}, 60, 800)
    assert loaded(fenced, *answers_of_controllers(70, 70, 70)) == (NO, [down])
    back = r.answer(9, ranges("4.3"), {}, 72, 800)
    assert loaded(back, *answers_of_controllers(70, 70, 70)) == (YES, [])
    assert loaded(back, *answers_of_controllers(70, 70, -1)) == (NO, ["controller-3"])
    assert loaded(back, *answers_of_controllers(70, 70)) == (UNKNOWN, ["controller-3"])
