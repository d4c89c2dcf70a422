"""The views that are computed on request: readiness of the fleet, history, nodes, rehearsals."""

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from featurewatch.controller.kraft.releases import Release, release_of
from featurewatch.monitor.readiness import ReadinessReport
from featurewatch.streams.events import FeatureView
from featurewatch.streams.outputs import AlertState, OperationKind
from featurewatch.streams.types import METADATA_VERSION, ClusterId, FeatureLevel, NodeId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.web.change_index import ChangeIndex, DocumentKey
from featurewatch.web.event_documents import MAX_CARRIED_NODES, MAX_CARRIED_STEPS
from featurewatch.web.history.cluster_history import (
    MAX_BYTES,
    MAX_OPERATIONS,
    MAX_REVISIONS,
    ClusterHistory,
)
from featurewatch.web.history.differences import differences
from featurewatch.web.history.roll_history import MAX_MARKS, MAX_SUMMARY_CHARS
from featurewatch.web.report_cache import MAX_REPORT_BYTES, MAX_REPORTS, ReportCache
from featurewatch.web.views.fleet_readiness import HELD_TIMES, MAX_AGE_MS, FleetReadiness
from featurewatch.web.views.node_views import node_views
from featurewatch.web.views.rehearsal import MAX_OUTCOMES, MAX_STEP_CHARS, MAX_STEPS
from featurewatch.web.worker_rows import WorkerRows
from tests.simulation import records as r
from tests.web.rolls import ROLLED, publish, rolled, rolling
from tests.web.samples import (
    NOW_MS,
    alert_of,
    change_of,
    message_of,
    nodes_on,
    operation_of,
    publish_history,
    read_model,
    state_of,
)
from tests.web.sites import site

PATH = f"/clusters/{ROLLED}"


class SlowRows(WorkerRows):
    """Rows of clusters whose assessment takes this long on the clock."""

    def __init__(self, costs_ms: Mapping[str, int] = MappingProxyType({})) -> None:
        super().__init__()
        self.cost_ms = 0
        self.now_ms = NOW_MS
        self._costs_ms = costs_ms

    def clock(self) -> int:
        """The time."""
        return self.now_ms

    def readiness(
        self, cluster: ClusterId, target: Release | None, now_ms: int
    ) -> ReadinessReport | None:
        """As the class above, after its time."""
        self.now_ms += self._costs_ms.get(cluster, self.cost_ms)
        return super().readiness(cluster, target, now_ms)


async def test_the_fleet_is_listed_by_who_can_go_to_a_release() -> None:
    """The verdict is that of the cluster's own readiness; one without rows is unknown."""
    async with rolled() as served:
        served.apply(state_of("without-rows"))
        rows = await served.body("/readiness?target=4.0")
        assert rows["target"] == "4.0"
        assert rows["counts"] == {"no": 1, "unknown": 1, "yes": 0, "finalized": 0}
        found = {row["cluster"]: row for row in rows["items"]}
        report = await served.body(f"{PATH}/readiness?target=4.0")
        assert found[ROLLED]["verdict"] == report["verdict"] == "no"
        assert found[ROLLED]["blockers"] == len(report["blockers"]) == 4
        assert "No worker" in found["without-rows"]["reasons"][0]
        only = await served.body("/readiness?target=4.0&verdict=unknown")
        assert [row["cluster"] for row in only["items"]] == ["without-rows"]
        assert only["counts"] == rows["counts"]


async def test_a_verdict_follows_the_roll() -> None:
    """The last old node is replaced: the cluster can go; then its levels are raised."""
    async with rolled("4.0", "4.0", "3.9") as served:
        assert (await served.body("/readiness?target=4.0"))["items"][0]["verdict"] == "no"
        image = rolling("4.0", "4.0", "4.0")
        publish(image, served.server.model, served.server.rows, NOW_MS)
        assert (await served.body("/readiness?target=4.0"))["counts"]["yes"] == 1
        image = rolling("3.8", "3.8", "3.8", level=20)
        publish(image, served.server.model, served.server.rows, NOW_MS)
        assert (await served.body("/readiness?target=3.8"))["counts"]["finalized"] == 1


