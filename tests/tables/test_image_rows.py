"""Rows of an image: keys, order, and prefixes left by a crash."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.monitor.rows import StateRowError, restore_states, rows_of_step, states_of_rows
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import cluster_of, row_key
from tests import strategies as some
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW, OLD

PLACE = row_key(r.CLUSTER, "cluster")


@given(st.text(min_size=1), st.text(alphabet="abc/|%-", min_size=1))
def test_keys_identify_their_cluster(cluster: str, name: str) -> None:
    """Rows of different clusters have different keys, whatever characters the ids have."""
    assert cluster_of(row_key(ClusterId(cluster), name)) == (cluster, name)


def test_the_row_of_the_cluster_is_written_last() -> None:
    """Alerts, times, nodes, then the cluster's row, for a commit that changes all of them."""
    engine = Engine()
    engine.apply_all([r.commit(1, r.register(1, OLD)), r.following(1)])
    event = r.commit(5, r.level(MV, 25), r.register(40, NEW))
    names = [cluster_of(key)[1] for key, _ in rows_of_step(engine.state, step(engine.state, event))]
    assert names == [
        "alerts/feature/metadata.version", "alerts/node/broker-1",
        "budget", "timers/broker/2", "timers", "nodes/broker/2", "cluster",
    ]  # fmt: skip


def test_pages_of_a_resync_are_deleted_after_it_has_ended() -> None:
    """They are deleted after the row that ends the resync: until then they may be needed."""
    engine = Engine()
    engine.apply_all([r.commit(1, r.register(1, OLD)), r.chunk(9, 0, r.register(2, OLD))])
    event = r.chunk(9, 1, r.level(MV, 21), last=True)
    rows = rows_of_step(engine.state, step(engine.state, event))
    assert rows[-1] == (row_key(r.CLUSTER, "resync/broker/0"), None)
    assert rows[-2][0] == PLACE


def test_pages_left_by_a_crash_do_not_count() -> None:
    """The second resync of a log has no rows of the first."""
    engine = Engine()
    engine.apply_all([r.commit(9, r.register(1, OLD)), r.following(9)])
    engine.apply_all([r.gap(0, 9, reset=True), r.commit(2, r.register(20, OLD))])
    engine.apply(r.gap(0, 2, reset=True), rows_written=1)
    engine.apply_all([r.gap(0, 2, reset=True), r.commit(1, r.register(3, OLD))])
    engine.restart()
    engine.apply(r.following(1))
    assert [key.node_id for key in engine.state.image.nodes.nodes] == [3]


@pytest.mark.parametrize("name", ["features", "log", "zookeeper", "answers", "sources"])
def test_a_row_of_another_version_is_refused(name: str) -> None:
    """A cluster's row without one of the parts is an error, and not an empty part."""
    engine = Engine()
    engine.apply_all([r.commit(5, r.register(1, OLD), r.level(MV, 21)), r.following(5)])
    row = orjson.loads(engine.rows[PLACE])
    del row[name]
    with pytest.raises(StateRowError, match=f"^cluster {r.CLUSTER}: .*'{name}'.*another version"):
        Engine({**engine.rows, PLACE: orjson.dumps(row)})


def test_a_row_of_an_unknown_family_is_refused() -> None:
    """Such a row is an error, and not ignored."""
    engine = Engine()
    engine.apply(r.commit(5, r.register(1, OLD)))
    with pytest.raises(StateRowError, match="'strange/broker/0'"):
        Engine({**engine.rows, row_key(r.CLUSTER, "strange/broker/0"): b"[]"})


def test_brokers_beside_a_log_count_from_its_first_row_on() -> None:
    """A crash may persist some of them without the row that makes the log the authority."""
    engine = Engine()
    engine.apply_all([*z.reading("s1", [z.broker(i, OLD, 9) for i in range(40)], 50)])
    before = engine.state
    commit = r.commit(5, r.level(MV, 21))
    rows = rows_of_step(before, step(before, commit))
    first = next(at for at, (key, _) in enumerate(rows) if "|znodes/" in key)
    engine.apply(commit, rows_written=first + 2)
    assert engine.state.image == before.image
    engine.apply(commit)
    engine.restart()
    zookeeper = engine.state.image.zookeeper
    assert len(zookeeper.nodes) == len(zookeeper.unregistered) == 40


def test_responses_beside_a_log_count_from_its_first_row_on() -> None:
    """A crash may persist some of them without the row that makes the log the authority."""
    engine = Engine()
    engine.apply_all([r.answer(i, NEW, {MV: 21}, 50, 9) for i in range(40)])
    before = engine.state
    commit = r.commit(5, r.level(MV, 21))
    rows = rows_of_step(before, step(before, commit))
    first = next(at for at, (key, _) in enumerate(rows) if "|answers/" in key)
    engine.apply(commit, rows_written=first + 2)
    assert engine.state.image == before.image
    engine.apply(commit)
    engine.restart()
    assert engine.state.image.answers.nodes == before.image.nodes


def test_rows_of_many_clusters() -> None:
    """One table holds all clusters, and each one is restored."""
    rows: dict[str, bytes] = {}
    states = {}
    for name in ("a|b", "a", "a%7Cb"):
        state = MonitorState.of(ClusterId(name))
        outcome = step(state, r.in_cluster(name, r.commit(1, r.register(1, OLD), r.level(MV, 7))))
        rows.update((k, v) for k, v in rows_of_step(state, outcome) if v is not None)
        states[name] = outcome.state
    assert states_of_rows(rows.items()) == states


def test_rows_of_another_version_are_the_loss_of_one_cluster() -> None:
    """The others are restored, and the error names the cluster and what another version may be."""
    rows = {row_key(ClusterId("other"), "of-another-version/1"): b"{}"}
    state = MonitorState.of(ClusterId("a"))
    outcome = step(state, r.in_cluster("a", r.commit(1, r.register(1, OLD), r.level(MV, 7))))
    rows.update((k, v) for k, v in rows_of_step(state, outcome) if v is not None)
    restored = restore_states(rows.items())
    assert restored.states == {"a": outcome.state}
    assert list(restored.errors) == ["other"]
    (error,) = restored.errors.values()
    assert "another version of featurewatch may have written them" in str(error)
    with pytest.raises(StateRowError, match="cluster other: "):
        states_of_rows(rows.items())


@given(st.lists(st.lists(some.records | some.broken_records(), max_size=4), max_size=4))
def test_any_record_is_applied_or_counted(commits: list[list[dict[str, object]]]) -> None:
    """A record with any JSON in its fields is applied, persisted and restored, or counted."""
    engine = Engine()
    engine.apply(r.following(0, seen_ms=1))
    for number, records in enumerate(commits, start=1):
        engine.apply(r.commit(10 * number, *records))
    assert Engine(engine.rows).state == engine.state