def test_reports_are_bounded_in_count_and_in_bytes() -> None:
    """Whatever the clusters' reports are; the newest one is held, unless it alone is too large."""
    reports = ReportCache()
    for body in (b"", b"x" * (MAX_REPORT_BYTES // 10), b"x" * MAX_REPORT_BYTES):
        for number in range(2 * MAX_REPORTS):
            reports.put(("a", f"{len(body)}", number), body)
            assert reports.get(("a", f"{len(body)}", number)) == body
            assert len(reports) <= MAX_REPORTS
            assert reports.size_bytes <= MAX_REPORT_BYTES
    reports.put(("a", "4.0", 1), b"x" * (MAX_REPORT_BYTES + 1))
    assert reports.get(("a", "4.0", 1)) is None
    assert len(reports) == reports.size_bytes == 0


def test_a_large_fleet_is_assessed_in_parts() -> None:
    """What one request leaves the next one does; a changed or old verdict is assessed again."""
    rows, model = SlowRows(), read_model()
    publish(rolling("4.0", "3.9", "3.9"), model, rows, NOW_MS)
    readiness, target = FleetReadiness(rows), release_of("4.0")
    clusters = {ROLLED: "a", **{f"c-{number}": "a" for number in range(9)}}
    rows.cost_ms = 10
    assert readiness.assess(clusters, target, rows.clock, budget_ms=35) == 6
    assert readiness.assess(clusters, target, rows.clock, budget_ms=1_000) == 0
    assert readiness.assess(clusters, target, rows.clock, budget_ms=-1) == 0
    rows.now_ms += HELD_TIMES * 10
    assert readiness.assess({**clusters, "c-1": "b"}, target, rows.clock, budget_ms=-1) == 1
    rows.now_ms += MAX_AGE_MS + 1
    assert readiness.assess(clusters, target, rows.clock, budget_ms=-1) == 10
    assert len(readiness.documents(target)) == 10
    readiness.assess({ROLLED: "a"}, target, rows.clock, budget_ms=1_000)
    assert [row["cluster"] for row in readiness.documents(target)] == [ROLLED]


def test_large_clusters_that_change_all_the_time_keep_no_other_one_waiting() -> None:
    """Each of two takes more than a request's time: others come first, and all of them come."""
    rows = SlowRows({"hostile-1": 3_000, "hostile-2": 3_000})
    readiness, digests = FleetReadiness(rows), itertools.count()
    others = [f"c-{number}" for number in range(5)]

    def assess() -> int:
        clusters = {name: f"{next(digests)}" for name in ("hostile-1", "hostile-2", *others)}
        return readiness.assess(clusters, release_of("4.0"), rows.clock, budget_ms=2_000)

    assert [assess() for _ in range(5)] == [6, 5, 0, 0, 0]
    assert rows.now_ms == NOW_MS + 6_000
    rows.now_ms += HELD_TIMES * 3_000
    assert assess() == 1
    found = {row["cluster"]: row["at_ms"] for row in readiness.documents(release_of("4.0"))}
    assert {found[name] for name in others} == {NOW_MS + 6_000 + HELD_TIMES * 3_000}


async def test_two_revisions_are_compared() -> None:
    """What changed is apart from what did not, and both revisions are in the address."""
    old = state_of(ROLLED, nodes_on("3.9", 1, 2), nodes_on("4.0", 3), level=19, revision=1)
    new = state_of(
        ROLLED, nodes_on("3.9", 1), nodes_on("4.0", 2, 3, 4), level=25, revision=2, epoch=7
    )
    async with rolled() as served:
        publish_history(served.server.model, old, new)
        epochs = await served.body(f"{PATH}/epochs")
        assert [row["revision"] for row in epochs["items"]] == [2, 1]
        assert (await served.body(f"{PATH}/epochs/2"))["epoch"] == 7
        found = await served.body(f"{PATH}/differences?from=1&to=2")
        missing = await served.get(f"{PATH}/differences?from=1&to=9")
        assert missing.status == 404
        for query in ("", "?from=1", "?from=1&to=x", "?from=-1&to=2", f"?from=1&to={'9' * 30}"):
            assert (await served.get(f"{PATH}/differences{query}")).status == 400
    (level,) = found["levels"]
    assert (level["feature"], level["before"], level["after_name"]) == (
        METADATA_VERSION,
        19,
        "25 (4.0-IV3)",
    )
    changed = {
        tuple(row["nodes"]): tuple(end and end["software"] for end in (row["before"], row["after"]))
        for row in found["nodes"]
    }
    assert changed == {(2,): ("3.9", "4.0"), (4,): (None, "4.0")}
    unchanged = [(row["nodes"], row["before"]["software"]) for row in found["unchanged_nodes"]]
    assert unchanged == [([1], "3.9"), ([3], "4.0")]


def test_a_revision_does_not_differ_from_itself() -> None:
    """All of it is unchanged."""
    state = state_of("a", nodes_on("3.9", 1, 2), nodes_on("4.0", 3))
    found = differences(state, state)
    assert (found["levels"], found["nodes"]) == ([], [])
    assert len(found["unchanged_levels"]) == 1
    assert len(found["unchanged_nodes"]) == 2


async def test_operations_are_listed_newest_first() -> None:
    """As they are on the topic, also of one kind only."""
    election = operation_of(ROLLED, 200, kind=OperationKind.ELECTION, append_ms=NOW_MS + 1)
    async with rolled() as served:
        publish_history(served.server.model, operation_of(ROLLED, 100), election)
        found = await served.body(f"{PATH}/operations")
        assert [item["offset"] for item in found["items"]] == [200, 100]
        only = await served.body(f"{PATH}/operations?kind=topic-creation")
        assert [item["offset"] for item in only["items"]] == [100]
        assert (await served.get(f"{PATH}/operations?kind=nonsense")).status == 400


async def test_history_that_is_not_read_yet_is_not_empty() -> None:
    """503 with the reason, while the rest of the page works."""
    async with site(read_model([state_of(ROLLED)])) as served:
        served.server.model.history.error = "the bus is unreachable"
        for name in ("epochs", "operations", "differences?from=1&to=2"):
            response = await served.get(f"{PATH}/{name}")
            assert response.status == 503
            assert "the bus is unreachable" in await response.text()
        assert (await served.get(PATH)).status == 200


def test_history_is_bounded_and_reread() -> None:
    """In count and in bytes; what does not come again at the next reading is removed."""
    history = ClusterHistory(ChangeIndex("boot"))
    model = read_model()
    model.history = history
    states = [state_of("a", revision=number) for number in range(MAX_REVISIONS + 5)]
    steps = [operation_of("a", number) for number in range(MAX_OPERATIONS + 5)]
    publish_history(model, *states, *steps)
    assert len(history.revisions("a")) == MAX_REVISIONS
    assert len(history.operations("a")) == MAX_OPERATIONS
    assert history.revision("a", 0) is None
    ids = "".join(f"{number:x}-" for number in range(60_000))
    large = [operation_of("b", number, details={"x": f"{number}{ids}"}) for number in range(40)]
    publish_history(model, *large)
    assert 1 <= len(history.operations("b")) < 40
    assert sum(len(str(step.details)) for step in history.operations("b")) < 20 * MAX_BYTES
    alike = [operation_of("c", number, details={"x": "a" * 1_000_000}) for number in range(40)]
    publish_history(model, *alike)
    assert 1 < sum(len(str(step.details)) for step in history.operations("c")) / 1e6 < 17
    history.begin_reading()
    assert len(history.revisions("a")) == MAX_REVISIONS
    history.end_reading()
    assert history.revisions("a") == []


async def test_a_new_revision_and_a_new_operation_are_events() -> None:
    """A page that shows them knows that there are new ones."""
    async with rolled() as served:
        index = served.server.model.index
        before = index.sequence
        publish_history(served.server.model, state_of(ROLLED), operation_of(ROLLED))
        publish_history(served.server.model, state_of(ROLLED))
        keys = index.changed_since(before)
        assert keys is not None
        assert [key.kind for key in keys] == ["revisions", "operations"]
        revisions = served.server.model.document(keys[0], NOW_MS)
        assert revisions is not None
        assert [item["revision"] for item in revisions["items"]] == [1]


async def test_what_nodes_report_is_listed() -> None:
    """Every node in each of its roles."""
    async with rolled() as served:
        found = await served.body(f"{PATH}/views")
    assert len(found["items"]) == found["total"] == 6
    assert {row["software"] for row in found["items"]} == {"3.9", "4.0"}


async def test_views_are_computed_once_for_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks again and again keeps no other one waiting."""
    computed: list[ClusterImage] = []

    def count(image: ClusterImage, now_ms: int) -> list[dict[str, Any]]:
        computed.append(image)
        return node_views(image, now_ms)

    monkeypatch.setattr("featurewatch.web.views.computed.node_views", count)
    async with rolled() as served:
        found = await asyncio.gather(*(served.body(f"{PATH}/views") for _ in range(10)))
        assert len(computed) == 1
        assert all(body == found[0] for body in found)
        publish(rolling("4.0", "4.0", "3.9"), served.server.model, served.server.rows, NOW_MS)
        body = await served.body(f"{PATH}/views")
        assert len(computed) == 2
        assert body["items"] != found[0]["items"]


async def test_the_quorum_of_a_cluster() -> None:
    """Its voters by the log, and the state of each by the active controller."""
    async with rolled() as served:
        image = rolling("4.0", "3.9", "3.9")
        voters = [r.replica(1), r.replica(2), r.replica(3, state="silent")]
        answers = replace(image.answers, quorum=r.quorum(voters, seen_ms=NOW_MS))
        publish(replace(image, answers=answers), served.server.model, served.server.rows, NOW_MS)
        body = await served.body(f"{PATH}/quorum")
    assert (body["cluster"], body["fetching"], body["majority"], body["may_fail"]) == (
        ROLLED,
        2,
        2,
        0,
    )
    assert [(one["node_id"], one["state"]) for one in body["voters"]] == [
        (1, "following"),
        (2, "following"),
        (3, "silent"),
    ]


def test_a_node_with_another_level_comes_first() -> None:
    """With the level that it reports, beside that of the others."""
    image = rolling("4.0", "3.9", "3.9")
    views = (
        FeatureView(FeatureLevel(21), ("broker-1", "broker-2")),
        FeatureView(FeatureLevel(19), ("broker-3",)),
    )
    disagreements = image.answers.disagreements.set(METADATA_VERSION, views)
    image = replace(image, answers=replace(image.answers, disagreements=disagreements))
    rows = node_views(image, NOW_MS)
    first = next(row for row in rows if row["node_id"] == 3 and row["role"] == "broker")
    assert first in rows[:3]
    assert first["levels"] == {METADATA_VERSION: "19 (3.7-IV4)"}
    assert "sees metadata.version at 19" in first["differences"][0]
    assert rows[-1]["levels"] == {}


async def test_a_rehearsal_changes_nothing_and_has_an_outcome_for_each_step() -> None:
    """The level is refused before the roll, and taken after it."""
    steps = "step=upgrade:release=4.0&step=restart:all@4.0&step=upgrade:release=4.0"
    async with rolled() as served:
        before = await served.body(PATH)
        found = await served.body(f"{PATH}/rehearsal?{steps}")
        assert await served.body(PATH) == before
    verdicts = [step["verdict"] for step in found["steps"]]
    assert (found["verdict"], found["release"]) == ("refused", "4.0")
    assert (verdicts[0], verdicts[-1]) == ("refused", "accepted")
    assert "does not support" in found["steps"][0]["messages"][0]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "1 to"),
        ("step=", "is no step"),
        ("step=explode:broker-1", "step"),
        ("&".join(["step=stop:broker-2"] * (MAX_STEPS + 1)), "1 to"),
        (f"step=stop:{'9' * MAX_STEP_CHARS}", "characters"),
        ("step=elect-preferred", "partitions"),
        ("step=lose:2", "partitions"),
        ("step=reassign:/etc/passwd", "partitions"),
        ("&".join(["step=restart:all"] * MAX_STEPS), ""),
        ("step=stop:broker-2&release=9.9", "must be one of"),
        ("steps=stop:broker-2", "is unknown here"),
    ],
)
async def test_a_step_that_is_not_rehearsed_is_named(query: str, text: str) -> None:
    """400 with the reason, or the result; never a failure."""
    async with rolled() as served:
        response = await served.get(f"{PATH}/rehearsal?{query}")
        assert response.status == (400 if text else 200)
        assert text in await response.text()


async def test_the_work_of_a_rehearsal_is_bounded() -> None:
    """Restarting all nodes of a large cluster again and again is refused before it begins."""
    async with rolled(*["3.9"] * 50) as served:
        steps = "&".join(["step=restart:all"] * 3)
        response = await served.get(f"{PATH}/rehearsal?{steps}")
        assert response.status == 400
        assert str(MAX_OUTCOMES) in await response.text()


async def test_where_no_controller_is_known_nothing_is_rehearsed() -> None:
    """409 with the reason."""
    async with rolled() as served:
        image = rolling("4.0", "3.9", "3.9")
        quorum = replace(image.log.quorum, leader_id=NodeId(-1))
        image = replace(image, log=replace(image.log, quorum=quorum))
        publish(image, served.server.model, served.server.rows, NOW_MS)
        response = await served.get(f"{PATH}/rehearsal?step=stop:broker-2")
        assert response.status == 409
        assert "active" in await response.text()


async def test_a_roll_is_pictured_from_revisions_and_states() -> None:
    """Before the page followed the cluster its revisions are moments; then its nodes are known,
    a minute beyond the newest state at most, and an alert that was resolved long ago is shown."""
    hour = 3_600_000
    begin = NOW_MS - hour
    old = state_of(ROLLED, nodes_on("3.9", 1, 2), at_ms=begin - 100 * hour)
    states = [
        state_of(ROLLED, nodes_on("3.9", 1, 2), at_ms=begin),
        state_of(ROLLED, nodes_on("3.9", 1), nodes_on("4.0", 2), at_ms=begin + 30_000),
        state_of(ROLLED, nodes_on("3.9", 1), nodes_on("4.0", 2), at_ms=begin + 60_000),
    ]
    times = {"since_ms": begin + 1, "at_ms": begin + 2}
    async with site(read_model([*states, change_of(ROLLED, append_ms=begin)])) as served:
        publish_history(served.server.model, old)
        served.apply(alert_of(ROLLED, 2, state=AlertState.RESOLVED, **times), alert_of("retired"))
        body = await served.body(f"{PATH}/picture")
    assert (body["begin_ms"], body["end_ms"]) == (old.at_ms, NOW_MS)
    assert body["known"] == [[0, 0], [100 * hour, 100 * hour + 120_000]]
    node = {band["node_id"]: band["spans"] for band in body["bands"]}[2]
    assert [body["software"][software] for *_, software in node] == ["3.9", "4.0"]
    assert node[1][0] == 100 * hour + 30_000
    assert [change["after_name"] for change in body["levels"]] == ["25 (4.0-IV3)"]
    assert [item["known"] for item in body["no_return"]] == [True]
    assert [(item["node"]["node_id"], item["end_ms"]) for item in body["alerts"]] == [
        (2, begin + 2)
    ]
    assert "moments of its revisions" in body["notes"][0]


def test_events_carry_what_changed_unless_it_is_large() -> None:
    """A state has the fields of the cluster's document; one of very many nodes is its row alone."""
    model = read_model(
        [state_of("a"), state_of("b", nodes_on("3.9", *range(MAX_CARRIED_NODES + 1)))]
    )
    odd = [nodes_on("3.9", node) for node in range(200)]
    model.apply(*message_of(state_of("c", *odd)), NOW_MS)
    row = model.document(DocumentKey("state", "a"), NOW_MS)
    assert row is not None
    assert {**row, **row["document"]} == {**model.cluster("a", NOW_MS), "document": row["document"]}
    for cluster in "bc":
        assert "document" not in (model.document(DocumentKey("state", cluster), NOW_MS) or {})
    steps = [operation_of("a", offset) for offset in range(2 * MAX_CARRIED_STEPS)]
    publish_history(model, state_of("a", revision=1), state_of("a", revision=2), *steps)
    revisions = model.document(DocumentKey("revisions", "a"), NOW_MS) or {}
    assert [item["revision"] for item in revisions["items"]] == [2]
    operations = model.document(DocumentKey("operations", "a"), NOW_MS) or {}
    newest = range(2 * MAX_CARRIED_STEPS - 1, MAX_CARRIED_STEPS - 1, -1)
    assert [item["offset"] for item in operations["items"]] == [*newest]
    large = [operation_of("a", 900 + number, summary="x" * 1_000) for number in range(20)]
    publish_history(model, *large)
    assert model.document(DocumentKey("operations", "a"), NOW_MS) == {"cluster": "a"}


def test_what_is_held_for_pictures_is_bounded() -> None:
    """An alert that flaps is one mark each time, of which the newest are held; a retired cluster
    leaves nothing."""
    model = read_model([state_of("a")])
    for number in range(2 * MAX_MARKS):
        model.rolls.note_alert(alert_of("a", since_ms=number, summary="x" * 70_000))
    marks = model.picture("a", NOW_MS).alerts
    assert len(marks) <= MAX_MARKS
    assert max((len(mark.summary) for mark in marks), default=0) <= MAX_SUMMARY_CHARS
    before = model.rolls.version("a")
    model.apply("state", b"a", None, NOW_MS)
    assert model.rolls.version("a") == 0 < before
